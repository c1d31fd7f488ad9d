// SPDX-License-Identifier: Apache-2.0
// FUSE requests to Tree calls. Each handler asks the tree inside of attempt(),
// which turns exceptions into EIO, and then replies once.
//
// Answered ENOSYS, so that the kernel never asks again: OPEN and OPENDIR (by
// their handlers), FLUSH, ACCESS, POLL (by being absent).
// Locks are the kernel's own: one connection a draft, so they are complete.
#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "base/sys_node.h"
#include "fs/mount_impl.h"

namespace stoplog::fs {
namespace {

using Impl = MountServer::Impl;

Impl& impl(fuse_req_t req) {
  return *static_cast<Impl*>(fuse_req_userdata(req));
}

Caller caller(fuse_req_t req) { return impl(req).caller(*fuse_req_ctx(req)); }

bool is_full(int err) { return err == ENOSPC || err == EDQUOT; }

// Runs `ask` so that nothing it throws gets into libfuse's C frames. What found
// no room is tried once more when some could be made: it has changed nothing.
template <typename Ask>
auto attempt(fuse_req_t req, Ask ask) -> decltype(ask()) {
  try {
    auto got = ask();
    if (got || !is_full(got.error().err()) || !impl(req).tree.make_room())
      return got;
    return ask();
  } catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
  } catch (const std::exception& error) {
    impl(req).log(fmt::format("request {} failed: {}",
                              wire::opcode_name(current_request().raw.opcode()),
                              error.what()));
  } catch (...) {
    impl(req).log("request failed with an unknown exception");
  }
  return fail_errno(EIO);
}

void reply_status(fuse_req_t req, const Status& status) {
  fuse_reply_err(req, status ? 0 : status.error().errno_or_eio());
}

template <typename Ask>
void answer_status(fuse_req_t req, Ask ask) {
  reply_status(req, attempt(req, ask));
}

struct Answer {
  NodeId id;
  fuse_entry_param shown;
};

// Asks for an entry of `parent`: the watch comes before the look.
template <typename Ask>
Result<Answer> ask_entry(fuse_req_t req, NodeId parent, Ask ask) {
  return attempt(req, [&]() -> Result<Answer> {
    bool covered = impl(req).cover_directory(parent);
    Entry entry = TRY(ask());
    impl(req).settle_entry(entry);
    return Answer{entry.id, impl(req).shown_entry(entry, covered)};
  });
}

// Replies with an entry of `parent`; a reply that the kernel refused (the
// caller was killed) takes its lookup back.
template <typename Ask>
void answer_entry(fuse_req_t req, NodeId parent, Ask ask) {
  auto answer = ask_entry(req, parent, ask);
  if (!answer) {
    fuse_reply_err(req, answer.error().errno_or_eio());
    return;
  }
  Impl& self = impl(req);
  if (fuse_reply_entry(req, &answer->shown) != 0) self.forget(answer->id, 1);
}

void op_init(void* userdata, fuse_conn_info* conn) {
  auto& self = *static_cast<Impl*>(userdata);
  // ATOMIC_O_TRUNC, which libfuse turns on, would leave the old tail: with OPEN
  // unanswered nobody truncates. WRITEBACK_CACHE: see docs/DECISIONS.md.
  unsigned want = FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS |
                  FUSE_CAP_READDIRPLUS | FUSE_CAP_CACHE_SYMLINKS |
                  FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK |
                  FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_NO_OPENDIR_SUPPORT |
                  FUSE_CAP_EXPIRE_ONLY;
  // Drops cached pages when the mtime differs: after every own write too, so
  // only where no watch reports changes.
  if (!self.watch) want |= FUSE_CAP_AUTO_INVAL_DATA;
  conn->want = want & conn->capable;
  conn->max_write = 1u << 20;
  conn->max_readahead = 1u << 20;
  conn->max_background = 64;
  conn->congestion_threshold = 48;
  conn->time_gran = 1;
}

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  Impl& self = impl(req);
  bool covered = false;
  auto found = attempt(req, [&]() -> Result<Entry> {
    covered = self.cover_directory(parent);
    Entry entry = TRY(self.tree.lookup(parent, name));
    self.settle_entry(entry);
    return entry;
  });
  if (!found && found.error().err() == ENOENT) {
    fuse_entry_param absent{};
    absent.entry_timeout = covered ? 1e9 : 1.0;
    fuse_reply_entry(req, &absent);
    return;
  }
  if (!found) {
    fuse_reply_err(req, found.error().errno_or_eio());
    return;
  }
  fuse_entry_param shown = self.shown_entry(*found, covered);
  if (fuse_reply_entry(req, &shown) != 0) self.forget(found->id, 1);
}

