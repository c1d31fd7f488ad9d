// SPDX-License-Identifier: Apache-2.0
// Reading and writing content. No tree lock is held during I/O: a file has its
// own lock, so a slow file delays nobody else.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/sys_node.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

constexpr uint64_t kMaxSize = INT64_MAX;
constexpr uint64_t kCopyStep = 1u << 20;

bool is_full(const Error& error) {
  return error.err() == ENOSPC || error.err() == EDQUOT;
}

// A program sees EIO; whoever looks after the draft is told which file it is.
Error damage_of(Tree::Impl& t, NodeId id, Error error) {
  std::string path;
  {
    std::shared_lock lock(t.mutex_);
    if (const Live* live = t.get(id)) path = t.draft_path(*live).value_or("");
  }
  t.note_drift(id, "what is held of it is damaged on disk");
  return std::move(error).context(path);
}

// Kept with the file, and told: whoever had it mapped is to end.
void tell_lost(Tree::Impl& t, NodeId id) {
  t.note_drift(id, "stores through a mapping were lost: no room was left");
  std::string path;
  {
    std::shared_lock lock(t.mutex_);
    if (const Live* live = t.get(id)) path = t.draft_path(*live).value_or("");
  }
  if (Observer* observer = t.observer_) observer->lost(path);
}

}  // namespace

Status Tree::Impl::read_segment(uint32_t segment, uint64_t at,
                                std::span<std::byte> out, bool check) {
  if (check) TRY(check_seals(segment, at, out.size()));
  size_t n = TRY(segments_->read(segment, at, out));
  // After power loss an open extent can lie beyond the end of its segment.
  std::ranges::fill(out.subspan(n), std::byte{0});
  return {};
}

// With body.io held. `out` lies below the size.
Status Tree::Impl::read_pieces(const FileBody& body, NodeId id, uint64_t offset,
                               std::span<std::byte> out) {
  for (const Extent& e : body.map.find(offset, out.size())) {
    std::span<std::byte> part = out.subspan(e.offset - offset, e.length);
    switch (e.where) {
      case Where::kHole:
      case Where::kZero:
        std::ranges::fill(part, std::byte{0});
        break;
      case Where::kSegment:
        TRY(read_segment(e.segment, e.at, part, true));
        break;
      case Where::kLower: {
        NodeView view;
        {
          std::shared_lock lock(mutex_);
          view = TRY(view_of(id));
        }
        view.identity = identity_of(body.lower);
        FdHandle fd = TRY(lower_file(view));
        size_t n = TRY(sys::pread_full(fd->get(), part, e.offset));
        sys::Stat st = TRY(sys::fstat(fd->get()));
        // Bytes first, then the look: a change in between is seen.
        if (n == part.size() &&
            fingerprint_of(st) == fingerprint_of(body.lower))
          break;
        note_drift(id, "the file was modified in the real tree");
        return std::unexpected(
            Error(Code::kDrift, "the lower file was modified", EIO));
      }
    }
  }
  return {};
}

// ESTALE: a rollback or a commit came between the look at the node and the one
// at the real tree.
Result<size_t> Tree::read(NodeId node, uint64_t offset,
                          std::span<std::byte> out) {
  constexpr int kTries = 16;
  for (int left = kTries;; --left) {
    auto got = impl_->read_once(node, offset, out);
    if (got || got.error().err() != ESTALE || left == 0) return got;
  }
}

Result<size_t> Tree::Impl::read_once(NodeId node, uint64_t offset,
                                     std::span<std::byte> out) {
  NodeView view;
  {
    std::shared_lock lock(mutex_);
    view = TRY(view_of(node));
    if (view.rule == Rule::kMask) {
      const Live* live = get(node);
      std::string_view text =
          options_.rules->mask_content(lower_path(*live).value_or(""));
      if (offset >= text.size()) return 0;
      text = text.substr(offset, out.size());
      std::memcpy(out.data(), text.data(), text.size());
      return text.size();
    }
  }
  if (view.rule > Rule::kMask) return fail_errno(EACCES);
  if (S_ISDIR(view.mode)) return fail_errno(EISDIR);
  if (!S_ISREG(view.mode)) return fail_errno(EINVAL);
  if (!view.body) {
    FdHandle fd = TRY(lower_file(view));
    // Learnt just now, by another of its names: tried again.
    if (ruled_links_ && rule_of(node) > Rule::kReadOnly)
      return fail_errno(ESTALE);
    size_t got = TRY(sys::pread_full(fd->get(), out, offset));
    read_bytes_ += got;
    return got;
  }
  std::shared_lock io(view.body->io);
  uint64_t size = view.body->map.size();
  if (offset >= size) return 0;
  out = out.first(std::min<uint64_t>(out.size(), size - offset));
  Status got = read_pieces(*view.body, node, offset, out);
  io.unlock();
  if (!got && got.error().code() == Code::kCorrupt)
    return std::unexpected(damage_of(*this, node, std::move(got).error()));
  TRY(std::move(got));
  read_bytes_ += out.size();
  return out.size();
}

