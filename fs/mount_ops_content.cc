// SPDX-License-Identifier: Apache-2.0
// Requests that read and write what a file holds.
#include <algorithm>

#include "fs/mount_answer.h"

namespace stoplog::fs {
namespace {

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
    fuse_reply_buf(req, scratch(*got), *got);
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

void add_content_ops(fuse_lowlevel_ops& ops) {
  ops.read = op_read;
  ops.write = op_write;
  ops.fsync = op_fsync;
  ops.fsyncdir = op_fsync;
  ops.fallocate = op_fallocate;
  ops.lseek = op_lseek;
  ops.copy_file_range = op_copy_file_range;
}

}  // namespace stoplog::fs
