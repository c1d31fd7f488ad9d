// SPDX-License-Identifier: Apache-2.0
// Listings, with and without the attributes of what is listed.
#include <climits>

#include "fs/mount_answer.h"

namespace stoplog::fs {
namespace {

using Impl = MountServer::Impl;

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
    fuse_reply_buf(req, scratch(*used), *used);
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
    refused = fuse_reply_buf(req, scratch(*used), *used);
  else
    fuse_reply_err(req, used.error().errno_or_eio());
  if (!used || refused != 0)
    for (NodeId node : given) self.forget(node, 1);
}

}  // namespace

void add_list_ops(fuse_lowlevel_ops& ops) {
  ops.readdir = op_readdir;
  ops.readdirplus = op_readdirplus;
}

}  // namespace stoplog::fs
