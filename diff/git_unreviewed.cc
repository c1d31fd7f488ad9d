// SPDX-License-Identifier: Apache-2.0
#include "diff/git_unreviewed.h"

#include <algorithm>

#include "diff/examine.h"

namespace stoplog::diff {
namespace {

// A file or a link whose content can be had.
bool is_printable(const std::optional<fs::NodeState>& state) {
  return !state || state->type == fs::Type::kSymlink ||
         (state->type == fs::Type::kFile && state->content);
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
  auto same = std::ranges::unique(out.changes, {}, &Change::path);
  out.changes.erase(same.begin(), same.end());
  return out;
}

}  // namespace stoplog::diff
