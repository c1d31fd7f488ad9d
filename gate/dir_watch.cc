// SPDX-License-Identifier: Apache-2.0
#include "gate/dir_watch.h"

#include <algorithm>

#include "base/clock.h"
#include "base/sys_inotify.h"

namespace stoplog::gate {
namespace {

constexpr uint32_t kEvents =
    IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR;

bool is_given_back(const DirTimes& dir) { return dir.want && dir.before; }

}  // namespace

DirWatch DirWatch::begin(const Disk& disk, int root,
                         std::vector<DirTimes>& dirs,
                         std::span<const LiveOp> ops,
                         const std::string& stage) {
  DirWatch watch;
  if (std::ranges::none_of(dirs, is_given_back)) return watch;
  std::map<RelPath, std::set<std::string>> names;
  for (const LiveOp& live : ops)
    for (const RelPath* path : {&live.op.path, &live.op.from})
      if (!path->is_root())
        names[path->parent()].insert(std::string(path->name()));
  if (auto queue = sys::inotify_open()) watch.queue_ = std::move(*queue);
  auto watch_one = [&](const DirTimes& dir) -> Result<bool> {
    Fd fd = TRY(disk.open_dir(root, dir.path));
    int number = TRY(sys::inotify_watch(watch.queue_.get(), fd.get(), kEvents));
    Dir& known = watch.dirs_[number];
    known.paths.insert(dir.path);
    known.ours.insert(stage);
    for (const RelPath& path : {dir.path, dir.now})
      known.ours.insert(names[path].begin(), names[path].end());
    // Watched first, looked at afterwards.
    timespec now = TRY(sys::fstat(fd.get())).mtime;
    return now.tv_sec == dir.before->tv_sec &&
           now.tv_nsec == dir.before->tv_nsec;
  };
  for (DirTimes& dir : dirs) {
    if (!is_given_back(dir)) continue;
    auto same = watch_one(dir);
    if (!same || !*same) dir.want.reset();
  }
  return watch;
}

void DirWatch::drain() {
  while (queue_) {
    auto events = sys::inotify_read(queue_.get());
    if (events && events->empty()) return;
    if (!events) {
      for (auto& [number, dir] : dirs_) dir.written = true;
      return;
    }
    for (const sys::InotifyEvent& event : *events) {
      if ((event.mask & IN_Q_OVERFLOW) != 0)
        for (auto& [number, dir] : dirs_) dir.written = true;
      auto dir = dirs_.find(event.watch);
      if (dir != dirs_.end() && (event.mask & kEvents) != 0 &&
          !dir->second.ours.contains(event.name))
        dir->second.written = true;
    }
  }
}

bool DirWatch::is_written(const RelPath& path) const {
  return std::ranges::any_of(dirs_, [&](const auto& entry) {
    return entry.second.written && entry.second.paths.contains(path);
  });
}

void DirWatch::settle(const Disk& disk, int root, std::vector<DirTimes>& dirs) {
  drain();
  for (DirTimes& dir : dirs)
    if (is_given_back(dir) && is_written(dir.path)) dir.want.reset();
  set_times(disk, root, dirs);
  drain();
  for (DirTimes& dir : dirs) {
    if (!is_given_back(dir) || !is_written(dir.path)) continue;
    dir.want.reset();
    auto fd = disk.open_dir(root, dir.now);
    if (fd) (void)disk.set_mtime(fd->get(), Clock::real().now());
  }
}

}  // namespace stoplog::gate
