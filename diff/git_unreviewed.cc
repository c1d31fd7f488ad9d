// SPDX-License-Identifier: Apache-2.0
#include "diff/git_unreviewed.h"

#include <algorithm>

#include "diff/content_hash.h"
#include "diff/examine.h"

namespace stoplog::diff {
namespace {

// A file or a link whose content can be had.
bool is_printable(const std::optional<fs::NodeState>& state) {
  return !state || state->type == fs::Type::kSymlink ||
         (state->type == fs::Type::kFile && state->content);
}

bool is_same(const std::optional<fs::NodeState>& a,
             const std::optional<fs::NodeState>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  auto text = [](const fs::NodeState& state) {
    return state.content ? read_content(*state.content, state.size).value_or("")
                         : state.target;
  };
  return a->type == b->type && a->mode == b->mode && text(*a) == text(*b);
}

}  // namespace

ChangeSet unreviewed_changes(const GitChange& git) {
  ChangeSet out;
  for (const UnreviewedFile& file : git.unreviewed) {
    auto path = RelPath::parse(file.path);
    if (!path || !is_printable(file.shown) || !is_printable(file.stored))
      continue;
    Change change;
    change.path = std::move(*path);
    change.before = file.shown;
    change.after = file.stored;
    // git knows one bit of a mode.
    if (change.before && change.after)
      change.mode_changed =
          ((change.before->mode ^ change.after->mode) & 0100) != 0;
    change.content_changed = true;
    if (auto kind = kind_of(change)) change.kind = *kind;
    out.changes.push_back(std::move(change));
  }
  std::ranges::stable_sort(out.changes, [](const Change& a, const Change& b) {
    return a.path < b.path;
  });
  // Of a commit and the index, mostly; where they differ both are shown.
  auto same =
      std::ranges::unique(out.changes, [](const Change& a, const Change& b) {
        return a.path == b.path && is_same(a.after, b.after);
      });
  out.changes.erase(same.begin(), same.end());
  return out;
}

}  // namespace stoplog::diff
