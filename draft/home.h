// SPDX-License-Identifier: Apache-2.0
// The tree of a draft's HOME: a small draft of its own beneath the draft's
// directory, over the package caches of the real HOME (jail/home.h) and nothing
// else of it. It is not on the timeline: a rollback leaves it, a fork copies it
// as it is.
#pragma once

#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "draft/protocol.h"
#include "fs/tree.h"

namespace stoplog::draft {

struct Home {
  Fd dir, base;
  // For fs::Tree::open, while `dir` and `base` live.
  fs::TreeOptions options() const;
};
// Made where it is missing. `real` is the caller's HOME; where that is not a
// directory of this user's own, or "", HOME stands over an empty directory.
Result<Home> open_home(int draft_dir, const std::string& real);
// $HOME, or "".
std::string caller_home();
// The fork's HOME becomes what `tree`, the HOME of the other, holds now.
Status fork_home(fs::Tree& tree, int to_draft_dir);
// The same for a draft without a daemon; the caller holds its lock.
Status fork_home(int from_draft_dir, int to_draft_dir, const std::string& real);

// The trees of one draft, by one policy.
Result<GcDone> collect(const std::vector<fs::Tree*>& trees, const Gc& how);

}  // namespace stoplog::draft