void op_forget(fuse_req_t req, fuse_ino_t node, uint64_t count) {
  static_cast<void>(attempt(req, [&]() -> Status {
    impl(req).forget(node, count);
    return {};
  }));
  fuse_reply_none(req);
}

void op_forget_multi(fuse_req_t req, size_t count, fuse_forget_data* nodes) {
  static_cast<void>(attempt(req, [&]() -> Status {
    for (size_t i = 0; i < count; ++i)
      impl(req).forget(nodes[i].ino, nodes[i].nlookup);
    return {};
  }));
  fuse_reply_none(req);
}

void reply_attr(fuse_req_t req, const Result<Entry>& entry) {
  if (!entry) {
    fuse_reply_err(req, entry.error().errno_or_eio());
    return;
  }
  struct stat shown = impl(req).shown(entry->attr);
  double timeout = impl(req).attr_timeout_alone(*entry);
  fuse_reply_attr(req, &shown, timeout);
}

void op_getattr(fuse_req_t req, fuse_ino_t node, fuse_file_info*) {
  reply_attr(req, attempt(req, [&]() -> Result<Entry> {
               Impl& self = impl(req);
               // The root is never looked up; here is where it is first seen.
               if (node == kRootId) self.cover_directory(node);
               Entry entry = TRY(self.tree.getattr(node));
               self.settle_entry(entry);
               return entry;
             }));
}

SetAttr set_attr(const Impl& self, const struct stat& attr, int to_set) {
  constexpr std::pair<int, uint32_t> kBits[] = {
      {FUSE_SET_ATTR_MODE, kSetMode},
      {FUSE_SET_ATTR_UID, kSetUid},
      {FUSE_SET_ATTR_GID, kSetGid},
      {FUSE_SET_ATTR_SIZE, kSetSize},
      {FUSE_SET_ATTR_ATIME, kSetAtime},
      {FUSE_SET_ATTR_MTIME, kSetMtime},
      {FUSE_SET_ATTR_CTIME, kSetCtime},
      {FUSE_SET_ATTR_ATIME_NOW, kSetAtimeNow},
      {FUSE_SET_ATTR_MTIME_NOW, kSetMtimeNow},
  };
  SetAttr out;
  for (auto [from, to] : kBits)
    if ((to_set & from) != 0) out.set |= to;
  out.mode = attr.st_mode & 07777;
  out.uid = self.options.ids.true_uid(attr.st_uid);
  out.gid = self.options.ids.true_gid(attr.st_gid);
  out.size = static_cast<uint64_t>(attr.st_size);
  out.atime = attr.st_atim;
  out.mtime = attr.st_mtim;
  out.ctime = attr.st_ctim;
  return out;
}

// What a change by another takes away.
bool is_privileged(mode_t mode) {
  constexpr mode_t kGroup = S_ISGID | S_IXGRP;
  return !S_ISDIR(mode) && ((mode & S_ISUID) != 0 || (mode & kGroup) == kGroup);
}

void op_setattr(fuse_req_t req, fuse_ino_t node, struct stat* attr, int to_set,
                fuse_file_info*) {
  reply_attr(req, attempt(req, [&]() -> Result<Entry> {
               Impl& self = impl(req);
               SetAttr set = set_attr(self, *attr, to_set);
               if (current_request().raw.kills_suidgid())
                 set.set |= kKillSuidgid;
               // Nothing is asked for by a chown that names nobody, which moves
               // the ctime, and ahead of a write that will take bits away, by
               // its own word where the caller is another than the owner.
               bool nothing = to_set == 0;
               if (nothing || (set.set & (kSetUid | kSetGid)) != 0) {
                 Entry now = TRY(self.tree.getattr(node));
                 uint32_t uid = caller(req).uid;
                 bool stranger = uid != 0 && uid != now.attr.uid;
                 if (nothing && stranger && is_privileged(now.attr.mode))
                   return now;
                 if (nothing) {
                   set.set |= kSetCtime;
                   set.ctime = sys::coarse_now();
                 }
                 // The kernel leaves the clearing to us without a word
                 // (FUSE_HANDLE_KILLPRIV_V2), and chown always clears what is
                 // no directory's.
                 if (!S_ISDIR(now.attr.mode)) set.set |= kKillSuidgid;
                 const IdMap& ids = self.options.ids;
                 set.uid = ids.chown_uid(attr->st_uid, now.attr.uid);
                 set.gid = ids.chown_gid(attr->st_gid, now.attr.gid);
               }
               return self.tree.setattr(node, set, caller(req));
             }));
}

