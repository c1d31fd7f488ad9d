// SPDX-License-Identifier: Apache-2.0
#include "base/glob.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace stoplog {
namespace {

constexpr auto kNone = std::string_view::npos;

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> parts;
  for (;;) {
    size_t slash = std::min(path.find('/'), path.size());
    parts.push_back(path.substr(0, slash));
    if (slash == path.size()) return parts;
    path.remove_prefix(slash + 1);
  }
}

using ClassTest = int (*)(int);
constexpr std::array<std::pair<std::string_view, ClassTest>, 12> kClasses = {{
    {"alnum", ::isalnum},
    {"alpha", ::isalpha},
    {"blank", ::isblank},
    {"cntrl", ::iscntrl},
    {"digit", ::isdigit},
    {"graph", ::isgraph},
    {"lower", ::islower},
    {"print", ::isprint},
    {"punct", ::ispunct},
    {"space", ::isspace},
    {"upper", ::isupper},
    {"xdigit", ::isxdigit},
}};

// The length of the set that begins at pattern[0] == '[', or kNone when it is
// not closed. A ']' right after the opening (or '!') belongs to the set.
size_t set_length(std::string_view pattern) {
  size_t i = 1;
  if (i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^')) ++i;
  for (bool first = true; i < pattern.size(); first = false) {
    if (pattern[i] == ']' && !first) return i + 1;
    if (pattern.substr(i, 2) == "[:") {
      size_t end = pattern.find(":]", i + 2);
      if (end != kNone) {
        i = end + 2;
        continue;
      }
    }
    i += pattern[i] == '\\' ? 2 : 1;
  }
  return kNone;
}

bool in_class(std::string_view name, unsigned char c) {
  for (const auto& [known, test] : kClasses)
    if (known == name) return c < 0x80 && test(c) != 0;
  return false;
}

// `set` is the whole of "[...]".
bool in_set(std::string_view set, unsigned char c) {
  set = set.substr(1, set.size() - 2);
  bool negated = !set.empty() && (set[0] == '!' || set[0] == '^');
  if (negated) set.remove_prefix(1);
  bool found = false;
  size_t i = 0;
  auto take = [&] {
    if (set[i] == '\\' && i + 1 < set.size()) ++i;
    return static_cast<unsigned char>(set[i++]);
  };
  while (i < set.size()) {
    size_t end = set.substr(i, 2) == "[:" ? set.find(":]", i + 2) : kNone;
    if (end != kNone) {
      found = found || in_class(set.substr(i + 2, end - i - 2), c);
      i = end + 2;
      continue;
    }
    unsigned char low = take();
    unsigned char high = low;
    if (i + 1 < set.size() && set[i] == '-') {
      ++i;
      high = take();
    }
    found = found || (low <= c && c <= high);
  }
  return found != negated;
}

// Matches one byte against the pattern item at `at` (which is not '*'); the
// length of that item, or 0 when it does not match.
size_t match_item(std::string_view pattern, size_t at, char c) {
  if (at >= pattern.size()) return 0;
  if (pattern[at] == '?') return 1;
  if (pattern[at] == '\\' && at + 1 < pattern.size())
    return pattern[at + 1] == c ? 2 : 0;
  if (pattern[at] == '[') {
    size_t length = set_length(pattern.substr(at));
    if (length == kNone) return 0;
    return in_set(pattern.substr(at, length), static_cast<unsigned char>(c))
               ? length
               : 0;
  }
  return pattern[at] == c ? 1 : 0;
}

// "**" against components as '*' against bytes: only the last star is ever
// retried, since an earlier one can give back nothing that this one cannot
// take.
bool match_parts(const std::vector<std::string>& pattern,
                 const std::vector<std::string_view>& path) {
  size_t p = 0;
  size_t s = 0;
  size_t star = kNone;
  size_t retry = 0;
  while (s < path.size()) {
    if (p < pattern.size() && pattern[p] == "**") {
      // A trailing "**" needs something beneath the directory.
      if (p + 1 == pattern.size()) return true;
      star = p++;
      retry = s;
    } else if (p < pattern.size() && match_name(pattern[p], path[s])) {
      ++p;
      ++s;
    } else if (star != kNone) {
      p = star + 1;
      s = ++retry;
    } else {
      return false;
    }
  }
  return p == pattern.size();
}

}  // namespace

bool match_name(std::string_view pattern, std::string_view name) {
  size_t p = 0;
  size_t n = 0;
  size_t star = kNone;
  size_t retry = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = n;
    } else if (size_t length = match_item(pattern, p, name[n]); length != 0) {
      p += length;
      ++n;
    } else if (star != kNone) {
      p = star + 1;
      n = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<Glob> Glob::parse(std::string_view pattern) {
  Glob glob;
  glob.pattern_ = pattern;
  if (pattern.find('\0') != kNone)
    return fail(Code::kInvalid, "a pattern holds a NUL");
  if (pattern.ends_with('/')) {
    glob.dirs_only_ = true;
    pattern.remove_suffix(1);
  }
  glob.anchored_ = pattern.find('/') != kNone;
  if (pattern.starts_with('/')) pattern.remove_prefix(1);
  if (pattern.empty()) return fail(Code::kInvalid, "a pattern is empty");
  for (std::string_view part : split(pattern)) {
    if (part.empty() || part == "." || part == "..")
      return fail(Code::kInvalid, "a pattern has an empty, '.' or '..' part");
    for (size_t i = 0; i < part.size(); i += part[i] == '\\' ? 2 : 1)
      if (part[i] == '[' && set_length(part.substr(i)) == kNone)
        return fail(Code::kInvalid, "a pattern has a '[' without its ']'");
    if (!glob.parts_.empty() && part == "**" && glob.parts_.back() == "**")
      continue;
    glob.parts_.emplace_back(part);
  }
  return glob;
}

bool Glob::matches(std::string_view path, bool is_dir) const {
  if (dirs_only_ && !is_dir) return false;
  if (path.empty()) return false;
  std::vector<std::string_view> parts = split(path);
  if (anchored_) return match_parts(parts_, parts);
  return parts_[0] == "**" || match_name(parts_[0], parts.back());
}

bool Glob::covers(std::string_view path, bool is_dir) const {
  if (matches(path, is_dir)) return true;
  for (size_t slash = path.find('/'); slash != kNone;
       slash = path.find('/', slash + 1))
    if (matches(path.substr(0, slash), true)) return true;
  return false;
}

}  // namespace stoplog