// Overwrites what no mark has seen. With body.io held exclusively.
Status Tree::Impl::write_in_place(FileBody& body, uint64_t offset,
                                  std::span<const std::byte> data, bool& done) {
  done = false;
  if (offset > body.map.size() || data.size() > body.map.size() - offset)
    return {};
  std::shared_lock no_mark(epoch_);
  uint32_t epoch;
  {
    std::shared_lock lock(mutex_);
    epoch = state_.epoch();
  }
  std::vector<Extent> pieces = body.map.find(offset, data.size());
  for (const Extent& e : pieces)
    if (e.where != Where::kSegment || e.epoch != epoch ||
        !segments_->is_mutable(e.segment))
      return {};
  for (const Extent& e : pieces)
    TRY(segments_->write({e.segment, e.at, e.length},
                         data.subspan(e.offset - offset, e.length)));
  done = true;
  return {};
}

Result<size_t> Tree::write(NodeId node, uint64_t offset,
                           std::span<const std::byte> data, WriteFlags flags) {
  Impl& t = *impl_;
  TRY(t.ask_links(node));
  TRY(t.check_change(node, "write", nullptr));
  if (offset > kMaxSize || data.size() > kMaxSize - offset)
    return fail_errno(EFBIG);
  auto put = [&] {
    return t.change_body(node, [&](const BodyPtr& body) {
      return t.write_to(body, node, offset, data, flags);
    });
  };
  auto done = put();
  if (done || !flags.writeback || !is_full(done.error())) return done;
  // Nobody waits for this page who could be told.
  if (make_room()) done = put();
  if (!done && is_full(done.error())) tell_lost(t, node);
  return done;
}

Result<size_t> Tree::Impl::write_to(const BodyPtr& body, NodeId node,
                                    uint64_t offset,
                                    std::span<const std::byte> data,
                                    WriteFlags flags) {
  if (data.empty()) return 0;
  if (flags.kill_suidgid) TRY(clear_privileges(node));
  std::unique_lock io(body->io);
  bool in_place = false;
  TRY(write_in_place(*body, offset, data, in_place));
  SegmentRange range;
  Segments::Claim claim;
  if (!in_place) {
    {
      std::shared_lock lock(mutex_);
      TRY(charge(data.size(), flags.writeback));
    }
    SegmentRange behind;
    if (offset > 0)
      if (auto last = body->map.find(offset - 1, 1);
          !last.empty() && last[0].where == Where::kSegment)
        behind = {last[0].segment, last[0].at, 1};
    range = TRY(segments_->allocate(data.size(), behind, &claim));
    TRY(segments_->write(range, data));
  }
  std::unique_lock lock(mutex_);
  const Held* held = TRY(held_with(node, body));
  timespec now = sys::coarse_now();
  if (!in_place) unsealed_.insert(held->serial);
  if (!in_place)
    TRY(append({ExtentRecord{.serial = held->serial,
                             .offset = offset,
                             .length = data.size(),
                             .where = Where::kSegment,
                             .segment = range.segment,
                             .at = range.at,
                             .keep_size = false,
                             .time = now}}));
  else if (!same_time(held->mtime, now) || !same_time(held->ctime, now) ||
           held->command != command_now())
    TRY(append({TouchRecord{.serial = held->serial, .time = now}}));
  claim.recorded();
  written_bytes_ += data.size();
  return data.size();
}

Status Tree::Impl::resize(NodeId id, uint64_t size) {
  if (size > kMaxSize) return fail_errno(EFBIG);
  return change_body(id, [&](const BodyPtr& body) -> Status {
    std::unique_lock io(body->io);
    std::unique_lock lock(mutex_);
    const Held* held = TRY(held_with(id, body));
    return append({TruncateRecord{
        .serial = held->serial, .size = size, .time = sys::coarse_now()}});
  });
}

Status Tree::fallocate(NodeId node, int mode, uint64_t offset, uint64_t length,
                       WriteFlags flags) {
  Impl& t = *impl_;
  constexpr int kKeep = FALLOC_FL_KEEP_SIZE, kPunch = FALLOC_FL_PUNCH_HOLE,
                kZero = FALLOC_FL_ZERO_RANGE;
  bool punch = mode == (kPunch | kKeep);
  bool zero = (mode & ~kKeep) == kZero;
  if (!punch && !zero && (mode & ~kKeep) != 0) return fail_errno(EOPNOTSUPP);
  if (length == 0) return fail_errno(EINVAL);
  if (offset > kMaxSize || length > kMaxSize - offset) return fail_errno(EFBIG);
  TRY(t.ask_links(node));
  TRY(t.check_change(node, "fallocate", nullptr));
  return t.change_body(node, [&](const BodyPtr& body) -> Status {
    if (flags.kill_suidgid) TRY(t.clear_privileges(node));
    std::unique_lock io(body->io);
    std::unique_lock lock(t.mutex_);
    const Held* held = TRY(t.held_with(node, body));
    auto records = TRY(t.allocation(*held, mode, offset, length));
    return t.append(std::move(records));
  });
}

