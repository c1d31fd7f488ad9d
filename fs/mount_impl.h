// SPDX-License-Identifier: Apache-2.0
// What the parts of the mount share: mount.cc (life), mount_ops*.cc (requests
// that libfuse parses), mount_raw.cc (those that it does not know), and
// mount_reply.cc (what an Entry becomes). Not for other rooms.
//
// Lock order: there is one lock here, a leaf, around the set of nodes whose
// answers must not be kept long.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse3/fuse_lowlevel.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "fs/mount.h"
#include "fs/mount_guard.h"
#include "fs/mount_notify.h"
#include "fs/mount_pool.h"
#include "fs/mount_ring.h"
#include "fs/mount_wire.h"

namespace stoplog::fs {

// Of one request or answer; libfuse asks for as many pages.
inline constexpr unsigned kMostContent = 1u << 20;

// Of the request that this thread serves.
struct CurrentRequest {
  wire::Raw raw;
  int device = -1;           // that it came from, and where its answer goes
  RingSlot* slot = nullptr;  // or this
  uint32_t setxattr_flags = 0;
  std::vector<char> scratch;  // replies of READ and READDIR; kept
};
CurrentRequest& current_request();

struct MountServer::Impl : Observer {
  explicit Impl(Tree& t) : tree(t) {}
  ~Impl() override;

  // Observer: called by the tree from any thread.
  void invalidate(std::span<const Invalidation> what) override;
  void drift(const DriftNote& note) override;
  void lost(const std::string& path) override;
  void denied(const Denial& denial) override;

  std::atomic<pid_t> warmer{0};
  std::atomic<uint64_t> warmed_bytes{0};

  void serve(const ReaderPool::Request& from);
  void serve_bytes(std::span<std::byte> request);
  void prepare_rings();
  ssize_t answer_init(const iovec* parts, fuse_init_out out);
  bool serve_raw(const wire::Raw& raw);
  ssize_t write_reply(const iovec* parts, int count);
  void send(const Invalidation& what);
  void expire_all();
  bool forgets_names() override;
  bool is_given_up() override;
  std::once_flag names_tried;
  bool names_at_once = false;
  void log(std::string_view line) const;

  // Ids, timeouts and sizes of an answer.
  struct stat shown(const Attr& attr) const;
  fuse_entry_param shown_entry(const Entry& entry, bool covered);
  double attr_timeout(const Entry& entry, bool covered);
  double attr_timeout_alone(const Entry& entry);
  void note_short_lived(const Entry& entry);
  void leave_short_lived(NodeId node);
  Caller caller(const fuse_ctx& ctx) const;
  bool cover_directory(NodeId dir);
  // A lower directory is watched before its attributes are believed.
  void settle_entry(Entry& entry);
  void forget(NodeId node, uint64_t count);

  Tree& tree;
  ServeOptions options;
  Mounted mounted;
  MountGuard guard;
  fuse_session* session = nullptr;
  std::unique_ptr<Watch> watch;
  std::unique_ptr<Notifier> notifier;
  Fd polled;  // a clone of the device whose reads do not block, if possible
  std::unique_ptr<ReaderPool> pool;
  std::unique_ptr<RingPool> rings;  // null: all comes from the device
  std::array<std::atomic<uint64_t>, wire::kOpcodes> counts{};
  std::atomic<uint64_t> init_unique{0};
  std::atomic<uint64_t> init_offered{0};  // flags and flags2
  std::atomic<bool> setxattr_ext{false};
  bool started = false;
  bool stopped = false;
  // Nodes given out with short timeouts, and what was shown of them: GETATTR
  // has no directory to ask, and the kernel does not drop cached pages when it
  // sees another mtime (AUTO_INVAL_DATA is off).
  struct Shown {
    timespec mtime, ctime;
    uint64_t size;
  };
  std::mutex short_lived_mutex;
  std::unordered_map<NodeId, Shown> short_lived;
  std::atomic<bool> any_short_lived{false};
};

extern const fuse_lowlevel_ops kMountOps;

}  // namespace stoplog::fs
