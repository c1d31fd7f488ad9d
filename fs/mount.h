// SPDX-License-Identifier: Apache-2.0
// MountServer: a Tree, mounted. Translates FUSE requests to Tree calls one to
// one, keeps the kernel's caches long and right, and nothing else.
//
//   auto server = TRY(MountServer::create(*tree, spec, options));  // 1 thread
//   ... fork what must be forked ...
//   TRY(server->start());                                          // threads
//   ... poll(server->ended_fd()) ...
//   server->stop();                                                // unmounts
//
// create() mounts and may fork fusermount3, so it runs while the process has
// one thread; until start() every use of the mount waits. The tree is borrowed
// and outlives the server, which becomes its observer; what is not about the
// kernel's caches goes on to options.observer.
//
// One reply a request, whatever happens: an exception is EIO and one log line.
// No lock of ours is held while a reply or a notification is written. No thread
// of this process may touch the mount itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "fs/ids.h"
#include "fs/mount_device.h"
#include "fs/tree.h"
#include "fs/watch.h"

namespace stoplog::fs {

struct ServeOptions {
  int base = -1;  // the real tree's root, for watches; -1: no watch
  IdMap ids = IdMap::identity();
  bool watch = true;          // off: answers about the real tree live a second
  uint64_t most_watches = 0;  // 0: a quarter of the user's
  // Off for comparisons only (bench/switches.py): readers that poll before they
  // sleep; OPEN and OPENDIR refused once, so that they are not asked again.
  bool polls = true;
  bool refuses_opens = true;
  int least_readers = 1;
  bool rings = true;  // io_uring where the kernel offers it (fs/mount_ring.h)
  Observer* observer = nullptr;  // drift, losses, denials; may be null
  // One line each, never more than a few a second. Null: stderr.
  std::function<void(std::string_view)> log;
};

class MountServer {
 public:
  static Result<std::unique_ptr<MountServer>> create(Tree& tree,
                                                     const MountSpec& spec,
                                                     ServeOptions options);
  ~MountServer();
  MountServer(const MountServer&) = delete;
  MountServer& operator=(const MountServer&) = delete;

  Status start();
  // Unmounts (lazily), tells what is queued, ends all threads and closes the
  // device, which aborts the connection for whoever still uses it.
  void stop();

  // Readable once the kernel ended the connection: unmounted from outside.
  int ended_fd() const;
  // Waits until the kernel was told all that the tree invalidated so far:
  // after rollback and commit, before the caller says "done".
  bool drain(int milliseconds = 2000);

  // Requests answered, by opcode name; exact, for tests and bench.
  std::map<std::string, uint64_t> request_counts() const;
  // The same without FORGET and BATCH_FORGET, which come when they please.
  uint64_t total_requests() const;
  // Whether they come over io_uring.
  bool over_rings() const;
  WatchStats watch_stats() const;
  // What this process reads is counted apart: nobody asked for it. From any
  // thread.
  void set_warmer(pid_t process);
  uint64_t warmed_bytes() const;
  const Mounted& mounted() const;

  struct Impl;

 private:
  explicit MountServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoplog::fs
