// SPDX-License-Identifier: Apache-2.0
// How the handlers of fs/mount_ops*.cc answer: each asks the tree inside of
// attempt(), which turns exceptions into EIO, and then replies once. Not for
// others.
//
//   answer_status(req, [&] { return impl(req).tree.fsync(); });
#pragma once

#include "fs/mount_impl.h"

namespace stoplog::fs {

inline MountServer::Impl& impl(fuse_req_t req) {
  return *static_cast<MountServer::Impl*>(fuse_req_userdata(req));
}

inline Caller caller(fuse_req_t req) {
  return impl(req).caller(*fuse_req_ctx(req));
}

inline bool is_full(int err) { return err == ENOSPC || err == EDQUOT; }

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

inline void reply_status(fuse_req_t req, const Status& status) {
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
  MountServer::Impl& self = impl(req);
  if (fuse_reply_entry(req, &answer->shown) != 0) self.forget(answer->id, 1);
}

// A reply buffer of this request, at least `size` long; the same one again for
// the same or a smaller size.
inline char* scratch(size_t size) {
  CurrentRequest& current = current_request();
  if (current.slot != nullptr) {
    auto room = current.slot->room();
    if (room.size() >= size) return reinterpret_cast<char*>(room.data());
  }
  auto& buffer = current.scratch;
  if (buffer.size() < size) buffer.resize(size);
  return buffer.data();
}

// The rest of the table: attributes (mount_ops_attr.cc), content
// (mount_ops_content.cc), listings (mount_ops_list.cc).
void add_attr_ops(fuse_lowlevel_ops& ops);
void add_content_ops(fuse_lowlevel_ops& ops);
void add_list_ops(fuse_lowlevel_ops& ops);

}  // namespace stoplog::fs
