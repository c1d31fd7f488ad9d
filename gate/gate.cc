// SPDX-License-Identifier: Apache-2.0
#include "gate/gate.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <set>

#include "base/escape.h"
#include "base/shown_path.h"
#include "base/sys_file.h"
#include "fs/beneath.h"
#include "gate/git_paths.h"
#include "gate/git_rule.h"
#include "gate/git_undo.h"
#include "gate/merge.h"
#include "gate/name_in.h"
#include "gate/select_items.h"
#include "gate/stored_content.h"

namespace stoplog::gate {
namespace {

const Disk& disk_of(const Ground& ground) {
  static const Disk kDisk;
  return ground.disk != nullptr ? *ground.disk : kDisk;
}

Result<CommitResult> carry_out(const Ground& ground, std::vector<Item> items,
                               const CommitMeta& meta, bool dry_run) {
  CommitResult result;
  if (dry_run) {
    if (ground.prepare) TRY(ground.prepare(items, {}));
    result.plan = TRY(build_plan(items));
    Verified verified = TRY(verify_base(disk_of(ground), ground.root, items));
    if (!verified.drifts.empty())
      return std::unexpected(drift_error(verified.drifts));
    return result;
  }
  result.record = TRY(transact(ground, std::move(items), meta, &result.timing));
  for (const std::string& warning : result.record.warnings)
    result.notes.push_back(warning);
  return result;
}

// What an item was, as what it shall be.
Result<Item> reversed(const Item& item, StoredContents& contents) {
  Item back;
  back.path = item.base_path();
  if (item.from) back.from = item.path;
  back.old = item.fresh;
  back.fresh = item.old;
  back.detach = item.detach;
  back.rest_held = item.rest_held;
  if (back.fresh && back.fresh->is_file() && item.has_preimage())
    back.content =
        TRY_CTX(contents.of(*back.fresh->sha256, back.fresh->size),
                "the old content of " + quote_name(shown_path(back.path)));
  return back;
}

// Is it there as it was, to be linked with?
Result<bool> still_stands(const Disk& disk, int root, const Item& item) {
  auto dir = disk.open_dir(root, item.path.parent());
  if (!dir && fs::is_absence(dir.error())) return false;
  if (!dir) return std::unexpected(dir.error());
  auto now = TRY(disk.look(dir->get(), name_in(item.path), true));
  return now && difference(*item.old, now->node).empty();
}

Status keep_for_undo(const Ground& ground, const std::vector<Item>& items) {
  for (const Item& item : items)
    if (is_kept_for_undo(item.path) && item.content && item.fresh->sha256 &&
        !TRY(ground.objects->has(*item.fresh->sha256)))
      TRY(ground.objects->put(*item.content));
  return {};
}

// What git means is compared by that; a file that only lent its inode to
// another name may have changed since.
Status prepare_undo(const Ground& ground, std::vector<Item>& items,
                    std::vector<std::string>& notes) {
  TRY(GitUndo(disk_of(ground), ground.root, *ground.objects)
          .prepare(items, notes));
  std::vector<Item> kept;
  for (Item& item : items) {
    if (item.stays() && !TRY(still_stands(disk_of(ground), ground.root, item)))
      continue;
    kept.push_back(std::move(item));
  }
  items = std::move(kept);
  return {};
}

std::string state_name(const std::string& workspace_path) {
  return hex(sha256(workspace_path)).substr(0, 16);
}

}  // namespace

Result<Fd> find_state(int commits_dir, const std::string& workspace_path) {
  auto state = sys::openat(commits_dir, state_name(workspace_path),
                           O_RDONLY | O_DIRECTORY);
  if (!state && state.error().err() == ENOENT) return Fd();
  return state;
}

Result<Fd> open_state(int commits_dir, const std::string& workspace_path) {
  std::string name = state_name(workspace_path);
  Status made = sys::mkdirat(commits_dir, name, 0700);
  if (!made && made.error().err() != EEXIST)
    return std::unexpected(std::move(made.error()).context(name));
  return sys::openat(commits_dir, name, O_RDONLY | O_DIRECTORY);
}

Result<CommitResult> commit(const CommitRequest& request) {
  Selection selection = TRY(select_items(*request.plan, *request.set));
  if (selection.approved.empty())
    return fail(Code::kDeclined, "nothing is approved");
  Merges merges;
  std::string merge_text;
  if (request.merge) {
    merges = TRY(merge_drifted(disk_of(request.ground), request.ground.root,
                               selection.items, *request.set));
    merge_text = "sha256:" + hex(TRY(merge_digest(merges.changes)));
    if (request.merge_digest && *request.merge_digest != merge_text)
      return fail(Code::kDrift,
                  "what a merge makes of the real files is not what was shown");
  }
  Ground ground = request.ground;
  std::deque<GitRule> rules;
  for (const diff::Change* row : selection.git) {
    rules.emplace_back(disk_of(ground), ground.root, *row);
    for (RelPath& lock : rules.back().locks())
      ground.locks.push_back(std::move(lock));
  }
  if (!rules.empty())
    ground.prepare = [&](auto& items, const auto& unlocked) -> Status {
      for (GitRule& rule : rules) TRY(rule.prepare(items, unlocked));
      return request.dry_run ? Status() : keep_for_undo(ground, items);
    };
  CommitMeta meta = request.meta;
  meta.plan_digest = "sha256:" + hex(plan_digest(*request.plan));
  if (meta.change_digest.empty() && request.set->digest)
    meta.change_digest = "sha256:" + hex(*request.set->digest);
  CommitResult result =
      TRY(carry_out(ground, std::move(selection.items), meta, request.dry_run));
  for (const GitRule& rule : rules)
    for (const std::string& note : rule.notes()) result.notes.push_back(note);
  result.approved = std::move(selection.approved);
  result.merged = std::move(merges.changes);
  for (std::string& note : merges.notes)
    result.notes.push_back(std::move(note));
  if (!result.merged.changes.empty()) result.merge_digest = merge_text;
  result.notes.insert(result.notes.begin(), selection.notes.begin(),
                      selection.notes.end());
  return result;
}

namespace {

// Commits from the newest on, each with the undo that took it back, until
// `visit` has seen enough (false). An undo that was taken back does not count.
using VisitCommit = std::function<bool(uint64_t, const CommitMeta&,
                                       std::optional<uint64_t> undone_by)>;
Status newest_first(int state, const VisitCommit& visit) {
  std::vector<uint64_t> numbers = TRY(list_commits(state));
  std::map<uint64_t, uint64_t> undone;
  for (auto n = numbers.rbegin(); n != numbers.rend(); ++n) {
    CommitMeta meta = TRY(read_commit_meta(state, *n));
    auto by = undone.find(*n);
    bool is_undone = by != undone.end();
    if (meta.kind == "undo" && !is_undone) undone.emplace(meta.undoes, *n);
    if (!visit(*n, meta, is_undone ? std::optional(by->second) : std::nullopt))
      break;
  }
  return {};
}

Status check_not_undone(int state, uint64_t number) {
  std::optional<uint64_t> by;
  TRY(newest_first(state, [&](uint64_t n, const CommitMeta&,
                              std::optional<uint64_t> undone_by) {
    if (n == number) by = undone_by;
    return n > number;
  }));
  if (!by) return {};
  return std::unexpected(
      Error(Code::kDrift,
            fmt::format("commit {} was taken back by commit {}", number, *by))
          .with_hint(fmt::format("`stoplog undo {}` brings it again", *by)));
}

// Names of one file before a commit are names of one file again after its undo,
// those that the commit knew.
class Links {
 public:
  explicit Links(const std::vector<Item>& items) {
    for (const Item& item : items)
      if (is_linked(item)) ++names_[key(item)];
  }
  void tie(const Item& item, Item& back, std::vector<std::string>& notes) {
    if (!is_linked(item)) return;
    auto [first, is_new] = first_.emplace(key(item), back.path);
    if (!is_new) back.link_to = first->second;
    if (item.has_preimage() && names_[key(item)] < item.old_stat->nlink)
      notes.push_back(quote_name(shown_path(back.path)) +
                      " had other names, which the commit did not touch, and "
                      "is a file of its own now");
  }