void op_readlink(fuse_req_t req, fuse_ino_t node) {
  auto target = attempt(req, [&] { return impl(req).tree.readlink(node); });
  if (target)
    fuse_reply_readlink(req, target->c_str());
  else
    fuse_reply_err(req, target.error().errno_or_eio());
}

void op_mknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
              dev_t rdev) {
  answer_entry(req, parent, [&] {
    return impl(req).tree.mknod(parent, name, mode, rdev, caller(req));
  });
}

// A file made to be written only is direct: buffered, its first write(2) would
// ask for security.capability (the kernel forgets that there is none with every
// refresh of attributes), a fifth request for each file made. Nothing is lost:
// it cannot be mapped or read through this descriptor, and a page that was not
// written whole would not stay cached.
void op_create(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
               fuse_file_info* file) {
  auto answer = ask_entry(req, parent, [&] {
    return impl(req).tree.mknod(parent, name, (mode & 07777) | S_IFREG, 0,
                                caller(req));
  });
  if (!answer) {
    int err = answer.error().errno_or_eio();
    // The kernel's absent name was out of date: ESTALE makes it look again and
    // open what stands there, with all of its checks.
    fuse_reply_err(req, err == EEXIST ? ESTALE : err);
    return;
  }
  file->direct_io = (file->flags & O_ACCMODE) == O_WRONLY ? 1 : 0;
  file->keep_cache = 1;
  Impl& self = impl(req);
  if (fuse_reply_create(req, &answer->shown, file) != 0)
    self.forget(answer->id, 1);
}

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char* name,
              mode_t mode) {
  answer_entry(req, parent, [&] {
    return impl(req).tree.mkdir(parent, name, mode, caller(req));
  });
}

void op_symlink(fuse_req_t req, const char* target, fuse_ino_t parent,
                const char* name) {
  answer_entry(req, parent, [&] {
    return impl(req).tree.symlink(parent, name, target, caller(req));
  });
}

void op_link(fuse_req_t req, fuse_ino_t node, fuse_ino_t parent,
             const char* name) {
  answer_entry(req, parent, [&] {
    return impl(req).tree.link(node, parent, name, caller(req));
  });
}

void op_unlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  answer_status(
      req, [&] { return impl(req).tree.unlink(parent, name, caller(req)); });
}

void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  answer_status(
      req, [&] { return impl(req).tree.rmdir(parent, name, caller(req)); });
}

void op_rename(fuse_req_t req, fuse_ino_t parent, const char* name,
               fuse_ino_t new_parent, const char* new_name, unsigned flags) {
  answer_status(req, [&] {
    return impl(req).tree.rename(parent, name, new_parent, new_name, flags,
                                 caller(req));
  });
}

void op_open(fuse_req_t req, fuse_ino_t, fuse_file_info*) {
  fuse_reply_err(req, ENOSYS);
}

// A reply buffer of this thread, at least `size` long.
char* scratch(size_t size) {
  auto& buffer = current_request().scratch;
  if (buffer.size() < size) buffer.resize(size);
  return buffer.data();
}

void op_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
             fuse_file_info*) {
  auto got = attempt(req, [&]() -> Result<size_t> {
    std::span out(reinterpret_cast<std::byte*>(scratch(size)), size);
    MountServer::Impl& self = impl(req);
    size_t read = TRY(self.tree.read(node, static_cast<uint64_t>(offset), out));
    if (fuse_req_ctx(req)->pid == self.warmer) self.warmed_bytes += read;
    return read;
  });
  if (got)
    fuse_reply_buf(req, current_request().scratch.data(), *got);
  else
    fuse_reply_err(req, got.error().errno_or_eio());
}

