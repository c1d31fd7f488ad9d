// SPDX-License-Identifier: Apache-2.0
#include "base/relpath.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace stoplog {

bool is_valid_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

Result<RelPath> RelPath::parse(std::string_view text) {
  if (text.empty()) return RelPath();
  size_t start = 0;
  while (start <= text.size()) {
    size_t end = std::min(text.find('/', start), text.size());
    if (!is_valid_name(text.substr(start, end - start)))
      return fail(Code::kInvalid, "not a relative path without '.' or '..'");
    start = end + 1;
  }
  return RelPath(std::string(text));
}

RelPath RelPath::parent() const {
  size_t slash = path_.rfind('/');
  return slash == std::string::npos ? RelPath()
                                    : RelPath(path_.substr(0, slash));
}

std::string_view RelPath::name() const {
  size_t slash = path_.rfind('/');
  return slash == std::string::npos ? std::string_view(path_)
                                    : std::string_view(path_).substr(slash + 1);
}

std::vector<std::string_view> RelPath::components() const {
  std::vector<std::string_view> out;
  std::string_view rest = path_;
  while (!rest.empty()) {
    size_t slash = std::min(rest.find('/'), rest.size());
    out.push_back(rest.substr(0, slash));
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  return out;
}

RelPath RelPath::operator/(std::string_view name) const {
  assert(is_valid_name(name));
  std::string path = path_;
  if (!path.empty()) path += '/';
  path += name;
  return RelPath(std::move(path));
}

bool RelPath::is_within(const RelPath& other) const {
  if (other.is_root()) return true;
  return path_.size() >= other.path_.size() &&
         path_.compare(0, other.path_.size(), other.path_) == 0 &&
         (path_.size() == other.path_.size() ||
          path_[other.path_.size()] == '/');
}

std::strong_ordering RelPath::operator<=>(const RelPath& other) const {
  // Equal heads in blocks: siblings deep in a tree share almost all of a path
  // that can be a megabyte long.
  const std::string& a = path_;
  const std::string& b = other.path_;
  size_t shorter = std::min(a.size(), b.size());
  size_t at = 0;
  while (shorter - at >= 64 &&
         std::memcmp(a.data() + at, b.data() + at, 64) == 0)
    at += 64;
  while (shorter - at >= 8 && std::memcmp(a.data() + at, b.data() + at, 8) == 0)
    at += 8;
  while (at < shorter && a[at] == b[at]) at++;
  if (at == shorter) return a.size() <=> b.size();
  // '/' counts as the smallest byte, which is component order.
  auto key = [](char c) {
    return c == '/' ? 0 : static_cast<int>(static_cast<unsigned char>(c)) + 1;
  };
  return key(a[at]) <=> key(b[at]);
}

}  // namespace stoplog