 private:
  using Key = std::pair<dev_t, uint64_t>;
  static bool is_linked(const Item& item) {
    return item.old && item.old_stat && item.old_stat->nlink > 1 &&
           !item.old->is_dir();
  }
  static Key key(const Item& item) {
    return {item.old_stat->dev, item.old_stat->ino};
  }
  std::map<Key, uint32_t> names_;
  std::map<Key, RelPath> first_;
};

}  // namespace

Result<std::optional<uint64_t>> newest_undoable(int state) {
  std::optional<uint64_t> newest;
  TRY(newest_first(state, [&](uint64_t n, const CommitMeta& meta,
                              std::optional<uint64_t> undone_by) {
    if (!undone_by && meta.kind != "undo") newest = n;
    return !newest;
  }));
  return newest;
}

Result<bool> has_standing_commit(int state, const std::string& draft) {
  bool found = false;
  TRY(newest_first(state, [&](uint64_t, const CommitMeta& meta,
                              std::optional<uint64_t> undone_by) {
    found = !undone_by && meta.kind != "undo" && meta.draft == draft;
    return !found;
  }));
  return found;
}

Result<CommitResult> undo(const UndoRequest& request) {
  std::optional<uint64_t> number = request.number;
  if (!number) number = TRY(newest_undoable(request.ground.state));
  if (!number)
    return fail(Code::kUsage, "there is no commit to undo in this workspace");
  CommitRecord record = TRY(read_commit(request.ground.state, *number));
  if (request.number) TRY(check_not_undone(request.ground.state, *number));
  std::vector<Item> items;
  std::vector<std::string> notes;
  Links links(record.items);
  StoredContents contents(*request.ground.objects);
  Ground ground = request.ground;
  ground.times = record.dirs;
  for (const Item& item : record.items) {
    // Objects that git may refer to by now are never taken away again.
    if (is_git_object(item.path) && !item.old) continue;
    items.push_back(TRY(reversed(item, contents)));
    links.tie(item, items.back(), notes);
  }
  ground.locks = GitUndo::locks(items);
  CommitMeta meta = request.meta;
  meta.kind = "undo";
  meta.undoes = *number;
  meta.draft = record.meta.draft;
  ground.prepare = [&](std::vector<Item>& all,
                       const std::set<RelPath>& unlocked) -> Status {
    if (!unlocked.empty())
      return fail(Code::kDrift, "{} is held by a running git",
                  quote_name(unlocked.begin()->str()));
    TRY(prepare_undo(ground, all, notes));
    return request.dry_run ? Status() : keep_for_undo(ground, all);
  };
  CommitResult result =
      TRY(carry_out(ground, std::move(items), meta, request.dry_run));
  for (std::string& note : notes) result.notes.push_back(std::move(note));
  for (const Item& item : record.items)
    if (!item.stays()) result.approved.push_back(item.path);
  return result;
}

void retire(Plan& plan, const CommitResult& result) {
  plan.erase(result.approved);
}

}  // namespace stoplog::gate
