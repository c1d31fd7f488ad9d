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

  Result<std::vector<RawChange>> run(std::vector<RawChange> raw) {
    for (RawChange& change : raw) sort_in(std::move(change));
    TRY(refill_replaced_directories());
    TRY(reclaim_moved_along());
    TRY(undo_moves_onto_others());
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
    if (change.before) {
      RelPath at = change.from ? *change.from : change.path;
      note(slots_[at], change);
      slots_[at].before = std::move(change.before);
    }
    if (change.after) {
      note(slots_[change.path], change);
      slots_[change.path].after = std::move(change.after);
    }
  }

  static void note(RawChange& slot, const RawChange& change) {
    slot.command = std::max(slot.command, change.command);
    if (change.drift) slot.drift = change.drift;
    slot.detaches_links |= change.detaches_links;
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

  // A directory moved to where the base had another one: what that one held is
  // deleted, whether or not the view says so.
  Status refill_replaced_directories() {
    std::vector<RelPath> targets;
    for (const auto& [path, move] : moves_)
      if (is_dir(move.after)) targets.push_back(path);
    for (const RelPath& path : targets) {
      if (moved_away(path)) continue;
      auto base = TRY(view_.real_state(path));
      if (!base) continue;
      if (base->type == fs::Type::kDir) {
        TRY(refill(path, moves_.at(path).command));
      } else {
        TRY(open_up(path, std::move(*base)));
      }
    }
    return {};
  }

  Status refill(const RelPath& directory, uint32_t command) {
    for (const fs::DirEntry& entry : TRY(view_.real_list(directory))) {
      RelPath path = directory / entry.name;
      if (moved_away(path)) continue;
      RawChange& slot = slots_[path];
      slot.command = std::max(slot.command, command);
      if (!slot.before) slot.before = TRY(view_.real_state(path));
      if (entry.type == fs::Type::kDir) TRY(refill(path, command));
    }
    return {};
  }

  // A directory moved to where the base had a file: the move is told file by
  // file, so that the file's end is told at all.
  Status open_up(const RelPath& path, fs::NodeState replaced) {
    RawChange move = std::move(moves_.at(path));
    moves_.erase(path);
    left_.erase(move.from->str());
    RawChange& slot = slots_[path];
    note(slot, move);
    slot.before = std::move(replaced);
    slot.after = std::move(move.after);
    RawChange& old = slots_[*move.from];
    note(old, move);
    old.before = std::move(move.before);
    for (const fs::DirEntry& entry : TRY(view_.draft_list(path))) {
      RelPath child = path / entry.name;
      RelPath origin = *move.from / entry.name;
      if (moves_.contains(child) || slots_.contains(child)) continue;
      RawChange one;
      one.path = child;
      one.from = origin;
      one.command = move.command;
      one.before = TRY(view_.real_state(origin));
      one.after = TRY(view_.draft_state(child));
      if (one.before && one.after) sort_in(std::move(one));
    }
    return {};
  }

  // The base had something here that is no more, yet the draft has something:
  // it came along with a directory that moved to this place, so its old name
  // is gone, too.
  Status reclaim_moved_along() {
    if (directories_.empty()) return {};
    std::vector<RelPath> replaced;
    for (const auto& [path, slot] : slots_)
      if (slot.before && !moves_.contains(path) && directories_.origin(path))
        replaced.push_back(path);
    for (const RelPath& path : replaced) {
      RawChange& slot = slots_[path];
      if (!slot.after) slot.after = TRY(view_.draft_state(path));
      if (!slot.after) continue;
      // Its files tell the rest.
      if (is_dir(slot.after) && is_dir(slot.before)) continue;
      RelPath origin = *directories_.origin(path);
      uint32_t command = slot.command;
      if (left_.contains(origin.str())) continue;
      RawChange& old = slots_[origin];
      old.command = std::max(old.command, command);
      if (!old.before) old.before = TRY(view_.real_state(origin));
      if (!old.before && !old.after) slots_.erase(origin);
    }
    return {};
  }

  Status undo_moves_onto_others() {
    std::vector<RelPath> work;
    for (const auto& [path, move] : moves_)
      if (!is_dir(move.after)) work.push_back(path);
    while (!work.empty()) {
      RelPath path = std::move(work.back());
      work.pop_back();
      auto it = moves_.find(path);
      if (it == moves_.end()) continue;
      auto slot = slots_.find(path);
      bool occupied = slot != slots_.end() && slot->second.before;
      if (!occupied && !moved_away(path)) {
        auto base = TRY(view_.real_state(path));
        if (base) {
          slots_[path].before = std::move(base);
          occupied = true;
        }
      }
      if (!occupied) continue;
      RawChange move = std::move(it->second);
      moves_.erase(it);
      left_.erase(move.from->str());
      note(slots_[path], move);
      slots_[path].after = std::move(move.after);
      RawChange& old = slots_[*move.from];
      note(old, move);
      old.before = std::move(move.before);
      // What moved to the old name now stands on a file of the base, too.
      work.push_back(*move.from);
    }
    return {};
  }

  const fs::View& view_;
  std::map<RelPath, RawChange> slots_;
  std::map<RelPath, RawChange> moves_;       // by new path
  std::set<std::string, std::less<>> left_;  // base paths whose node moved
  MovedDirectories directories_;
};

}  // namespace

Result<std::vector<RawChange>> normalize(const fs::View& view,
                                         std::vector<RawChange> raw) {
  bool any_moved = std::any_of(raw.begin(), raw.end(), [](const RawChange& c) {
    return c.from.has_value();
  });
  if (!any_moved) {
    std::sort(raw.begin(), raw.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return raw;
  }
  return Normalizer(view).run(std::move(raw));
}

MovedDirectories::MovedDirectories(const std::vector<RawChange>& changes) {
  for (const RawChange& change : changes)
    if (change.from && is_dir(change.after)) add(change.path, *change.from);
}

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
