// SPDX-License-Identifier: Apache-2.0
#include "diff/normalize.h"

#include <algorithm>
#include <set>

namespace stoplog::diff {
namespace {

using fs::RawChange;

bool is_dir(const std::optional<fs::NodeState>& state) {
  return state && state->type == fs::Type::kDir;
}

std::string_view above(std::string_view path) {
  size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view()
                                         : path.substr(0, slash);
}

class Normalizer {
 public:
  explicit Normalizer(const fs::View& view) : view_(view) {}
  Merges take_merges() { return std::move(merges_); }

  Result<std::vector<RawChange>> run(std::vector<RawChange> raw) {
    for (RawChange& change : raw) sort_in(std::move(change));
    do {
      TRY(undo_moves_onto_others());
    } while (TRY(reclaim_moved_along()));
    tie_replaced_directories();
    std::vector<RawChange> out;
    out.reserve(slots_.size() + moves_.size());
    for (auto& [path, slot] : slots_) {
      slot.path = path;
      out.push_back(std::move(slot));
    }
    for (auto& [path, move] : moves_) out.push_back(std::move(move));
    std::sort(out.begin(), out.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return out;
  }

 private:
  // Files, symlinks and directories that moved go to moves_, all else to the
  // slot of its path: the base's side and the draft's side each to its own.
  void sort_in(RawChange change) {
    if (change.from && *change.from == change.path) change.from.reset();
    if (change.from && change.before && change.after &&
        change.before->type == change.after->type) {
      left_.insert(change.from->str());
      if (is_dir(change.after)) directories_.add(change.path, *change.from);
      moves_.emplace(change.path, std::move(change));
      return;
    }
    // The two sides of a slot may come from two changes.
    bool apart = change.from || !change.before || !change.after;
    if (change.before) {
      RelPath at = change.from ? *change.from : change.path;
      note(slots_[at], change);
      slots_[at].before = std::move(change.before);
      slots_[at].replaced |= apart;
    }
    if (change.after) {
      note(slots_[change.path], change);
      slots_[change.path].replaced |= apart || change.replaced;
      slots_[change.path].follows = change.follows && !apart;
      slots_[change.path].after = std::move(change.after);
    }
  }

  static void note(RawChange& slot, const RawChange& change) {
    slot.command = std::max(slot.command, change.command);
    if (change.drift) slot.drift = change.drift;
    slot.detaches_links |= change.detaches_links;
    slot.too_deep = std::max(slot.too_deep, change.too_deep);
  }

  // Whether the node that the base had at `path` lives on elsewhere.
  bool moved_away(const RelPath& path) const {
    std::string_view at = path.str();
    while (!at.empty()) {
      if (left_.contains(at)) return true;
      at = above(at);
    }
    return false;
  }

  // All that the base has beneath a directory that another one took the place
  // of is deleted, whether or not the view says so.
  Status refill(const RelPath& directory, uint32_t command) {
    std::vector<RelPath> work{directory};
    while (!work.empty()) {
      RelPath dir = std::move(work.back());
      work.pop_back();
      for (const fs::DirEntry& entry : TRY(view_.real_list(dir))) {
        RelPath path = dir / entry.name;
        if (moved_away(path)) continue;
        RawChange& slot = slots_[path];
        slot.command = std::max(slot.command, command);
        if (!slot.before) slot.before = TRY(view_.real_state(path));
        if (entry.type == fs::Type::kDir) work.push_back(std::move(path));
      }
    }
    return {};
  }

  // A directory moved to where the base has something: the move is told name
  // by name, so that the end of what stood there is told at all. Where that is
  // a directory too, it stays, with another content.
  Status open_up(const RelPath& path) {
    RawChange move = std::move(moves_.at(path));
    moves_.erase(path);
    directories_.remove(path);
    left_.erase(move.from->str());
    RawChange& slot = slots_[path];
    note(slot, move);
    slot.follows = false;
    slot.after = std::move(move.after);
    RawChange& old = slots_[*move.from];
    note(old, move);
    old.before = std::move(move.before);
    for (const fs::DirEntry& entry : TRY(view_.draft_list(path)))
      TRY(tell_along(path / entry.name, *move.from / entry.name, move.command));
    if (!is_dir(slot.before)) return {};
    merges_.insert_or_assign(path, *move.from);
    opened_.insert(path.str());
    opened_.insert(move.from->str());
    return refill(path, move.command);
  }

  // What came along with a moved directory from `origin`, as a move of its own.
  // False: it did not, and has a change of its own.
  Result<bool> tell_along(const RelPath& path, const RelPath& origin,
                          uint32_t command) {
    if (moves_.contains(path) || left_.contains(origin.str())) return false;
    auto slot = slots_.find(path);
    if (slot != slots_.end() && slot->second.after && !slot->second.before)
      return false;
    // What the draft deleted there did not come along.
    auto old = slots_.find(origin);
    if (old != slots_.end() && old->second.before) return false;
    RawChange one;
    one.path = path;
    one.from = origin;
    one.command = command;
    one.before = TRY(view_.real_state(origin));
    one.after = TRY(view_.draft_state(path));
    if (!one.before || !one.after) return false;
    sort_in(std::move(one));
    return true;
  }

  // The base had something here that is no more, yet the draft has something:
  // it came along with a directory that moved to this place, so its old name
  // is gone, too.
  Result<bool> reclaim_moved_along() {
    if (directories_.empty()) return false;
    std::vector<RelPath> replaced;
    for (const auto& [path, slot] : slots_)
      if (slot.before && directories_.origin(path)) replaced.push_back(path);
    bool any = false;
    for (const RelPath& path : replaced) {
      uint32_t command = slots_[path].command;
      if (TRY(tell_along(path, *directories_.origin(path), command)))
        any = true;
      else if (!slots_[path].after && !moves_.contains(path))
        slots_[path].after = TRY(view_.draft_state(path));
    }
    return any;
  }

  // Another directory than the base's, though both may look alike: a commit of
  // what is in it must say so.
  void tie_replaced_directories() {
    if (opened_.empty()) return;
    for (auto& [path, slot] : slots_) {
      if (!is_dir(slot.before) || !is_dir(slot.after) || merges_.contains(path))
        continue;
      for (std::string_view at = path.str(); !at.empty(); at = above(at))
        if (opened_.contains(at)) merges_.emplace(path, path);
    }
  }

  Status undo_moves_onto_others() {
    std::vector<RelPath> work;
    for (const auto& [path, move] : moves_) work.push_back(path);
    while (!work.empty()) {
      RelPath path = std::move(work.back());
      work.pop_back();
      auto it = moves_.find(path);
      if (it == moves_.end() || !TRY(is_occupied(path))) continue;
      RelPath from = *it->second.from;
      if (is_dir(it->second.after)) {
        TRY(open_up(path));
        within(path, work);
      } else {
        undo_move(it);
      }
      // What moved to the old name, or beneath it, now stands on something of
      // the base, too.
      within(from, work);
    }
    return {};
  }

  // Something of the base, that did not move away itself, stands here.
  Result<bool> is_occupied(const RelPath& path) {
    auto slot = slots_.find(path);
    if (slot != slots_.end() && slot->second.before) return true;
    if (moved_away(path)) return false;
    auto base = TRY(view_.real_state(path));
    if (!base) return false;
    slots_[path].before = std::move(base);
    return true;
  }

  void undo_move(std::map<RelPath, RawChange>::iterator it) {
    RelPath path = it->first;
    RawChange move = std::move(it->second);
    moves_.erase(it);
    left_.erase(move.from->str());
    note(slots_[path], move);
    slots_[path].follows = false;
    slots_[path].after = std::move(move.after);
    RawChange& old = slots_[*move.from];
    note(old, move);
    old.before = std::move(move.before);
  }

  void within(const RelPath& path, std::vector<RelPath>& work) const {
    for (auto at = moves_.lower_bound(path);
         at != moves_.end() && at->first.is_within(path); ++at)
      work.push_back(at->first);
  }

  const fs::View& view_;
  std::map<RelPath, RawChange> slots_;
  std::map<RelPath, RawChange> moves_;       // by new path
  std::set<std::string, std::less<>> left_;  // base paths whose node moved
  MovedDirectories directories_;
  // Directories that one was moved over, and those that these were.
  std::set<std::string, std::less<>> opened_;
  Merges merges_;
};

}  // namespace

Result<std::vector<RawChange>> normalize(const fs::View& view,
                                         std::vector<RawChange> raw,
                                         Merges* merges) {
  bool any_moved = std::any_of(raw.begin(), raw.end(), [](const RawChange& c) {
    return c.from.has_value();
  });
  if (!any_moved) {
    std::sort(raw.begin(), raw.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return raw;
  }
  Normalizer normalizer(view);
  auto changes = normalizer.run(std::move(raw));
  if (merges != nullptr) *merges = normalizer.take_merges();
  return changes;
}

MovedDirectories::MovedDirectories(const std::vector<RawChange>& changes) {
  for (const RawChange& change : changes)
    if (change.from && is_dir(change.after)) add(change.path, *change.from);
}

void MovedDirectories::remove(const RelPath& path) { moved_.erase(path.str()); }

void MovedDirectories::add(const RelPath& path, const RelPath& from) {
  moved_.insert_or_assign(path.str(), from);
}

std::optional<RelPath> MovedDirectories::origin(const RelPath& path) const {
  if (moved_.empty()) return std::nullopt;
  // Views, not RelPath::parent(): a path can be a megabyte deep.
  for (std::string_view at = above(path.str()); !at.empty(); at = above(at))
    if (auto it = moved_.find(at); it != moved_.end())
      return transplant(path, at.size(), it->second);
  return std::nullopt;
}

RelPath transplant(const RelPath& path, size_t base, const RelPath& with) {
  std::string rest = path.str().substr(base);
  if (with.is_root() && !rest.empty()) rest.erase(0, 1);
  return RelPath::parse(with.str() + rest).value_or(path);
}

}  // namespace stoplog::diff
