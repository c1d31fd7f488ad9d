// SPDX-License-Identifier: Apache-2.0
// What a file of a draft was after each command that wrote it, from the marks
// of the timeline: for cli/review_makers.h.
//
//   History history(opened);
//   auto versions = history.versions(change, [] { return false; });
//
// From the newest back: the command that wrote a file last is known, and the
// mark before it leads to the one before. Bounded in commands and bytes; what
// lies further back counts as one version of command 0. Never fails: what
// cannot be read leads no further. `opened` must outlive it. One thread, which
// need not be the one that uses `opened`.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cli/opened.h"
#include "cli/review_makers.h"

namespace stoplog::cli {

class History {
 public:
  explicit History(const Opened& opened) : opened_(opened) {}

  // Oldest first, the last as `change` has it. Empty: nothing is to be known,
  // or `unwanted` became true.
  std::vector<FileVersion> versions(const diff::Change& change,
                                    const std::function<bool()>& unwanted);

 private:
  // The draft before a command; null when it cannot be read.
  const fs::DraftView* before(uint32_t command);

  const Opened& opened_;
  uint32_t command_ = 0;  // that view_ stands before
  std::unique_ptr<fs::DraftView> view_;
};

}  // namespace stoplog::cli
