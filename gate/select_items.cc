// SPDX-License-Identifier: Apache-2.0
#include "gate/select_items.h"

#include <algorithm>
#include <map>
#include <span>

#include "base/escape.h"
#include "base/shown_path.h"
#include "diff/content_hash.h"
#include "diff/git_meta.h"
#include "diff/risk_attributes.h"
#include "gate/decide.h"
#include "snapshot/content_digest.h"

namespace stoplog::gate {
namespace {

using diff::Change;

std::string listed(const std::vector<RelPath>& paths) {
  constexpr size_t kShown = 20;
  std::string text;
  for (size_t i = 0; i < paths.size() && i < kShown; ++i)
    text += (i > 0 ? ", " : "") + quote_name(shown_path(paths[i]));
  if (paths.size() > kShown)
    text += fmt::format(" and {} more", paths.size() - kShown);
  return text;
}

bool is_dir(const std::optional<fs::NodeState>& state) {
  return state && state->type == fs::Type::kDir;
}

class Selector {
 public:
  Selector(const Plan& plan, const diff::ChangeSet& set)
      : plan_(plan), set_(set) {}

  Result<Selection> run() {
    for (const Change& change : set_.changes)
      TRY_CTX(consider(change), quote_name(shown_path(change.path)));
    if (whole_.size() < set_.changes.size()) left_ = set_.changes;
    // What was approved and is no change any more was taken back by the agent.
    for (const Decision& decision : plan_.decisions)
      if (Plan::approves(decision) && set_.find(decision.path) == nullptr)
        stale_.push_back(decision.path);
    if (!stale_.empty())
      return std::unexpected(
          Error(Code::kDrift,
                "changed since they were approved: " + listed(stale_))
              .with_hint("look again and approve what is there now"));
    if (!dangers_.empty())
      return std::unexpected(
          Error(Code::kRefused,
                "dangers that were not approved by name: " + listed(dangers_))
              .with_hint("approve each by its path, or use --danger"));
    TRY(check_carried());
    TRY(add_directories());
    TRY(check_whole());
    detach_groups();
    TRY(add_linked());
    return std::move(selection_);
  }

 private:
  Status consider(const Change& change) {
    const Decision* decision = plan_.find(change.path);
    if (decision == nullptr || !Plan::approves(*decision)) return {};
    const bool whole = decision->edits.empty();
    std::optional<Change> own;
    const Change* agreed = TRY(still_approved(change, *decision, own));
    if (agreed == nullptr) {
      stale_.push_back(change.path);
      return {};
    }
    if (change.is_danger() && !decision->confirmed) {
      dangers_.push_back(change.path);
      return {};
    }
    if (change.git) {
      selection_.approved.push_back(change.path);
      selection_.git.push_back(&change);
      return {};
    }
    selection_.approved.push_back(change.path);
    Item item = whole ? TRY(item_of(*agreed)) : TRY(part_of(change, *decision));
    if (!decision->confirmed) tame(item);
    // The set's changes come in order.
    taken_.insert(taken_.end(), item.path);
    if (whole) whole_.insert(whole_.end(), change.path);
    selection_.items.push_back(std::move(item));
    return {};
  }

  // Null: not what was approved any more.
  Result<const Change*> still_approved(const Change& change,
                                       const Decision& decision,
                                       std::optional<Change>& own) const {
    if (decision.edits.empty()) return as_decided(change, decision, own);
    Opinion now = TRY(opinion(plan_, change));
    bool none =
        now.decided == Decided::kNone || now.decided == Decided::kRejected;
    return now.stale || none ? nullptr : &change;
  }

