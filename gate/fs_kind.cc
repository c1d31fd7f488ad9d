// SPDX-License-Identifier: Apache-2.0
#include "gate/fs_kind.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include <algorithm>

#include "base/escape.h"
#include "base/result.h"
#include "base/sys_file.h"
#include "base/sys_fuse.h"

namespace stoplog::gate {
namespace {

struct Row {
  long type;
  const char* name;
  bool network, folds_case;
};
// linux/magic.h lacks half of these.
constexpr Row kRows[] = {
    {0x6969, "NFS", true, false},
    {0xff534d42, "SMB", true, true},
    {0xfe534d42, "SMB", true, true},
    {0x517b, "SMB", true, true},
    {0x01021997, "9P", true, false},
    {0x00c36400, "Ceph", true, false},
    {0x0bd00bd0, "Lustre", true, false},
    {0x5346414f, "AFS", true, false},
    {0x73757245, "Coda", true, false},
    {0x65735546, "FUSE", false, false},
    {0x4d44, "FAT", false, true},
    {0x2011bab0, "exFAT", false, true},
    {0x7366746e, "NTFS", false, true},
    {0x482b, "HFS+", false, true},
    {0xef53, "ext4", false, false},
    {0x58465342, "XFS", false, false},
    {0x9123683e, "Btrfs", false, false},
    {0x01021994, "tmpfs", false, false},
    {0x794c7630, "overlayfs", false, false},
};

// Which of all that are served through FUSE: what mounted it says "fuse.sshfs".
std::string fuse_name(int fd) {
  auto stat = sys::fstat(fd);
  auto mounts = sys::list_mounts();
  if (!stat || !mounts) return "FUSE";
  for (const sys::MountEntry& mount : *mounts)
    if (makedev(mount.major, mount.minor) == stat->dev &&
        mount.type.starts_with("fuse."))
      return fmt::format("FUSE, {}", escape(mount.type.substr(5)));
  return "FUSE";
}

}  // namespace

FsKind kind_of_type(long type) {
  for (const Row& row : kRows)
    if (row.type == (type & 0xffffffffL))
      return {row.name, row.network, row.folds_case};
  return {fmt::format("type {:#x}", static_cast<unsigned long>(type)), false,
          false};
}

FsKind kind_of_dir(int fd) {
  struct statfs fs{};
  if (::fstatfs(fd, &fs) != 0) return {"unknown", false, false};
  FsKind kind = kind_of_type(static_cast<long>(fs.f_type));
  if (kind.name == "FUSE") kind.name = fuse_name(fd);
  int flags = 0;
  // O_PATH descriptors know no ioctl.
  auto real = sys::openat(fd, ".", O_RDONLY | O_DIRECTORY);
  if (real && ::ioctl(real->get(), FS_IOC_GETFLAGS, &flags) == 0 &&
      (flags & FS_CASEFOLD_FL) != 0)
    kind.folds_case = true;
  return kind;
}

bool equal_but_for_case(std::string_view a, std::string_view b) {
  auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return a != b && std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace stoplog::gate
