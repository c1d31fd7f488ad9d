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

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/glob.h"

namespace stoplog::diff {

class IgnoreFilter {
 public:
  // Absolute path of a work tree. Reads nothing yet.
  explicit IgnoreFilter(std::string root) : root_(std::move(root)) {}

  // Cheapest for paths in order: what was found of a directory serves the next
  // path in it.
  bool may_ignore(std::string_view path);

 private:
  // The rules of one file, letters folded. Most are a plain name or an ending
  // and need no pattern to be run.
  struct RuleSet {
    std::unordered_set<std::string> names;  // "build", "build/"
    std::vector<std::string> endings;       // of "*.o"
    std::vector<Glob> others;
    bool empty() const {
      return names.empty() && endings.empty() && others.empty();
    }
    void add(Glob glob, std::string pattern);
    // `below` is a path beneath the file's directory, none of whose parents
    // matches.
    bool may_match(std::string_view below) const;
  };
  // Unset: the file is not to be understood by us.
  using Rules = std::optional<RuleSet>;
  // Rules that speak of a directory's content, and where theirs begins in a
  // path.
  struct Reach {
    RuleSet rules;
    size_t from = 0;
  };
  // A directory on the way to the last path that nothing ignores.
  struct Level {
    size_t end = 0;      // of its name in directory_
    size_t reaches = 0;  // of reaches_: those that hold in it
    bool exists = true;  // in the real tree, which alone has rules
  };
  static Rules read_rules(const std::string& file);
  static Rules parse_rules(std::string_view text);
  bool is_ordinary() const;
  void start();
  bool add_rules(Rules rules, size_t from);
  bool matches(std::string_view lower) const;
  // Makes `directory` the one that reaches_ speaks of; false: maybe ignored.
  bool enter(std::string_view directory);
  void leave_for(std::string_view directory);

  std::string root_;
  std::optional<bool> ordinary_;
  size_t general_ = 0;  // of reaches_: the user's, and those at the top
  std::string directory_;
  std::vector<Level> levels_;
  std::vector<Reach> reaches_;
  bool directory_may_ = false;  // something may ignore directory_ itself
};

}  // namespace stoplog::diff
