// SPDX-License-Identifier: Apache-2.0
// Requests about a node's attributes, extended ones and those of the whole.
#include <utility>

#include "base/sys_node.h"
#include "fs/mount_answer.h"

namespace stoplog::fs {
namespace {

using Impl = MountServer::Impl;

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

}  // namespace

void add_attr_ops(fuse_lowlevel_ops& ops) {
  ops.getattr = op_getattr;
  ops.setattr = op_setattr;
  ops.statfs = op_statfs;
  ops.setxattr = op_setxattr;
  ops.getxattr = op_getxattr;
  ops.listxattr = op_listxattr;
  ops.removexattr = op_removexattr;
}

}  // namespace stoplog::fs
