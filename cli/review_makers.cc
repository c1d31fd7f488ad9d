// SPDX-License-Identifier: Apache-2.0
#include "cli/review_makers.h"

#include <algorithm>
#include <optional>

namespace stoplog::cli {
namespace {

constexpr size_t kNamed = 3;

// Where a line of the version in hand comes from.
struct Origin {
  std::optional<uint32_t> base;  // this line of the base
  uint32_t command = 0;          // or this command
};

// All lines of the base, followed through one version after the other.
class Follower {
 public:
  explicit Follower(const diff::TextDiff& text)
      : taken_by_(text.old_lines.count()) {
    for (uint32_t i = 0; i < text.old_lines.count(); i++)
      lines_.push_back({.base = i});
  }

  void step(const diff::TextDiff& change, uint32_t command) {
    std::vector<Origin> next;
    next.reserve(change.new_lines.count());
    size_t at = 0;
    auto keep = [&](size_t end) {
      for (; at < end; at++) next.push_back(lines_[at]);
    };
    for (const diff::Edit& edit : change.edits) {
      keep(edit.old_line);
      for (; at < edit.old_line + edit.old_count; at++)
        if (lines_[at].base) taken_by_[*lines_[at].base] = command;
      next.insert(next.end(), edit.new_count, Origin{.command = command});
    }
    keep(lines_.size());
    lines_ = std::move(next);
  }

  std::vector<uint32_t> makers(const diff::Edit& edit) const {
    std::vector<uint32_t> out;
    for (uint32_t i = 0; i < edit.old_count; i++)
      if (auto command = taken_by_[edit.old_line + i]) out.push_back(*command);
    for (uint32_t i = 0; i < edit.new_count; i++)
      if (const Origin& line = lines_[edit.new_line + i]; !line.base)
        out.push_back(line.command);
    std::ranges::sort(out);
    out.erase(std::ranges::unique(out).begin(), out.end());
    return out;
  }

 private:
  std::vector<Origin> lines_;                      // of the version in hand
  std::vector<std::optional<uint32_t>> taken_by_;  // of the base's lines
};

}  // namespace

std::vector<uint32_t> FileMakers::of(size_t first, size_t count) const {
  std::vector<uint32_t> out;
  for (size_t i = first; i < first + count && i < edits.size(); i++)
    out.insert(out.end(), edits[i].begin(), edits[i].end());
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

FileMakers makers_of(const diff::TextDiff& text,
                     const std::vector<FileVersion>& versions) {
  FileMakers out;
  if (versions.empty() || *versions.back().text != text.new_lines.text())
    return out;
  Follower follower(text);
  auto before = std::make_shared<const std::string>(text.old_lines.text());
  for (const FileVersion& version : versions) {
    auto change = diff::diff_texts(before, version.text);
    if (!change) return out;
    follower.step(*change, version.command);
    before = version.text;
  }
  for (const diff::Edit& edit : text.edits)
    out.edits.push_back(follower.makers(edit));
  return out;
}

std::string makers_text(const std::vector<uint32_t>& makers) {
  bool unknown = std::ranges::find(makers, 0u) != makers.end();
  if (makers.empty() || (unknown && makers.size() == 1)) return "";
  if (unknown || makers.size() > kNamed) return "several";
  std::string out;
  for (uint32_t command : makers)
    out += fmt::format("{}#{}", out.empty() ? "" : " ", command);
  return out;
}

}  // namespace stoplog::cli
