// SPDX-License-Identifier: Apache-2.0
#include "gate/disk.h"

#include <utility>

#include "base/dir.h"
#include "base/sys_attr.h"
#include "base/sys_node.h"
#include "base/temp_file.h"
#include "fs/beneath.h"
#include "fs/real.h"
#include "snapshot/content_digest.h"

namespace stoplog::gate {
namespace {

bool not_permitted(const Error& error) {
  return error.err() == EPERM || error.err() == EOPNOTSUPP ||
         error.err() == EACCES || error.err() == EINVAL;
}

}  // namespace

Status Disk::step(const char* call) const {
  if (!hook_) return {};
  std::lock_guard lock(hook_mutex_);
  if (int err = hook_(call); err != 0) return fail_errno(err);
  return {};
}

Result<Fd> Disk::open_dir(int root, const RelPath& path) const {
  TRY(step("openat2"));
  return fs::open_deep(root, path.str(), O_PATH | O_DIRECTORY);
}

Result<Fd> Disk::openat(int dir, const std::string& name, int flags,
                        mode_t mode) const {
  TRY(step("openat"));
  return sys::openat(dir, name, flags, mode);
}

Result<std::optional<sys::Stat>> Disk::statat(int dir,
                                              const std::string& name) const {
  TRY(step("statx"));
  auto stat = sys::statat(dir, name);
  if (!stat && (stat.error().err() == ENOENT || stat.error().err() == ENOTDIR))
    return std::nullopt;
  if (!stat) return std::unexpected(stat.error());
  return *stat;
}

Result<std::optional<Standing>> Disk::look(int dir, const std::string& name,
                                           bool hash) const {
  for (int attempt = 0;; ++attempt) {
    auto stat = TRY(statat(dir, name));
    if (!stat) return std::nullopt;
    bool last = attempt == 8;
    // One open serves for everything about a regular file.
    if (hash && S_ISREG(stat->mode)) {
      auto fd = sys::open_quiet(dir, name, O_RDONLY | O_NONBLOCK);
      if (!fd && fd.error().err() == ENOENT && !last) continue;
      if (!fd) return std::unexpected(fd.error());
      sys::Stat now = TRY(sys::fstat(fd->get()));
      if (now.ino != stat->ino && !last) continue;
      auto standing = look_open(fd->get(), now);
      if (!standing && standing.error().code() == Code::kDrift && !last)
        continue;
      if (!standing) return std::unexpected(standing.error());
      return std::move(*standing);
    }
    auto fd = sys::openat(dir, name, O_PATH);
    if (!fd && fd.error().err() == ENOENT) continue;
    if (!fd) return std::unexpected(fd.error());
    Standing standing{.node = {}, .stat = TRY(sys::fstat(fd->get()))};
    // Turned into a file between the two calls: look again.
    if (hash && S_ISREG(standing.stat.mode) && !last) continue;
    fs::NodeState state = fs::plain_state(standing.stat);
    if (state.type == fs::Type::kSymlink)
      state.target = TRY(sys::path_readlink(fd->get()));
    state.xattrs = TRY(fs::read_xattrs(fd->get()));
    standing.node = node_of(state, std::nullopt);
    return standing;
  }
}

Result<Standing> Disk::look_open(int fd, const sys::Stat& seen) const {
  TRY(step("read"));
  Standing standing{.node = {}, .stat = seen};
  fs::NodeState state = fs::plain_state(seen);
  auto names = sys::flistxattr(fd);
  // Where there are none at all, as on sshfs.
  if (!names && names.error().err() == EOPNOTSUPP)
    names = std::vector<std::string>();
  for (const std::string& name : TRY(std::move(names)))
    if (fs::is_kept_xattr(name))
      state.xattrs.emplace(name, TRY(sys::fgetxattr(fd, name)));
  Sha256Digest digest =
      TRY(snapshot::content_digest(snapshot::OpenContent(fd, seen)));
  standing.node = node_of(state, digest);
  return standing;
}

Status Disk::mkdirat(int dir, const std::string& name, mode_t mode) const {
  TRY(step("mkdirat"));
  return sys::mkdirat(dir, name, mode);
}

Status Disk::unlinkat(int dir, const std::string& name, int flags) const {
  TRY(step("unlinkat"));
  return sys::unlinkat(dir, name, flags);
}

Status Disk::linkat(int from_dir, const std::string& from, int to_dir,
                    const std::string& to) const {
  TRY(step("linkat"));
  return sys::linkat(from_dir, from, to_dir, to);
}

Status Disk::symlinkat(const std::string& target, int dir,
                       const std::string& name) const {
  TRY(step("symlinkat"));
  return sys::symlinkat(target, dir, name);
}

Status Disk::mknodat(int dir, const std::string& name, mode_t mode,
                     dev_t dev) const {
  TRY(step("mknodat"));
  return sys::mknodat(dir, name, mode, dev);
}

Status Disk::rename(int from_dir, const std::string& from, int to_dir,
                    const std::string& to, unsigned flags) const {
  TRY(step("renameat2"));
  return sys::renameat2(from_dir, from, to_dir, to, flags);
}

Status Disk::syncfs(int fd) const {
  TRY(step("syncfs"));
  // O_PATH descriptors cannot be synced.
  Fd real = TRY(sys::openat(fd, ".", O_RDONLY | O_DIRECTORY));
  return sys::syncfs(real.get());
}

Result<Sha256Digest> Disk::write_content(int fd,
                                         const fs::Content& content) const {
  TRY(step("write"));
  snapshot::ContentHasher hasher(content.size());
  uint64_t end = 0;
  TRY(snapshot::for_each_piece(content,
                               [&](uint64_t offset, auto bytes) -> Status {
                                 hasher.data(offset, bytes);
                                 end = offset + bytes.size();
                                 return sys::pwrite_full(fd, bytes, offset);
                               }));
  if (end != content.size()) {
    TRY(step("ftruncate"));
    TRY(sys::ftruncate(fd, content.size()));
  }
  return hasher.finish();
}

Status Disk::set_attributes(int path_fd, const Node& node,
                            const timespec* mtime,
                            std::vector<std::string>* missed) const {
  auto miss = [&](std::string what) {
    if (missed != nullptr) missed->push_back(std::move(what));
  };
  sys::Stat now = TRY(sys::fstat(path_fd));
  if (now.uid != node.uid || now.gid != node.gid) {
    TRY(step("fchownat"));
    Status owned = sys::path_chown(path_fd, node.uid, node.gid);
    if (!owned && !not_permitted(owned.error())) return owned;
    if (!owned) {
      miss(fmt::format("owner {}:{}", node.uid, node.gid));
      // The group alone may be within reach.
      (void)sys::path_chown(path_fd, static_cast<uid_t>(-1), node.gid);
    }
  }
  bool is_link = node.type == fs::Type::kSymlink;
  if (!is_link) {
    for (const auto& [name, value] : TRY(fs::read_xattrs(path_fd))) {
      if (node.xattrs.contains(name)) continue;
      TRY(step("removexattr"));
      Status gone = sys::path_removexattr(path_fd, name);
      if (!gone && gone.error().err() != ENODATA) miss("absence of " + name);
    }
    for (const auto& [name, value] : node.xattrs) {
      TRY(step("setxattr"));
      Status set = sys::path_setxattr(path_fd, name, value);
      if (!set && !not_permitted(set.error())) return set;
      if (!set) miss("attribute " + name);
    }
    // After the owner, whose change clears setuid, and after the ACL, whose
    // mask is part of the mode.
    if ((TRY(sys::fstat(path_fd)).mode & 07777) != node.mode) {
      TRY(step("chmod"));
      TRY(sys::path_chmod(path_fd, node.mode));
    }
  }
  if (mtime != nullptr) {
    TRY(step("utimensat"));
    TRY(sys::path_set_mtime(path_fd, *mtime));
  }
  return {};
}

Result<sys::Stat> Disk::set_new_attributes(
    int fd, const Node& node, std::vector<std::string>* missed) const {
  TRY(step("futimens"));
  TRY(sys::futimens(fd, {0, UTIME_OMIT}, node.mtime));
  sys::Stat now = TRY(sys::fstat(fd));
  bool owned = now.uid == node.uid && now.gid == node.gid;
  // Most are as they were made.
  if (owned && (now.mode & 07777) == node.mode && node.xattrs.empty())
    return now;
  if (!owned) {
    TRY(step("fchown"));
    Status given = sys::fchown(fd, node.uid, node.gid);
    if (!given && !not_permitted(given.error()))
      return std::unexpected(given.error());
    if (!given) {
      missed->push_back(fmt::format("owner {}:{}", node.uid, node.gid));
      (void)sys::fchown(fd, static_cast<uid_t>(-1), node.gid);
    }
  }
  for (const auto& [name, value] : node.xattrs) {
    TRY(step("fsetxattr"));
    Status set = sys::fsetxattr(fd, name, value);
    if (!set && !not_permitted(set.error()))
      return std::unexpected(set.error());
    if (!set) missed->push_back("attribute " + name);
  }
  TRY(step("fchmod"));
  TRY(sys::fchmod(fd, node.mode));
  return sys::fstat(fd);
}

Status Disk::set_mtime(int path_fd, const timespec& mtime) const {
  TRY(step("utimensat"));
  return sys::path_set_mtime(path_fd, mtime);
}

Status Disk::write_file(int dir, const std::string& name,
                        std::string_view bytes, Sync sync) const {
  TRY(step("create"));
  TempFile file = TRY(TempFile::create(dir, 0600));
  TRY(step("write"));
  TRY(sys::write_full(file.fd(), bytes));
  TRY(step("fsync"));
  return file.commit(name, Replace::kYes, sync);
}

Status Disk::remove_tree(int dir, const std::string& name) const {
  TRY(step("remove"));
  return stoplog::remove_tree(dir, name);
}

}  // namespace stoplog::gate
