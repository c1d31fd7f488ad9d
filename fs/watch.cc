// SPDX-License-Identifier: Apache-2.0
#include "fs/watch.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <set>
#include <utility>

#include "base/sys_file.h"
#include "base/sys_fuse.h"

namespace stoplog::fs {
namespace {

// IN_CLOSE_WRITE stands for stores through a mapping: they change the file
// without IN_MODIFY, and its last close comes with the unmapping.
constexpr uint32_t kChanges = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE;
constexpr uint32_t kDirectory = kChanges | IN_CREATE | IN_DELETE |
                                IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF |
                                IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;
constexpr uint32_t kFile = kChanges | IN_DELETE_SELF | IN_MOVE_SELF;

// A moment for a burst to gather: one look instead of many, far below 100 ms.
constexpr auto kGather = std::chrono::milliseconds(2);

constexpr uint64_t kBcachefs = 0xca451a4e;  // not in linux/magic.h
constexpr uint64_t kXfs = 0x58465342;

}  // namespace

bool reports_changes(uint64_t magic) {
  constexpr std::array<uint64_t, 6> kKnown = {EXT4_SUPER_MAGIC,  kXfs,
                                              BTRFS_SUPER_MAGIC, TMPFS_MAGIC,
                                              F2FS_SUPER_MAGIC,  kBcachefs};
  return std::find(kKnown.begin(), kKnown.end(), magic) != kKnown.end();
}

Result<std::unique_ptr<Watch>> Watch::create(Tree& tree,
                                             const WatchOptions& options) {
  uint64_t most = options.most;
  if (most == 0) most = TRY(sys::inotify_max_watches()) / 4;
  Fd inotify = TRY(sys::inotify_open());
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return fail_errno(errno);
  return std::unique_ptr<Watch>(
      new Watch(tree, options, most, std::move(inotify), std::move(wake)));
}

Watch::Watch(Tree& tree, const WatchOptions& options, uint64_t most, Fd inotify,
             Fd wake)
    : tree_(tree),
      base_(options.base),
      overflowed_(options.overflowed),
      most_(most),
      wake_(std::move(wake)),
      inotify_(std::move(inotify)) {}

Watch::~Watch() { stop(); }

Status Watch::start() {
  thread_ = std::thread([this] { run(); });
  return {};
}

void Watch::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
  thread_.join();
}

bool Watch::cover_directory(NodeId dir, bool* fresh) {
  return cover(dir, kDirectory, fresh);
}

bool Watch::cover_file(NodeId file, bool* fresh) {
  return cover(file, kFile, fresh);
}

bool Watch::cover(NodeId node, uint32_t mask, bool* fresh) {
  uint64_t resets = 0;
  {
    std::shared_lock lock(mutex_);
    auto it = nodes_.find(node);
    if (it != nodes_.end()) return it->second.covered;
    resets = resets_;
  }
  Fd target;
  Coverage coverage = find(node, target);
  if (!coverage.settled) return false;
  std::unique_lock lock(mutex_);
  if (auto it = nodes_.find(node); it != nodes_.end())
    return it->second.covered;
  if (resets != resets_) return false;  // the next one asks again
  coverage.mask = mask;
  put(node, target.get(), coverage);
  const Coverage& now = nodes_.find(node)->second;
  if (now.watch >= 0 && fresh != nullptr) *fresh = true;
  return now.covered;
}

// With the lock: another node that stands on the same file may be dropped just
// now, and would take away the watch that both have.
void Watch::put(NodeId node, int target, Coverage coverage) {
  if (target >= 0 && watches_.size() < most_)
    if (auto watch =
            sys::inotify_watch(inotify_.get(), target, coverage.mask)) {
      coverage.watch = *watch;
      coverage.covered = true;
      watches_[*watch].push_back(node);
    }
  if (!coverage.covered) ++refused_;
  nodes_.emplace(node, coverage);
}

// What is to be watched, if anything. Outside of the lock: it walks the lower
// tree.
Watch::Coverage Watch::find(NodeId node, Fd& target) {
  auto ref = tree_.lower_ref(node);
  if (!ref) return {.watch = -1, .covered = true};
  // Gone from there, or another file stands there: the tree finds that out by
  // itself, and gives another node or another path the next time.
  constexpr Coverage kMoving{.watch = -1, .covered = false, .settled = false};
  auto found = sys::open_beneath(base_, ref->path.str(), O_PATH);
  if (!found) return kMoving;
  auto magic = sys::fs_magic(found->get());
  if (!magic || !reports_changes(*magic)) return {};
  auto stat = sys::fstat(found->get());
  if (!stat) return kMoving;
  if (ref->any ? !S_ISDIR(stat->mode)
               : stat->dev != ref->dev || stat->ino != ref->ino)
    return kMoving;
  target = std::move(*found);
  return {};
}

