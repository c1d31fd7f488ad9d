// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_device.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "base/sys_file.h"

namespace stoplog::fs {
namespace {

Status check(const MountSpec& spec) {
  if (spec.path.empty() || spec.path[0] != '/')
    return fail(Code::kInvalid, "mount point '{}' is not absolute", spec.path);
  if (spec.source.find_first_of(",\\") != std::string::npos)
    return fail(Code::kInvalid, "mount source '{}' has a comma or backslash",
                spec.source);
  return {};
}

// The connection's number, from mountinfo: a stat would ask the daemon, which
// does not answer yet.
unsigned minor_of(const std::string& path) {
  auto mounts = sys::list_mounts();
  if (!mounts) return 0;
  auto ours = our_mounts(*mounts, path);
  return ours.empty() ? 0 : ours.front().minor;
}

Status detach(const std::string& path) {
  auto direct = sys::umount(path, MNT_DETACH);
  if (direct || direct.error().err() != EPERM) return direct;
  TRY(sys::run_fusermount({"-u", "-z", "--", path}, false));
  return {};
}

}  // namespace

std::string mount_options(const MountSpec& spec, int device, mode_t root_mode) {
  // default_permissions always: opens are invisible to the daemon, so nobody
  // but the kernel can check them.
  return fmt::format(
      "fd={},rootmode={:o},user_id={},group_id={},default_permissions{}",
      device, root_mode & S_IFMT, spec.uid, spec.gid,
      spec.allow_other ? ",allow_other" : "");
}

std::vector<std::string> fusermount_arguments(const MountSpec& spec) {
  return {"-o",
          fmt::format("{},nosuid,nodev,fsname={},subtype=stoplog,"
                      "default_permissions{}",
                      spec.read_only ? "ro" : "rw", spec.source,
                      spec.allow_other ? ",allow_other" : ""),
          "--", spec.path};
}

Result<Mounted> mount_at(const MountSpec& spec) {
  TRY(check(spec));
  Mounted out{.device = Fd(), .path = spec.path, .way = spec.way};
  if (spec.way == Way::kFusermount) {
    out.device = TRY_CTX(sys::run_fusermount(fusermount_arguments(spec), true),
                         fmt::format("cannot mount on {}", spec.path));
  } else {
    out.device = TRY(sys::open_fuse_device());
    Fd target = TRY_CTX(sys::openat(AT_FDCWD, spec.path, O_PATH | O_DIRECTORY),
                        spec.path);
    unsigned long flags = MS_NOSUID | MS_NODEV;
    if (spec.read_only) flags |= MS_RDONLY;
    TRY_CTX(sys::mount_fuse(target.get(), kMountType, spec.source, flags,
                            mount_options(spec, out.device.get(), S_IFDIR)),
            fmt::format("cannot mount on {}", spec.path));
  }
  out.minor = minor_of(spec.path);
  return out;
}

Status unmount(const std::string& path, Way way) {
  if (way == Way::kFusermount) return detach(path);
  return sys::umount(path, MNT_DETACH);
}

std::vector<sys::MountEntry> our_mounts(
    const std::vector<sys::MountEntry>& mounts, const std::string& path) {
  std::vector<sys::MountEntry> out;
  for (const auto& mount : mounts) {
    if (mount.path != path) continue;
    // Something of another kind over ours is not ours to take away, and until
    // it is gone what lies beneath cannot be unmounted.
    if (mount.type != kMountType)
      out.clear();
    else
      out.insert(out.begin(), mount);
  }
  return out;
}

Result<MountState> mount_state(const std::string& path, bool daemon_lives) {
  auto ours = our_mounts(TRY(sys::list_mounts()), path);
  if (ours.empty()) return MountState::kNone;
  if (!daemon_lives) return MountState::kDead;
  auto stat = sys::statat(AT_FDCWD, path);
  if (!stat && stat.error().err() == ENOTCONN) return MountState::kDead;
  return MountState::kAlive;
}

Result<int> clear_dead_mount(const std::string& path) {
  int cleared = 0;
  // Bounded: a mount that comes back each time is somebody else's doing.
  for (int round = 0; round < 64; ++round) {
    auto ours = our_mounts(TRY(sys::list_mounts()), path);
    if (ours.empty()) return cleared;
    // A thread of the dead daemon may still sit in a notification and hold the
    // device: then only an abort ends it. fusectl is there for the owner;
    // MNT_FORCE is its equal for the privileged and reports EBUSY or EPERM
    // where it only aborted. Neither failing is fatal: the detach decides.
    if (!sys::abort_fuse_connection(ours.front().minor))
      static_cast<void>(sys::umount(path, MNT_FORCE));
    auto now = our_mounts(TRY(sys::list_mounts()), path);
    bool gone = std::none_of(
        now.begin(), now.end(),
        [&](const sys::MountEntry& e) { return e.id == ours.front().id; });
    if (!gone) TRY_CTX(detach(path), fmt::format("cannot unmount {}", path));
    ++cleared;
  }
  return fail(Code::kInternal, "mounts at {} keep coming back", path);
}

}  // namespace stoplog::fs
