// SPDX-License-Identifier: Apache-2.0
#include "gate/dir_times.h"

#include <algorithm>
#include <map>
#include <set>

#include "fs/beneath.h"

namespace stoplog::gate {
namespace {

using Kind = SwitchOp::Kind;

bool same(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

class Finder {
 public:
  explicit Finder(const CommitPlan& plan) : plan_(plan) {
    for (const Item& item : plan.items) {
      bool was = item.old && item.old->is_dir();
      bool is = item.fresh && item.fresh->is_dir();
      if (was && is && item.from) {
        to_.emplace(*item.from, item.path);
        from_.emplace(item.path, *item.from);
      } else if (was && !is) {
        gone_.insert(item.base_path());
      } else if (is && !was) {
        made_.emplace(item.path, item.fresh->mtime);
      }
    }
  }

  std::vector<DirTimes> run() {
    for (const SwitchOp& op : plan_.ops) {
      if (op.kind == Kind::kTake || op.kind == Kind::kRmdir)
        add_before(op.path.parent());
      if (op.kind == Kind::kMove) add_before(op.from.parent());
      if (op.kind == Kind::kPut || op.kind == Kind::kSwap ||
          op.kind == Kind::kMove)
        add_now(op.path.parent());
    }
    std::vector<DirTimes> dirs;
    for (const auto& [path, now] : kept_)
      dirs.push_back({.path = path, .now = now});
    for (const RelPath& path : filled_)
      dirs.push_back({.path = path, .now = path, .want = made_.at(path)});
    return dirs;
  }

 private:
  using Moves = std::map<RelPath, RelPath>;

  // Where the nearest directory above it that moved takes it.
  static RelPath along(const Moves& moves, const RelPath& path) {
    for (RelPath p = path; !moves.empty() && !p.is_root(); p = p.parent())
      if (auto move = moves.find(p); move != moves.end()) {
        auto moved = RelPath::parse(move->second.str() +
                                    path.str().substr(p.str().size()));
        return moved ? std::move(*moved) : path;
      }
    return path;
  }
  void add_before(const RelPath& dir) {
    if (!gone_.contains(dir)) kept_.emplace(dir, along(to_, dir));
  }
  void add_now(const RelPath& dir) {
    if (made_.contains(dir))
      filled_.insert(dir);
    else
      kept_.emplace(along(from_, dir), dir);
  }

  const CommitPlan& plan_;
  Moves to_, from_;
  std::set<RelPath> gone_;
  std::map<RelPath, timespec> made_;
  Moves kept_;                // before -> now
  std::set<RelPath> filled_;  // made, and something is put into it later
};

Result<std::optional<timespec>> time_of(const Disk& disk, int root,
                                        const RelPath& path) {
  auto dir = disk.open_dir(root, path);
  if (!dir && fs::is_absence(dir.error())) return std::nullopt;
  if (!dir) return std::unexpected(dir.error());
  return TRY(sys::fstat(dir->get())).mtime;
}

void set_time(const Disk& disk, int root, const RelPath& path,
              const timespec& time) {
  auto dir = disk.open_dir(root, path);
  if (dir) (void)disk.set_mtime(dir->get(), time);
}

}  // namespace

std::vector<DirTimes> touched_directories(const CommitPlan& plan) {
  return Finder(plan).run();
}

Result<std::vector<DirTimes>> look_before(const Disk& disk, int root,
                                          std::vector<DirTimes> dirs) {
  std::vector<DirTimes> found;
  for (DirTimes& dir : dirs) {
    if (!dir.want) {
      dir.before = TRY(time_of(disk, root, dir.path));
      if (!dir.before) continue;
    }
    found.push_back(std::move(dir));
  }
  return found;
}

void give_back(std::vector<DirTimes>& dirs, std::span<const DirTimes> undone) {
  std::map<RelPath, const DirTimes*> known;
  for (const DirTimes& dir : undone) known.emplace(dir.now, &dir);
  for (DirTimes& dir : dirs) {
    auto at = dir.before ? known.find(dir.path) : known.end();
    if (at == known.end() || at->second->path != dir.now) continue;
    const DirTimes& then = *at->second;
    // Else somebody made or removed something in it since.
    if (then.before && then.after && same(*then.after, *dir.before))
      dir.want = then.before;
  }
}

void set_times(const Disk& disk, int root, std::span<const DirTimes> dirs) {
  for (const DirTimes& dir : dirs)
    if (dir.want) set_time(disk, root, dir.now, *dir.want);
}

Result<std::vector<DirTimes>> look_after(const Disk& disk, int root,
                                         std::span<const DirTimes> dirs) {
  std::vector<DirTimes> found;
  for (const DirTimes& dir : dirs) {
    if (!dir.before) continue;
    auto after = TRY(time_of(disk, root, dir.now));
    if (!after) continue;
    found.push_back({.path = dir.path,
                     .now = dir.now,
                     .before = dir.before,
                     .want = {},
                     .after = after});
  }
  return found;
}

void set_times_of(const Disk& disk, int root, const std::vector<RelPath>& tops,
                  std::span<const DirTimes> dirs) {
  for (const DirTimes& dir : dirs)
    if (dir.after && std::ranges::find(tops, dir.now) != tops.end())
      set_time(disk, root, dir.now, *dir.after);
}

}  // namespace stoplog::gate
