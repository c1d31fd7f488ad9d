// SPDX-License-Identifier: Apache-2.0
// Making, unmaking and clearing the FUSE mount itself. Nothing here speaks the
// protocol: it ends with a device fd that fs/mount serves.
//
//   Mounted m = TRY(mount_at({.path = dir, .way = Way::kPrivileged, ...}));
//   ... serve m.device ...
//   unmount(m.path, m.way);
//
// mount_at() forks (fusermount3) and changes the mount namespace of the
// process: call it while there is a single thread. The caller chooses the
// namespace beforehand: root unshares its own, a user stays in the host's for
// kFusermount, and is in a user + mount namespace for kUserNamespace.
//
// A daemon killed with -9 leaves a mount that answers ENOTCONN, or one that
// hangs when something still holds its device. clear_dead_mount() aborts the
// connection before it unmounts and touches nothing but our own kind of mount.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/sys_fuse.h"

namespace stoplog::fs {

inline constexpr const char* kMountType = "fuse.stoplog";

enum class Way {
  kPrivileged,     // mount(2), CAP_SYS_ADMIN in the initial user namespace
  kFusermount,     // the setuid helper: visible on the host, owned by the user
  kUserNamespace,  // mount(2) in a user namespace of our own
};

struct MountSpec {
  std::string path;  // absolute, a directory
  Way way = Way::kPrivileged;
  uid_t uid = 0;  // who may use a mount without allow_other
  gid_t gid = 0;
  // Other users than `uid` are let in (permissions still hold). fusermount3
  // refuses it to users unless /etc/fuse.conf allows it.
  bool allow_other = true;
  bool read_only = false;
  std::string source = "stoplog";  // what `mount` and df show; no ',' or '\'
};

struct Mounted {
  Fd device;
  std::string path;
  Way way = Way::kPrivileged;
  unsigned minor = 0;  // of st_dev: the connection's name in fusectl
};

// Pure: what mount(2) gets as data, and what fusermount3 gets as arguments.
std::string mount_options(const MountSpec& spec, int device, mode_t root_mode);
std::vector<std::string> fusermount_arguments(const MountSpec& spec);

Result<Mounted> mount_at(const MountSpec& spec);
// Lazy: the name is free at once; open files live on until they are closed.
Status unmount(const std::string& path, Way way);

enum class MountState {
  kNone,   // no mount of ours at the path
  kAlive,  // answers
  kDead,   // ENOTCONN: the daemon is gone
};
// Looks at the topmost mount at `path`. Does not touch a mount that may hang:
// `daemon_lives` false means that the caller holds the draft's lock, so that
// whatever is mounted there has no daemon.
Result<MountState> mount_state(const std::string& path, bool daemon_lives);
// Aborts and unmounts every mount of ours at `path`, topmost first; returns
// how many. The caller holds the draft's lock: no daemon serves them.
Result<int> clear_dead_mount(const std::string& path);
// Pure: the mounts of ours at `path`, topmost first; empty when something else
// lies on top.
std::vector<sys::MountEntry> our_mounts(
    const std::vector<sys::MountEntry>& mounts, const std::string& path);

}  // namespace stoplog::fs
