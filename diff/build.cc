// SPDX-License-Identifier: Apache-2.0
// build_change_set(): the steps, in order. Each is cheap but examine(), which
// reads contents and runs on all threads.
#include <algorithm>
#include <map>

#include "diff/canonical.h"
#include "diff/change_set.h"
#include "diff/examine.h"
#include "diff/git_meta.h"
#include "diff/normalize.h"
#include "diff/parallel.h"
#include "diff/risk.h"

namespace stoplog::diff {
namespace {

bool is_dir(const std::optional<fs::NodeState>& state) {
  return state && state->type == fs::Type::kDir;
}

Change change_of(fs::RawChange raw) {
  Change change;
  change.path = std::move(raw.path);
  change.from = std::move(raw.from);
  change.before = std::move(raw.before);
  change.after = std::move(raw.after);
  change.command = raw.command;
  change.drift = std::move(raw.drift);
  change.detaches_links = raw.detaches_links;
  if (auto kind = kind_of(change)) change.kind = *kind;
  return change;
}

// What moved along with a directory, and did nothing else, is told by the
// directory's row.
void fold_moved_along(std::vector<Change>& changes) {
  MovedDirectories moved;
  for (const Change& change : changes)
    if (change.is_moved_directory()) moved.add(change.path, *change.from);
  if (moved.empty()) return;
  std::erase_if(changes, [&](const Change& change) {
    return change.kind == Kind::kRenamed && !change.content_changed &&
           !change.mode_changed && moved.origin(change.path) == change.from;
  });
}

// Directories that come or go with what lies in them are no rows.
void set_directories_aside(ChangeSet& set) {
  std::vector<Change> shown;
  shown.reserve(set.changes.size());
  for (size_t i = 0; i < set.changes.size(); i++) {
    Change& change = set.changes[i];
    bool comes_or_goes =
        (change.kind == Kind::kAdded && is_dir(change.after)) ||
        (change.kind == Kind::kDeleted && is_dir(change.before));
    bool has_content = i + 1 < set.changes.size() &&
                       set.changes[i + 1].path.is_within(change.path);
    (comes_or_goes && has_content ? set.directories : shown)
        .push_back(std::move(change));
  }
  set.changes = std::move(shown);
}

void name_links(std::vector<Change>& changes) {
  std::map<uint64_t, const Change*> first;
  for (Change& change : changes) {
    if (!change.after || change.after->link_group == 0) continue;
    auto [it, fresh] = first.emplace(change.after->link_group, &change);
    if (!fresh) change.link_to = it->second->path;
  }
}

void make_groups(ChangeSet& set, GitFacts& facts) {
  std::map<std::string, Group> groups;
  for (const Change& change : set.changes) {
    if (!change.ignored || is_dir(change.after ? change.after : change.before))
      continue;
    Group& group = groups[facts.group_of(change.path)];
    group.files++;
    group.deleted += change.is_deletion();
    if (change.after) group.bytes += change.after->size;
  }
  for (auto& [path, group] : groups) {
    group.path = path;
    group.reason = "ignored";
    set.groups.push_back(std::move(group));
  }
}

Status examine_all(std::vector<Change>& changes,
                   const ExamineContext& context) {
  return parallel_for(
      changes.size(), context.options.threads, [&](size_t i) -> Status {
        TRY_CTX(examine(changes[i], context),
                fmt::format("cannot compare '{}'", changes[i].path.str()));
        return {};
      });
}

}  // namespace

Result<ChangeSet> build_change_set(const fs::View& view,
                                   const DiffOptions& options) {
  ChangeSet set;
  {
    auto raw = TRY(normalize(view, TRY(view.changes())));
    set.changes.reserve(raw.size());
    for (fs::RawChange& change : raw)
      set.changes.push_back(change_of(std::move(change)));
  }
  GitFacts facts(options.real_root);
  for (Change& change : set.changes)
    change.ignored = facts.is_ignored(
        change.path, is_dir(change.after ? change.after : change.before));
  TRY(examine_all(set.changes, {view, options, facts}));
  std::erase_if(set.changes, [](Change& change) {
    auto kind = kind_of(change);
    if (kind) change.kind = *kind;
    return !kind;
  });
  fold_moved_along(set.changes);
  set_directories_aside(set);
  name_links(set.changes);
  if (options.risks) assess_set(set, view);
  make_groups(set, facts);
  if (options.digest) set.digest = set_digest(set, options.include_ignored);
  return set;
}

}  // namespace stoplog::diff
