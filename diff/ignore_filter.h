// SPDX-License-Identifier: Apache-2.0
// Which paths no ignore rule of a work tree can match, without a git library:
// loading one takes 8 ms, four times as long as the rest of `stoplog status`.
//
//   IgnoreFilter filter("/home/me/project");
//   if (!filter.may_ignore("src/main.c")) ...   // certainly not ignored
//
// Only "no" is an answer; "maybe" is for the library to decide. It reads the
// .gitignore files above the path, .git/info/exclude and the user's ignore
// file, and takes every rule that could match, in either case of letters, for
// one that does. Whatever is out of the ordinary (a linked work tree, a
// configured excludesFile, an odd pattern or file) is "maybe".
//
// Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/glob.h"

namespace stoplog::diff {

class IgnoreFilter {
 public:
  // Absolute path of a work tree. Reads nothing yet.
  explicit IgnoreFilter(std::string root) : root_(std::move(root)) {}

  bool may_ignore(std::string_view path);

 private:
  // Unset: the file is not to be understood by us.
  using Rules = std::optional<std::vector<Glob>>;
  static Rules read_rules(const std::string& file);
  static Rules parse_rules(std::string_view text);
  bool is_ordinary() const;
  const Rules& rules_in(std::string_view directory);

  std::string root_;
  std::optional<bool> ordinary_;
  std::vector<Rules> general_;  // info/exclude and the user's
  std::map<std::string, Rules, std::less<>> directories_;
};

}  // namespace stoplog::diff