void op_write(fuse_req_t req, fuse_ino_t node, const char* data, size_t size,
              off_t offset, fuse_file_info*) {
  auto put = attempt(req, [&]() -> Result<size_t> {
    const wire::Raw& raw = current_request().raw;
    std::span bytes(reinterpret_cast<const std::byte*>(data), size);
    return impl(req).tree.write(
        node, static_cast<uint64_t>(offset), bytes,
        {.kill_suidgid = raw.kills_suidgid(), .writeback = raw.is_writeback()});
  });
  if (put)
    fuse_reply_write(req, *put);
  else
    fuse_reply_err(req, put.error().errno_or_eio());
}

void op_fsync(fuse_req_t req, fuse_ino_t, int, fuse_file_info*) {
  answer_status(req, [&] { return impl(req).tree.fsync(); });
}

// One listing into the reply buffer. `Add` appends an item and returns the
// bytes it needs, more than `room` when it did not fit.
template <typename Add>
Result<size_t> list(fuse_req_t req, NodeId dir, size_t size, uint64_t cookie,
                    bool plus, Add add) {
  Impl& self = impl(req);
  char* buffer = scratch(size);
  size_t used = 0;
  DirSink sink = [&](const DirItem& item) {
    char name[NAME_MAX + 1] = {};
    item.name.copy(name, NAME_MAX);
    size_t need = add(buffer + used, size - used, name, item);
    if (need > size - used) return false;
    used += need;
    return true;
  };
  auto status = plus ? self.tree.readdir_plus(dir, cookie, sink)
                     : self.tree.readdir(dir, cookie, sink);
  // What fitted before an error is good, and the error comes with the next.
  if (!status && used == 0) return std::unexpected(std::move(status).error());
  return used;
}

void op_readdir(fuse_req_t req, fuse_ino_t dir, size_t size, off_t offset,
                fuse_file_info*) {
  auto used = attempt(req, [&] {
    impl(req).cover_directory(dir);
    return list(
        req, dir, size, static_cast<uint64_t>(offset), false,
        [&](char* at, size_t room, const char* name, const DirItem& item) {
          struct stat attr{};
          attr.st_ino = item.ino;
          attr.st_mode = item.type;
          return fuse_add_direntry(req, at, room, name, &attr,
                                   static_cast<off_t>(item.cookie));
        });
  });
  if (used)
    fuse_reply_buf(req, current_request().scratch.data(), *used);
  else
    fuse_reply_err(req, used.error().errno_or_eio());
}

void op_readdirplus(fuse_req_t req, fuse_ino_t dir, size_t size, off_t offset,
                    fuse_file_info*) {
  Impl& self = impl(req);
  std::vector<NodeId> given;
  auto used = attempt(req, [&] {
    bool covered = self.cover_directory(dir);
    auto add = [&](char* at, size_t room, const char* name,
                   const DirItem& item) {
      fuse_entry_param shown{};
      shown.attr.st_ino = item.ino;
      shown.attr.st_mode = item.type;
      auto cookie = static_cast<off_t>(item.cookie);
      size_t need = fuse_add_direntry_plus(req, nullptr, 0, name, &shown, 0);
      if (need > room) return need;
      if (item.entry != nullptr) {
        Entry entry = *item.entry;
        self.settle_entry(entry);
        shown = self.shown_entry(entry, covered);
        given.push_back(entry.id);
      }
      return fuse_add_direntry_plus(req, at, room, name, &shown, cookie);
    };
    return list(req, dir, size, static_cast<uint64_t>(offset), true, add);
  });
  int refused = 0;
  if (used)
    refused = fuse_reply_buf(req, current_request().scratch.data(), *used);
  else
    fuse_reply_err(req, used.error().errno_or_eio());
  if (!used || refused != 0)
    for (NodeId node : given) self.forget(node, 1);
}

void op_statfs(fuse_req_t req, fuse_ino_t) {
  auto stat = attempt(req, [&] { return impl(req).tree.statfs(); });
  if (stat)
    fuse_reply_statfs(req, &*stat);
  else
    fuse_reply_err(req, stat.error().errno_or_eio());
}

void op_setxattr(fuse_req_t req, fuse_ino_t node, const char* name,
                 const char* value, size_t size, int flags) {
  answer_status(req, [&]() -> Status {
    Impl& self = impl(req);
    std::string data(value, size);
    if (is_acl_name(name)) data = TRY(self.options.ids.true_acl(data));
    Caller who = caller(req);
    who.fsetid =
        (current_request().setxattr_flags & FUSE_SETXATTR_ACL_KILL_SGID) == 0;
    return self.tree.setxattr(node, name, data, flags, who);
  });
}

