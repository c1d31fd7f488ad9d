// SPDX-License-Identifier: Apache-2.0
// Requests that libfuse 3.14 does not know, or that it would keep state for.
#include <sys/uio.h>

#include <cmath>

#include "fs/mount_impl.h"

namespace stoplog::fs {
namespace {

fuse_attr wire_attr(const struct stat& stat) {
  fuse_attr out{};
  out.ino = stat.st_ino;
  out.size = static_cast<uint64_t>(stat.st_size);
  out.blocks = static_cast<uint64_t>(stat.st_blocks);
  out.atime = static_cast<uint64_t>(stat.st_atim.tv_sec);
  out.mtime = static_cast<uint64_t>(stat.st_mtim.tv_sec);
  out.ctime = static_cast<uint64_t>(stat.st_ctim.tv_sec);
  out.atimensec = static_cast<uint32_t>(stat.st_atim.tv_nsec);
  out.mtimensec = static_cast<uint32_t>(stat.st_mtim.tv_nsec);
  out.ctimensec = static_cast<uint32_t>(stat.st_ctim.tv_nsec);
  out.mode = stat.st_mode;
  out.nlink = static_cast<uint32_t>(stat.st_nlink);
  out.uid = stat.st_uid;
  out.gid = stat.st_gid;
  out.blksize = static_cast<uint32_t>(stat.st_blksize);
  return out;
}

void write_bytes(MountServer::Impl& self, std::string bytes, bool* refused) {
  iovec part{bytes.data(), bytes.size()};
  *refused = self.write_reply(&part, 1) < 0;
}

// O_TMPFILE: an entry and an open file in one answer. The file is closed with
// a RELEASE, which libfuse answers by itself.
void serve_tmpfile(MountServer::Impl& self, const wire::Raw& raw) {
  fuse_in_header header = raw.header();
  auto in = raw.argument<fuse_create_in>();
  bool refused = false;
  Result<Entry> made = fail_errno(EIO);
  try {
    fuse_ctx ctx{};
    ctx.uid = header.uid;
    ctx.gid = header.gid;
    ctx.pid = static_cast<pid_t>(header.pid);
    ctx.umask = in.umask;
    made = self.tree.tmpfile(header.nodeid, in.mode, self.caller(ctx));
  } catch (const std::exception& error) {
    self.log(fmt::format("request TMPFILE failed: {}", error.what()));
  }
  if (!made) {
    write_bytes(self,
                wire::error_reply(header.unique, made.error().errno_or_eio()),
                &refused);
    return;
  }
  fuse_entry_param shown = self.shown_entry(*made, true);
  fuse_entry_out entry{};
  entry.nodeid = made->id;
  entry.entry_valid = static_cast<uint64_t>(shown.entry_timeout);
  entry.attr_valid = static_cast<uint64_t>(shown.attr_timeout);
  entry.attr = wire_attr(shown.attr);
  fuse_open_out open{};
  open.open_flags = FOPEN_KEEP_CACHE;
  write_bytes(self, wire::reply(header.unique, entry, open), &refused);
  if (refused) self.forget(made->id, 1);
}

}  // namespace

bool MountServer::Impl::serve_raw(const wire::Raw& raw) {
  bool refused = false;
  switch (raw.opcode()) {
    case FUSE_INTERRUPT:
      // No request waits for anything that an interrupt could end; ENOSYS once
      // and the kernel sends no more of them.
      write_bytes(*this, wire::error_reply(raw.header().unique, ENOSYS),
                  &refused);
      return true;
    case FUSE_TMPFILE:
      serve_tmpfile(*this, raw);
      return true;
    default:
      return false;
  }
}

}  // namespace stoplog::fs