  // A commit of git's is taken whole: what it has and a person did not approve
  // would be in the real repository, and be pushed from there.
  Status check_carried() {
    for (const Change* row : selection_.git) {
      std::vector<RelPath> missing;
      for (const std::string& name : row->git->carried) {
        auto path = RelPath::parse(name);
        if (path) find_refused(*path, missing);
      }
      std::ranges::sort(missing);
      auto twice = std::ranges::unique(missing);
      missing.erase(twice.begin(), twice.end());
      if (!missing.empty())
        return std::unexpected(
            Error(Code::kRefused,
                  fmt::format("commits or index of {} have what is not "
                              "approved, or not as a whole: {}",
                              quote_name(row->shown_path()), listed(missing)))
                .with_hint(fmt::format(
                    "approve these, too, or reject {}: git's commits come "
                    "whole or not at all",
                    quote_name(row->shown_path()))));
    }
    return {};
  }

  // Rows that tell of this path and were not approved: its own, that of what
  // moved away from it, and those of a directory above that moved or turned
  // into something else. Of a directory's own attributes git knows nothing.
  void find_refused(const RelPath& path, std::vector<RelPath>& missing) {
    if (!moved_known_) {
      moved_known_ = true;
      for (const Change& change : set_.changes)
        if (change.from) moved_.emplace(*change.from, &change);
    }
    auto refuse = [&](const Change& change) {
      if (!whole_.contains(change.path)) missing.push_back(change.path);
    };
    for (RelPath at = path; !at.is_root(); at = at.parent()) {
      auto [first, last] = moved_.equal_range(at);
      for (auto it = first; it != last; ++it) refuse(*it->second);
      const Change* change = set_.find(at);
      bool stays = change != nullptr && !change->from &&
                   (is_dir(change->after) &&
                    (!change->before || is_dir(change->before)));
      if (change != nullptr && change->git == nullptr && (at == path || !stays))
        refuse(*change);
    }
  }

  void tame(Item& item) {
    if (!item.fresh) return;
    mode_t mode = tame_mode(*item.fresh, item.old);
    if (mode == item.fresh->mode) return;
    selection_.notes.push_back(
        fmt::format("{}: mode {:04o} instead of {:04o}; approve it by name to "
                    "take all bits",
                    quote_name(shown_path(item.path)), mode, item.fresh->mode));
    item.fresh->mode = mode;
    item.rest_held = true;
  }

  // The base with the approved edits. The name stays the base's, and so does
  // the mode unless it was approved as a part of its own.
  Result<Item> part_of(const Change& change, const Decision& decision) {
    diff::TextDiff text = TRY(text_of(change));
    auto chosen = TRY(approved_edits(decision, change, text));
    std::string content = TRY(diff::apply_edits(text, chosen));
    Item item = TRY(item_of(change));
    if (item.from) {
      item.path = *item.from;
      item.from.reset();
    }
    bool mode = mode_verdict(decision, change) == Verdict::kApproved;
    const fs::NodeState& attributes =
        change.before && !mode ? *change.before : *change.after;
    item.fresh = node_of(attributes, sha256(content));
    item.fresh->size = content.size();
    if (change.after) item.fresh->mtime = change.after->mtime;
    item.content = snapshot::memory_content(std::move(content));
    item.link_to.reset();
    item.rest_held = true;
    return item;
  }

  // Directories that come with something approved beneath them; directories
  // that go when all beneath them goes.
  Status add_directories() {
    std::set<RelPath> needed, staying;
    for (const Item& item : selection_.items) {
      places_.insert(places_.end(), item.path);
      if (item.from) places_.insert(*item.from);
      if (item.old) bases_.insert(bases_.end(), item.base_path());
    }
    for (const Item& item : selection_.items)
      if (item.fresh)
        for (RelPath p = item.path.parent(); !p.is_root(); p = p.parent())
          if (!needed.insert(p).second) break;
    for (const Change& change : left_) {
      bool leaves = change.is_deletion() || change.from;
      if (!leaves || taken_.contains(change.path)) continue;
      RelPath base = change.from ? *change.from : change.path;
      for (RelPath p = base; !p.is_root(); p = p.parent())
        if (!staying.insert(p).second) break;
    }
    for (const Change& change : set_.directories) {
      bool comes = change.after && needed.contains(change.path);
      bool goes = !change.after && !staying.contains(change.path) &&
                  !needed.contains(change.path) && is_touched(change.path);
      bool alike = change.merges && merges_something(change);
      if (!comes && !goes && !alike) continue;
      TRY(take_directory(change, comes));
    }
    // An added directory that is a row of its own, but needed by another.
    for (const Change& change : left_)
      if (change.kind == diff::Kind::kAdded && is_dir(change.after) &&
          needed.contains(change.path) && !taken_.contains(change.path)) {
        TRY(take_directory(change, true));
        leave_attributes(change, selection_.items.back());
      }
    return {};
  }