// size 0 asks for the length alone.
void reply_bytes(fuse_req_t req, const Result<std::string>& bytes,
                 size_t size) {
  if (!bytes)
    fuse_reply_err(req, bytes.error().errno_or_eio());
  else if (size == 0)
    fuse_reply_xattr(req, bytes->size());
  else if (bytes->size() > size)
    fuse_reply_err(req, ERANGE);
  else
    fuse_reply_buf(req, bytes->data(), bytes->size());
}

void op_getxattr(fuse_req_t req, fuse_ino_t node, const char* name,
                 size_t size) {
  auto value = attempt(req, [&]() -> Result<std::string> {
    std::string got = TRY(impl(req).tree.getxattr(node, name));
    if (is_acl_name(name)) return impl(req).options.ids.shown_acl(got);
    return got;
  });
  reply_bytes(req, value, size);
}

void op_listxattr(fuse_req_t req, fuse_ino_t node, size_t size) {
  auto joined = attempt(req, [&]() -> Result<std::string> {
    std::string out;
    for (const auto& name : TRY(impl(req).tree.listxattr(node)))
      out.append(name).push_back('\0');
    return out;
  });
  reply_bytes(req, joined, size);
}

void op_removexattr(fuse_req_t req, fuse_ino_t node, const char* name) {
  answer_status(req, [&] { return impl(req).tree.removexattr(node, name); });
}

// For requests in which the kernel does not say whether the caller has
// CAP_FSETID: root has.
WriteFlags change_by(fuse_req_t req) {
  return {.kill_suidgid = fuse_req_ctx(req)->uid != 0};
}

void op_fallocate(fuse_req_t req, fuse_ino_t node, int mode, off_t offset,
                  off_t length, fuse_file_info*) {
  answer_status(req, [&] {
    return impl(req).tree.fallocate(node, mode, static_cast<uint64_t>(offset),
                                    static_cast<uint64_t>(length),
                                    change_by(req));
  });
}

void op_lseek(fuse_req_t req, fuse_ino_t node, off_t offset, int whence,
              fuse_file_info*) {
  auto at = attempt(req, [&] {
    return impl(req).tree.lseek(node, static_cast<uint64_t>(offset), whence);
  });
  if (at)
    fuse_reply_lseek(req, static_cast<off_t>(*at));
  else
    fuse_reply_err(req, at.error().errno_or_eio());
}

void op_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_offset,
                        fuse_file_info*, fuse_ino_t to, off_t to_offset,
                        fuse_file_info*, size_t length, int flags) {
  if (flags != 0) {
    fuse_reply_err(req, EINVAL);
    return;
  }
  auto copied = attempt(req, [&] {
    // The reply's count has 32 bits.
    return impl(req).tree.copy_range(
        from, static_cast<uint64_t>(from_offset), to,
        static_cast<uint64_t>(to_offset),
        std::min<uint64_t>(length, uint64_t{1} << 30), change_by(req));
  });
  if (copied)
    fuse_reply_write(req, *copied);
  else
    fuse_reply_err(req, copied.error().errno_or_eio());
}

}  // namespace

const fuse_lowlevel_ops kMountOps = [] {
  fuse_lowlevel_ops ops{};
  ops.init = op_init;
  ops.lookup = op_lookup;
  ops.forget = op_forget;
  ops.forget_multi = op_forget_multi;
  ops.getattr = op_getattr;
  ops.setattr = op_setattr;
  ops.readlink = op_readlink;
  ops.mknod = op_mknod;
  ops.create = op_create;
  ops.mkdir = op_mkdir;
  ops.symlink = op_symlink;
  ops.link = op_link;
  ops.unlink = op_unlink;
  ops.rmdir = op_rmdir;
  ops.rename = op_rename;
  ops.open = op_open;
  ops.opendir = op_open;
  ops.read = op_read;
  ops.write = op_write;
  ops.fsync = op_fsync;
  ops.fsyncdir = op_fsync;
  ops.readdir = op_readdir;
  ops.readdirplus = op_readdirplus;
  ops.statfs = op_statfs;
  ops.setxattr = op_setxattr;
  ops.getxattr = op_getxattr;
  ops.listxattr = op_listxattr;
  ops.removexattr = op_removexattr;
  ops.fallocate = op_fallocate;
  ops.lseek = op_lseek;
  ops.copy_file_range = op_copy_file_range;
  return ops;
}();

}  // namespace stoplog::fs
