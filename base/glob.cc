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

// The component that begins at `at`, and where the next one does; past the end
// when there is none.
std::string_view part_at(std::string_view path, size_t at, size_t& next) {
  size_t slash = path.find('/', at);
  next = slash == kNone ? path.size() + 1 : slash + 1;
  return path.substr(at, slash == kNone ? kNone : slash - at);
}

// "**" against components as '*' against bytes: only the last star is ever
// retried, since an earlier one can give back nothing that this one cannot
// take. With `above`, the shortest of the path and the directories above it
// that matches counts. The length of what matches, or kNone.
size_t match_parts(const std::vector<std::string>& pattern,
                   std::string_view path, bool above) {
  size_t p = 0;
  size_t s = 0;
  size_t star = kNone;
  size_t retry = 0;
  size_t next = 0;
  while (s <= path.size()) {
    if (p == pattern.size() && above) return s - 1;
    if (p < pattern.size() && pattern[p] == "**") {
      // A trailing "**" needs something beneath the directory.
      if (p + 1 == pattern.size()) {
        if (!above) return path.size();
        (void)part_at(path, s, next);
        return next - 1;
      }
      star = p++;
      retry = s;
    } else if (p < pattern.size() &&
               match_name(pattern[p], part_at(path, s, next))) {
      ++p;
      s = next;
    } else if (star != kNone) {
      p = star + 1;
      (void)part_at(path, retry, next);
      s = retry = next;
    } else {
      return kNone;
    }
  }
  return p == pattern.size() ? path.size() : kNone;
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
  if (anchored_) return match_parts(parts_, path, false) != kNone;
  size_t slash = path.rfind('/');
  return parts_[0] == "**" ||
         match_name(parts_[0], slash == kNone ? path : path.substr(slash + 1));
}

std::vector<size_t> Glob::reached(std::string_view directory) const {
  if (!anchored_) return {};
  // "**" is passed at once and stays.
  auto add = [this](std::vector<size_t>& to, size_t at) {
    for (;; ++at) {
      if (at == parts_.size() || std::ranges::find(to, at) != to.end()) return;
      to.push_back(at);
      if (parts_[at] != "**") return;
    }
  };
  std::vector<size_t> now;
  add(now, 0);
  for (size_t at = 0, next = 0; at <= directory.size() && !now.empty();
       at = next) {
    std::string_view name = part_at(directory, at, next);
    std::vector<size_t> then;
    for (size_t p : now) {
      if (parts_[p] == "**")
        add(then, p);
      else if (match_name(parts_[p], name))
        add(then, p + 1);
    }
    now = std::move(then);
  }
  std::ranges::sort(now);
  return now;
}

// One pass: a path may be thousands of directories deep.
bool Glob::covers(std::string_view path, bool is_dir) const {
  if (path.empty()) return false;
  if (anchored_) {
    size_t length = match_parts(parts_, path, true);
    if (length == kNone) return false;
    return length < path.size() || !dirs_only_ || is_dir;
  }
  for (size_t at = 0, next = 0; at <= path.size(); at = next) {
    std::string_view name = part_at(path, at, next);
    bool last = next > path.size();
    if ((!last || !dirs_only_ || is_dir) &&
        (parts_[0] == "**" || match_name(parts_[0], name)))
      return true;
  }
  return false;
}

}  // namespace stoplog