// What a call of fallocate does, with the tree's lock held.
Result<std::vector<Record>> Tree::Impl::allocation(const Held& held, int mode,
                                                   uint64_t offset,
                                                   uint64_t length) const {
  bool keep = (mode & FALLOC_FL_KEEP_SIZE) != 0;
  timespec now = sys::coarse_now();
  std::vector<Record> records;
  auto put = [&](uint64_t at, uint64_t n, Where where) {
    records.push_back(ExtentRecord{.serial = held.serial,
                                   .offset = at,
                                   .length = n,
                                   .where = where,
                                   .segment = 0,
                                   .at = 0,
                                   .keep_size = keep,
                                   .time = now});
  };
  if ((mode & FALLOC_FL_PUNCH_HOLE) != 0) {
    // It needs no room, but makes two ranges of one.
    if (state_.beside().ranges >= kMostRanges) return fail_errno(ENOSPC);
    put(offset, length, Where::kHole);
    return records;
  }
  const ExtentMap& map = held.body->map;
  uint64_t size = map.size(), fresh = 0;
  for (const Extent& e : map.find(offset, length))
    if (e.where == Where::kHole) fresh += e.length;
  if (offset + length > size && !keep)
    fresh += offset + length - std::max(offset, size);
  TRY(charge(fresh, false));
  if ((mode & FALLOC_FL_ZERO_RANGE) != 0) {
    put(offset, length, Where::kZero);
    return records;
  }
  for (const Extent& e : map.find(offset, length))
    if (e.where == Where::kHole) put(e.offset, e.length, Where::kZero);
  if (offset + length > size && !keep)
    put(std::max(offset, size), offset + length - std::max(offset, size),
        Where::kZero);
  // Times move even where all was there, as on ext4.
  if (records.empty())
    records.push_back(TouchRecord{.serial = held.serial, .time = now});
  return records;
}

Result<uint64_t> Tree::lseek(NodeId node, uint64_t offset, int whence) {
  Impl& t = *impl_;
  if (whence != SEEK_DATA && whence != SEEK_HOLE) return fail_errno(EINVAL);
  NodeView view;
  {
    std::shared_lock lock(t.mutex_);
    view = TRY(t.view_of(node));
  }
  if (!S_ISREG(view.mode)) return fail_errno(EINVAL);
  if (!view.body) {
    FdHandle fd = TRY(t.lower_file(view));
    return sys::seek(fd->get(), offset, whence);
  }
  std::shared_lock io(view.body->io);
  return t.seek_body(*view.body, view, offset, whence);
}

// With body.io held. Holes of the lower file, and of the segment that it was
// copied to, are holes too.
Result<uint64_t> Tree::Impl::seek_body(const FileBody& body, NodeView view,
                                       uint64_t offset, int whence) {
  const ExtentMap& map = body.map;
  if (offset >= map.size()) return fail_errno(ENXIO);
  for (uint64_t at = offset; at < map.size();) {
    const Extent* e = map.covering(at);
    if (e == nullptr) {
      if (whence == SEEK_HOLE) return at;
      at = map.next_data(at);
      continue;
    }
    // A commit changes it, but where lower ranges are.
    if (e->where == Where::kLower) view.identity = identity_of(body.lower);
    // What cannot be asked is data.
    uint64_t found = whence == SEEK_DATA ? at : e->end();
    auto fd = e->where == Where::kLower     ? lower_file(view)
              : e->where == Where::kSegment ? segments_->handle(e->segment)
                                            : Result<FdHandle>(FdHandle());
    if (fd && *fd) {
      uint64_t from = e->at + (at - e->offset);
      auto there = sys::seek((*fd)->get(), from, whence);
      if (there)
        found = at + std::min(*there - from, e->end() - at);
      else if (there.error().err() == ENXIO)
        found = whence == SEEK_DATA ? e->end() : at;
    }
    if (found < e->end()) return found;
    at = e->end();
  }
  if (whence == SEEK_HOLE) return map.size();
  return fail_errno(ENXIO);
}

Result<size_t> Tree::copy_range(NodeId from, uint64_t from_offset, NodeId to,
                                uint64_t to_offset, uint64_t length,
                                WriteFlags flags) {
  // A bounded piece a call: the kernel asks again for the rest.
  length = std::min<uint64_t>(length, 16 * kCopyStep);
  if (from == to && from_offset < to_offset + length &&
      to_offset < from_offset + length)
    return fail_errno(EINVAL);
  std::vector<std::byte> block(std::min(length, kCopyStep));
  size_t copied = 0;
  while (copied < length) {
    size_t want = std::min<uint64_t>(block.size(), length - copied);
    auto n = read(from, from_offset + copied, std::span(block).first(want));
    if (!n || *n == 0) {
      if (!n && copied == 0) return n;
      break;
    }
    auto written =
        write(to, to_offset + copied, std::span(block).first(*n), flags);
    if (!written) {
      if (copied == 0) return written;
      break;
    }
    copied += *written;
    if (*n < want) break;
  }
  return copied;
}

}  // namespace stoplog::fs
