// SPDX-License-Identifier: Apache-2.0
// One file's part of a patch in git's extended format.
#pragma once

#include <string>
#include <vector>

#include "diff/change_set.h"

namespace stoplog::diff {

struct FilePatchOptions {
  unsigned context = 3;
  uint64_t max_literal = 1ull << 30;
  // False, for eyes: only say that binary files differ, and leave git's names
  // of blobs out, which take a quarter of the work and of a line's width.
  bool exact = true;
};

// What is in the change and has no words in git's format: a sentence for each.
void name_unsayable(const Change& change, std::vector<std::string>& left_out);
// The same is appended to `left_out`.
Status write_file_patch(const Change& change, const FilePatchOptions& options,
                        std::vector<std::string>& left_out, const Sink& sink);

Status write_pure_rename(const Moved& moved, const Sink& sink);

// git's percentage for a rename: how much of the larger side is in both.
Result<unsigned> similarity_of(const Change& change);

// "100644", "100755" or "120000"; empty for what git does not store.
std::string git_mode(const std::optional<fs::NodeState>& state);

}  // namespace stoplog::diff
