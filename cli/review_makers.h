// SPDX-License-Identifier: Apache-2.0
// Which commands made each edit of a file: its lines are followed from the base
// through what the file was after each command that wrote it.
//
//   FileMakers makers = makers_of(text, versions);
//   makers.of(first_edit, edit_count);   // {3}, {3, 5}, or {} when not known
//
// Versions come from the marks of the timeline (cli/review_history.h). Pure;
// time and memory follow the sizes of the texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "diff/hunks.h"

namespace stoplog::cli {

// A file's text after a command; command 0: before those that are known.
struct FileVersion {
  uint32_t command = 0;
  diff::SharedText text;
};

struct FileMakers {
  // For each edit of the text the commands that made it, in order, each once;
  // 0 among them: some of it was there before, or nobody knows.
  std::vector<std::vector<uint32_t>> edits;

  // Of some edits together.
  std::vector<uint32_t> of(size_t first, size_t count) const;
};

// `versions` oldest first; the last is what `text` has as its new side. Empty
// when a version cannot be compared.
FileMakers makers_of(const diff::TextDiff& text,
                     const std::vector<FileVersion>& versions);

// "#3", "#3 #5", "several"; empty when nobody is known.
std::string makers_text(const std::vector<uint32_t>& makers);

// Where the review gets them; null: not yet.
class MakerSource {
 public:
  virtual ~MakerSource() = default;
  virtual std::shared_ptr<const FileMakers> get(size_t index) = 0;
};

}  // namespace stoplog::cli
