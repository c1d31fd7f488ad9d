// SPDX-License-Identifier: Apache-2.0
// FUSE requests to Tree calls: names, and the table of all of them. Attributes
// are in mount_ops_attr.cc, content in mount_ops_content.cc, listings in
// mount_ops_list.cc.
//
// Answered ENOSYS, so that the kernel never asks again: OPEN and OPENDIR (by
// their handlers), FLUSH, ACCESS, POLL (by being absent).
// Locks are the kernel's own: one connection a draft, so they are complete.
#include <fcntl.h>

#include "fs/mount_answer.h"

namespace stoplog::fs {
namespace {

using Impl = MountServer::Impl;

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
  conn->max_write = kMostContent;
  conn->max_readahead = kMostContent;
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

void op_open(fuse_req_t req, fuse_ino_t, fuse_file_info* file) {
  if (impl(req).options.refuses_opens) {
    fuse_reply_err(req, ENOSYS);
    return;
  }
  file->keep_cache = 1;
  fuse_reply_open(req, file);
}

}  // namespace

const fuse_lowlevel_ops kMountOps = [] {
  fuse_lowlevel_ops ops{};
  ops.init = op_init;
  ops.lookup = op_lookup;
  ops.forget = op_forget;
  ops.forget_multi = op_forget_multi;
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
  add_attr_ops(ops);
  add_content_ops(ops);
  add_list_ops(ops);
  return ops;
}();

}  // namespace stoplog::fs