  // Those that its row tells of were not approved: they stay held.
  static void leave_attributes(const Change& change, Item& item) {
    bool told = std::ranges::any_of(change.risks, [](const auto& risk) {
      return std::ranges::any_of(
          diff::attribute_rules(),
          [&](const auto& rule) { return rule.code == risk.code; });
    });
    if (!told) return;
    item.fresh->xattrs.clear();
    item.rest_held = true;
  }

  // It comes or goes with what was approved, itself not by name.
  Status take_directory(const Change& change, bool comes) {
    Item item = TRY(item_of(change));
    if (comes) {
      mode_t mode = tame_mode(*item.fresh, item.old);
      item.rest_held = mode != item.fresh->mode;
      item.fresh->mode = mode;
    }
    taken_.insert(item.path);
    selection_.items.push_back(std::move(item));
    return {};
  }

  static bool any_within(const std::set<RelPath>& paths, const RelPath& dir) {
    auto at = paths.lower_bound(dir);
    return at != paths.end() && at->is_within(dir);
  }
  // Something of what goes with the directory was approved.
  bool is_touched(const RelPath& dir) const { return any_within(bases_, dir); }

  // Of a directory that was moved over another one all goes, or nothing: the
  // draft has one directory there, and knows no half of it.
  static bool belongs_to(const Change& merged, const RelPath& path) {
    return path.is_within(merged.path) || path.is_within(*merged.merges);
  }
  static bool belongs_to(const Change& merged, const Change& change) {
    return belongs_to(merged, change.path) ||
           (change.from && belongs_to(merged, *change.from));
  }
  bool merges_something(const Change& merged) const {
    return any_within(places_, merged.path) ||
           any_within(places_, *merged.merges);
  }
  void check_merged(const Change& merged, std::vector<RelPath>& missing) const {
    if (!merged.merges || !merges_something(merged)) return;
    for (const Change& change : set_.changes)
      if (!taken_.contains(change.path) && belongs_to(merged, change))
        missing.push_back(change.path);
  }

  // Nothing approved may stand in, or in the way of, what was not approved.
  Status check_whole() {
    std::vector<RelPath> missing;
    for (const Change& change : left_) {
      if (taken_.contains(change.path)) continue;
      bool turns_dir = change.kind == diff::Kind::kType && is_dir(change.after);
      bool moved_dir =
          change.kind == diff::Kind::kRenamed && is_dir(change.after);
      if (turns_dir || moved_dir) {
        auto at = taken_.upper_bound(change.path);
        if (at != taken_.end() && at->is_within(change.path))
          missing.push_back(change.path);
      }
      // What is approved would stand where the moved directory still is.
      if (moved_dir && change.from) {
        auto at = taken_.lower_bound(*change.from);
        if (at != taken_.end() && at->is_within(*change.from))
          missing.push_back(change.path);
      }
      // A directory that turns into something else, or goes, needs everything
      // beneath it gone.
      bool leaves = change.is_deletion() || change.from;
      RelPath base = change.from ? *change.from : change.path;
      if (leaves && turned_above(base)) missing.push_back(change.path);
    }
    for (const auto* list : {&set_.changes, &set_.directories})
      for (const Change& change : *list) check_merged(change, missing);
    if (missing.empty()) return {};
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    return std::unexpected(
        Error(Code::kRefused, "what is approved also needs: " + listed(missing))
            .with_hint("approve these too"));
  }

