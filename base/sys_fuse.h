// SPDX-License-Identifier: Apache-2.0
// The kernel's side of a FUSE mount: the device, mount(2), fusermount3, and
// what aborts a connection. fs/mount_device decides which of them to call.
//
//   Fd dev = TRY(sys::open_fuse_device());
//   TRY(sys::mount_fuse(target_fd, "fuse.stoplog", "stoplog", flags, options));
//   Fd reader = TRY(sys::clone_fuse_device(dev.get()));
//
// All fds are close-on-exec. run_fusermount() forks: call it before there are
// threads that hold locks the child could need (it only execs).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog::sys {

Result<Fd> open_fuse_device();
// A second device of the same connection. Requests read from it are answered
// through it, and end with ECONNABORTED when it is closed while `device` lives.
Result<Fd> clone_fuse_device(int device);
// mount(2) over the directory behind `target` (any fd, O_PATH too).
Status mount_fuse(int target, const std::string& type,
                  const std::string& source, unsigned long flags,
                  const std::string& options);
// umount2(2) with UMOUNT_NOFOLLOW added.
Status umount(const std::string& path, int flags);
// Where fusermount3 is looked for, in this order.
inline constexpr const char* kFusermountPlaces[] = {
    "/usr/bin/fusermount3", "/bin/fusermount3", "/usr/local/bin/fusermount3",
    "/run/wrappers/bin/fusermount3"};
// fusermount3 ARGUMENTS..., its device fd received over _FUSE_COMMFD when
// `wants_device`. Its complaint on stderr becomes the error's message.
Result<Fd> run_fusermount(const std::vector<std::string>& arguments,
                          bool wants_device);
// One line per mount of this mount namespace: what is mounted at `path`,
// topmost last. mountinfo's octal escapes are undone.
struct MountEntry {
  uint64_t id = 0;
  unsigned major = 0;
  unsigned minor = 0;
  std::string root;
  std::string path;
  std::string type;
  std::string source;
};
Result<std::vector<MountEntry>> list_mounts();
std::vector<MountEntry> parse_mountinfo(const std::string& text);
// MINOR/abort of fusectl, open to be written to: allowed to the connection's
// owner. ENOENT where the connection is gone, or fusectl is not mounted at
// /sys/fs/fuse/connections and we may not mount one for ourselves.
Result<Fd> open_fuse_abort(unsigned minor);
Status abort_fuse_connection(unsigned minor);
// Gives the calling thread a descriptor table of its own in which `kept` alone
// is open: what the rest of the process closes by dying is then closed, though
// this thread may hang in the kernel.
Status keep_only_fd(int kept);
// /sys/class/bdi: the kernel reads ahead 128 KiB otherwise, whatever INIT says.
// Needs root.
Status set_read_ahead(unsigned minor, unsigned kilobytes);
// f_type of the file system behind fd.
Result<uint64_t> fs_magic(int fd);

}  // namespace stoplog::sys
