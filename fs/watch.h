// SPDX-License-Identifier: Apache-2.0
// Watch: hears of changes in the real tree and tells the tree of them.
//
//   auto watch = TRY(Watch::create(tree, {.base = fd}));
//   bool long_timeout = watch->cover_directory(id);   // then stat, then reply
//   TRY(watch->start());  ...  watch->forget(id);  ...  watch->stop();
//
// Order: watch first, stat after. A change before the watch is seen by the
// stat, one after it by the event.
//
// Every lower directory that is handed out is watched, and those files which
// a directory's watch does not see whole: several links, or moved within the
// draft. Only where the file system is known to report changes; at most a
// quarter of the user's watches. What is not covered gets answers that the
// kernel keeps for a second only.
//
// Any thread may call. Events are taken by one thread of its own, which calls
// Tree::lower_changed() with no lock held.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <shared_mutex>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/sys_inotify.h"
#include "fs/tree.h"

namespace stoplog::fs {

struct WatchOptions {
  int base = -1;  // borrowed; outlives the watch
  // 0: a quarter of max_user_watches.
  uint64_t most = 0;
  // Called after the event queue overflowed and the tree was told; for what the
  // tree does not know of: names that it said are absent. May be null.
  std::function<void()> overflowed = {};
};

struct WatchStats {
  uint64_t watches = 0;
  uint64_t refused = 0;  // beyond the limit, or not allowed
  uint64_t events = 0;
  uint64_t overflows = 0;
};

// By statfs magic: ext4, xfs, btrfs, tmpfs, f2fs, bcachefs.
bool reports_changes(uint64_t magic);

class Watch {
 public:
  static Result<std::unique_ptr<Watch>> create(Tree& tree,
                                               const WatchOptions& options);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  Status start();
  void stop();

  // True: every later change is reported (or there is no lower side to
  // change). `*fresh` is set when the watch was put just now, so that what was
  // asked of the tree before must be asked again.
  bool cover_directory(NodeId dir, bool* fresh = nullptr);
  bool cover_file(NodeId file, bool* fresh = nullptr);
  // The kernel dropped a node.
  void forget(NodeId node);
  // The node may have got another lower side (rollback, commit).
  void reconsider(NodeId node);
  // Another directory stands where the watched one stood: it is the one that
  // is watched from now on.
  void reset(NodeId node);
  WatchStats stats() const;

 private:
  struct Coverage {
    int watch = -1;  // -1: none
    uint32_t mask = 0;
    bool covered = false;
    bool settled = true;  // false: the lower side moves just now, ask again
  };
  Watch(Tree& tree, const WatchOptions& options, uint64_t most, Fd inotify,
        Fd wake);
  bool cover(NodeId node, uint32_t mask, bool* fresh);
  Coverage find(NodeId node, Fd& target);
  // With mutex_ held exclusively:
  void put(NodeId node, int target, Coverage coverage);
  void drop(NodeId node);
  void start_over();
  void run();
  void handle(const std::vector<sys::InotifyEvent>& events);

  Tree& tree_;
  const int base_;
  const std::function<void()> overflowed_;
  const uint64_t most_;
  const Fd wake_;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> events_{0};
  std::atomic<uint64_t> overflows_{0};
  std::atomic<uint64_t> refused_{0};
  mutable std::shared_mutex mutex_;  // protects the following; a leaf
  Fd inotify_;                       // replaced by the thread alone
  uint64_t resets_ = 0;  // what was found before one may be gone from there
  std::unordered_map<NodeId, Coverage> nodes_;
  std::unordered_map<int, std::vector<NodeId>> watches_;
};

}  // namespace stoplog::fs
