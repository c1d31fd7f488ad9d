// SPDX-License-Identifier: Apache-2.0
// RelPath: a validated relative path of arbitrary bytes.
//
// Never empty components, ".", "..", a leading or trailing slash, or a NUL;
// components of at most 255 bytes. The empty path is the root itself. Nothing
// is said about UTF-8. There is no upper length: a tree can be deeper than
// PATH_MAX, so code that opens a RelPath walks it (open_beneath on pieces).
//
//   RelPath p = TRY(RelPath::parse("src/main.c"));
//   p.parent() == "src"; p.name() == "main.c"; (p / "x").str()
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoplog {

// One component: not empty, not "." or "..", no '/' or NUL, at most 255 bytes.
bool is_valid_name(std::string_view name);

class RelPath {
 public:
  RelPath() = default;  // the root
  static Result<RelPath> parse(std::string_view text);

  const std::string& str() const { return path_; }
  bool is_root() const { return path_.empty(); }
  RelPath parent() const;  // of the root: the root
  std::string_view name() const;
  std::vector<std::string_view> components() const;
  // `name` must be a valid name; asserted, because callers have checked it.
  RelPath operator/(std::string_view name) const;
  // True when this is `other` or lies beneath it.
  bool is_within(const RelPath& other) const;
  // Byte order of components, so that a directory sorts before its content and
  // "a/b" before "a.c".
  std::strong_ordering operator<=>(const RelPath& other) const;
  bool operator==(const RelPath& other) const = default;

 private:
  explicit RelPath(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace stoplog