  // A file with several names, in the draft or in the real tree, of which only
  // some are approved: these get a file of their own, for a new mode must not
  // show at the others.
  void detach_groups() {
    std::set<uint64_t> after, before;
    for (const Change& change : left_) {
      if (taken_.contains(change.path)) continue;
      if (change.after) after.insert(change.after->link_group);
      if (change.before) before.insert(change.before->link_group);
    }
    after.erase(0);
    before.erase(0);
    if (after.empty() && before.empty()) return;
    for (Item& item : selection_.items) {
      const Change* change = set_.find(item.path);
      if (change == nullptr || !change->after) continue;
      if (after.contains(change->after->link_group) ||
          (change->before && before.contains(change->before->link_group)))
        item.detach = true;
    }
  }

  // The files that something approved is a new name of.
  Status add_linked() {
    std::set<RelPath> wanted;
    for (const Item& item : selection_.items)
      if (item.link_to) wanted.insert(*item.link_to);
    for (const Change& change : set_.unchanged)
      if (wanted.contains(change.path))
        selection_.items.push_back(TRY(item_of(change)));
    return {};
  }

  bool turned_above(const RelPath& path) const {
    for (RelPath p = path.parent(); !p.is_root(); p = p.parent()) {
      if (!taken_.contains(p)) continue;
      const Change* above = set_.find(p);
      if (above != nullptr && is_dir(above->before) && !is_dir(above->after))
        return true;
    }
    return false;
  }

  const Plan& plan_;
  const diff::ChangeSet& set_;
  Selection selection_;
  std::set<RelPath> taken_;
  std::set<RelPath> whole_;  // changes that are approved in all
  // Changes among which some may not be taken: none when all are.
  std::span<const Change> left_;
  bool moved_known_ = false;
  std::multimap<RelPath, const Change*> moved_;  // by where they were
  std::set<RelPath> places_, bases_;  // of what was approved, before and after
  std::vector<RelPath> stale_, dangers_;
};

}  // namespace

mode_t tame_mode(const Node& fresh, const std::optional<Node>& old) {
  if (fresh.type == fs::Type::kSymlink) return fresh.mode;
  mode_t had = old ? old->mode : 0;
  mode_t mode = fresh.mode;
  // On a directory setgid is only inheritance of the group.
  if (!fresh.is_dir()) mode &= ~(06000u & ~had);
  mode &= ~(0002u & ~had);
  // Nor is it shut to its owner: he could not even undo that.
  const mode_t seen = fresh.is_dir()                  ? 0500
                      : fresh.type == fs::Type::kFile ? 0400
                                                      : 0;
  if ((mode & seen) != seen && (!old || (had & seen) == seen))
    mode |= fresh.is_dir() ? 0700 : 0400;
  return mode;
}

Result<Item> item_of(const Change& change) {
  // Half a kilobyte, and mostly nothing is missing.
  std::optional<Change> own;
  if (!diff::has_hashes(change)) TRY(diff::ensure_hashes(own.emplace(change)));
  const Change& full = own ? *own : change;
  Item item;
  item.path = full.path;
  item.from = full.from;
  item.link_to = full.link_to;
  item.detach = full.detaches_links;
  if (full.before) item.old = node_of(*full.before, full.old_sha256);
  // Decided on when the base was gone: nothing stands for it but emptiness.
  if (item.old && full.base_lost && full.old_sha256 == sha256(""))
    item.old->sha256.reset();
  if (full.after) {
    item.fresh = node_of(*full.after, full.new_sha256);
    item.content = full.after->content;
  }
  return item;
}

Result<Selection> select_items(const Plan& plan, const diff::ChangeSet& set) {
  return Selector(plan, set).run();
}

}  // namespace stoplog::gate