void Watch::drop(NodeId node) {
  auto it = nodes_.find(node);
  if (it == nodes_.end()) return;
  int watch = it->second.watch;
  nodes_.erase(it);
  auto users = watches_.find(watch);
  if (users == watches_.end()) return;
  std::erase(users->second, node);
  if (!users->second.empty()) return;
  watches_.erase(users);
  static_cast<void>(sys::inotify_unwatch(inotify_.get(), watch));
}

void Watch::forget(NodeId node) {
  {
    std::shared_lock lock(mutex_);
    if (!nodes_.contains(node)) return;
  }
  // The count that the kernel gave back may not have been all it had.
  if (tree_.lower_ref(node)) return;
  std::unique_lock lock(mutex_);
  drop(node);
}

void Watch::reconsider(NodeId node) {
  std::unique_lock lock(mutex_);
  auto it = nodes_.find(node);
  if (it != nodes_.end() && it->second.watch < 0) nodes_.erase(it);
}

// At once, and not when somebody asks for it: who has it, or a file in it, open
// asks for no name any more.
void Watch::reset(NodeId node) {
  Fd target;
  Coverage coverage = find(node, target);
  coverage.mask = kDirectory;
  std::unique_lock lock(mutex_);
  ++resets_;
  auto it = nodes_.find(node);
  const bool watched = it != nodes_.end() && it->second.watch >= 0;
  if (watched && target) {
    // The one that is watched already keeps its watch, and events to come.
    auto same = sys::inotify_watch(inotify_.get(), target.get(), kDirectory);
    if (same && *same == it->second.watch) return;
  }
  drop(node);
  if (coverage.settled) put(node, target.get(), coverage);
}

// Among the events that were lost may be those of watches that ended: nothing
// here says any more which ones stand. All are put once more, for what the
// kernel was told it may keep. Without another descriptor it goes on with
// these.
void Watch::start_over() {
  auto fresh = sys::inotify_open();
  if (!fresh) return;
  Fd old;  // closed without the lock: it takes all its watches away
  std::unique_lock lock(mutex_);
  old = std::exchange(inotify_, std::move(*fresh));
  ++resets_;
  const auto before = std::exchange(nodes_, {});
  watches_.clear();
  lock.unlock();
  for (const auto& [node, coverage] : before)
    if (coverage.watch >= 0) cover(node, coverage.mask, nullptr);
}

WatchStats Watch::stats() const {
  std::shared_lock lock(mutex_);
  return {.watches = watches_.size(),
          .refused = refused_,
          .events = events_,
          .overflows = overflows_};
}

void Watch::run() {
  while (!stopping_) {
    std::array<pollfd, 2> fds{pollfd{inotify_.get(), POLLIN, 0},
                              pollfd{wake_.get(), POLLIN, 0}};
    if (::poll(fds.data(), fds.size(), -1) < 0) continue;
    if (stopping_ || fds[0].revents == 0) continue;
    std::this_thread::sleep_for(kGather);
    auto events = sys::inotify_read(inotify_.get());
    if (events) handle(*events);
  }
}

void Watch::handle(const std::vector<sys::InotifyEvent>& events) {
  std::set<std::pair<NodeId, std::string>> changed;
  bool overflow = false;
  {
    std::unique_lock lock(mutex_);
    for (const auto& event : events) {
      ++events_;
      if ((event.mask & IN_Q_OVERFLOW) != 0) overflow = true;
      auto users = watches_.find(event.watch);
      if (users == watches_.end()) continue;
      for (NodeId node : users->second) changed.emplace(node, event.name);
      if ((event.mask & IN_IGNORED) == 0) continue;
      // The watched file is gone, and its watch with it.
      for (NodeId node : users->second) nodes_.erase(node);
      watches_.erase(users);
    }
  }
  if (overflow) {
    ++overflows_;
    start_over();
    tree_.lower_changed_everywhere();
    if (overflowed_) overflowed_();
    return;
  }
  for (const auto& [node, name] : changed) tree_.lower_changed(node, name);
}

}  // namespace stoplog::fs
