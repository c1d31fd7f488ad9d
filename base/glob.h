// SPDX-License-Identifier: Apache-2.0
// Glob: a path pattern as in .gitignore, over arbitrary bytes.
//
//   Glob glob = TRY(Glob::parse("secrets/**"));
//   glob.matches("secrets/key", false); glob.covers("secrets/a/b");
//
// `*` and `?` never match '/'; `[a-z]`, `[!a]` and `[[:digit:]]` are sets;
// `\` takes the next byte literally. `**` as a whole component matches any
// number of components; a trailing `/**` matches all beneath but not the
// directory itself. A pattern with a '/' before its end is anchored at the top
// of the workspace; one without matches a name at any depth. A trailing '/'
// matches directories only. There is no '!' negation: lists of rules have no
// exceptions.
//
// Time is bounded by (pattern length x path length), however hostile either is.
// Immutable; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoplog {

class Glob {
 public:
  // kInvalid: empty, a NUL, "." or ".." as a component, an unclosed set.
  static Result<Glob> parse(std::string_view pattern);

  // `path` is relative to the top, as in RelPath::str().
  bool matches(std::string_view path, bool is_dir) const;
  // True when it matches the path or a directory above it.
  bool covers(std::string_view path, bool is_dir = false) const;
  // How much of the pattern a directory's path may have used up: what is
  // beneath two directories is matched alike when these are the same. None for
  // a pattern that asks for the last component alone.
  std::vector<size_t> reached(std::string_view directory) const;
  const std::string& pattern() const { return pattern_; }

 private:
  std::string pattern_;
  std::vector<std::string> parts_;
  bool anchored_ = false;
  bool dirs_only_ = false;
};

// One component against one pattern without '/': the pieces of Glob.
bool match_name(std::string_view pattern, std::string_view name);

}  // namespace stoplog
