// SPDX-License-Identifier: Apache-2.0
// What the reader looked at before: for each path the state that was shown,
// and the edits in it. It answers "what changed since I last looked" and which
// dangers have been seen; nothing is approved by it.
//
//   Looked looked = Looked::parse(text);       // docs/FORMAT.md, "cli"
//   if (looked.at(change) == Look::kChanged) ...
//   looked.mark(change, &text_diff);
//   write(looked.print());
//
// Paths, states and edits are kept as beginnings of SHA-256, so that no name
// that an agent makes can pass for another. A record that is damaged counts as
// none: everything is then new. A value; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "diff/change_set.h"
#include "diff/hunks.h"

namespace stoplog::cli {

enum class Look : unsigned char { kNever, kSame, kChanged };

class Looked {
 public:
  static Looked parse(std::string_view text);
  std::string print() const;

  Look at(const diff::Change& change) const;
  // Whether this edit was in what was shown last.
  bool has_edit(const diff::Change& change, const diff::TextDiff& text,
                size_t edit) const;
  void mark(const diff::Change& change, const diff::TextDiff* text);
  // As the other one has it.
  void take(const Looked& other, const diff::Change& change);
  // Forgets what is no longer in `set`.
  void keep_only(const diff::ChangeSet& set);
  size_t size() const { return files_.size(); }

 private:
  struct File {
    uint64_t state = 0;
    std::vector<uint64_t> edits;  // sorted
  };
  std::unordered_map<uint64_t, File> files_;
};

}  // namespace stoplog::cli
