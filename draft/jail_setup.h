// SPDX-License-Identifier: Apache-2.0
// What a draft's jail is made of: identity, HOME, toolchains and binds, as a
// JailSpec. Pure but for looking at the host (PATH's directories, the user's
// name); nothing is made here.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/sys_file.h"
#include "draft/shape.h"
#include "jail/spec.h"

namespace stoplog::draft {

// Who runs inside. A user is himself. Root becomes an id that is this draft's
// alone (in a container's namespace, of few: draft/jail_ids.h) and owns nothing
// on the host; the mount shows it the workspace's owner as itself.
jail::Identity jail_identity(std::string_view draft_id,
                             const sys::Stat& workspace);

struct JailSetup {
  const Shape& shape;
  jail::Identity identity;
  std::string workspace;   // its own path, inside and outside
  std::string mount;       // where its view is mounted outside
  std::string home_mount;  // the same for HOME
  std::string notes;
  std::string state;  // the state directory, which must stay out of reach
};
struct JailPlan {
  jail::JailSpec spec;
  std::vector<std::string> path;      // PATH inside
  std::vector<std::string> left_out;  // entries of PATH that are not there
  std::string git_refused;  // why a linked git directory is not; "": it is
};
Result<JailPlan> make_jail_spec(const JailSetup& setup);

// Does HEAD of the real repository have this path, with the content that the
// real tree (`base`, borrowed) has there? For the default masks. By name alone
// an agent could lift one: it commits a file of that name, and git tracks it.
// Of templates (.env.example) the name is enough. HEAD is read once, at the
// first question; none: nothing is tracked.
std::function<bool(std::string_view)> tracked_by_git(
    const std::string& workspace, int base);

}  // namespace stoplog::draft
