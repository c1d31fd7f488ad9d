// SPDX-License-Identifier: Apache-2.0
#include "fs/journal.h"

#include <algorithm>

#include "base/sys_node.h"
#include "fs/codec.h"
#include "fs/layout.h"

namespace stoplog::fs {
namespace {

constexpr uint64_t kStep = 1u << 20;     // preallocated at a time
constexpr uint64_t kSpare = 256u << 10;  // of it: some thousand removals

Result<Fd> journal_dir(int draft_dir) {
  auto made = sys::mkdirat(draft_dir, layout::kJournalDir, layout::kDirMode);
  if (!made && made.error().err() != EEXIST && made.error().err() != EROFS)
    return std::unexpected(std::move(made).error().context("journal"));
  return sys::openat(draft_dir, layout::kJournalDir, O_RDONLY | O_DIRECTORY);
}

}  // namespace

Result<std::vector<uint32_t>> list_generations(int draft_dir) {
  std::vector<uint32_t> numbers;
  auto dir =
      sys::openat(draft_dir, layout::kJournalDir, O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().err() == ENOENT) return numbers;
  if (!dir) return std::unexpected(std::move(dir).error().context("journal"));
  TRY(sys::list_dir(dir->get(),
                    [&](std::string_view name, unsigned char, uint64_t) {
                      if (auto number = layout::parse_number(name))
                        numbers.push_back(*number);
                    }));
  std::ranges::sort(numbers);
  return numbers;
}

Result<Fd> open_generation(int draft_dir, uint32_t generation, int flags) {
  Fd dir =
      TRY(sys::openat(draft_dir, layout::kJournalDir, O_RDONLY | O_DIRECTORY));
  return sys::openat(dir.get(), layout::generation_name(generation), flags);
}

Result<JournalHead> read_head(int fd) {
  JournalHead head;
  bool found = false;
  // The open record itself is checked with draft number 0: it carries it.
  ScanEnd end =
      TRY(scan_frames(fd, 0, 0, 0, [&](const Frame& frame) -> Result<bool> {
        Record record = TRY(decode(frame.type, frame.payload));
        if (const auto* open = std::get_if<OpenRecord>(&record)) {
          head = {.open = *open,
                  .first = frame.sequence,
                  .size = kFrameHead + frame.payload.size()};
          found = true;
        }
        return false;
      }));
  bool at_start = end.damage.empty() || end.damage.front().end == 0;
  if (!found || !at_start)
    return fail(Code::kCorrupt, "the journal's first record is damaged");
  TRY(scan_frames(
      fd, head.size, head.first, head.open.draft,
      [&](const Frame& frame) -> Result<bool> {
        if (frame.sequence != head.first + 1 ||
            frame.type != record_type(FromRecord{}))
          return false;
        Reader reader(frame.payload);
        JournalHead::Before before{.position = reader.u64(),
                                   .depth = reader.u32()};
        if (!reader.ok() || before.position >= head.first)
          return fail(Code::kCorrupt, "the journal goes on from itself");
        head.from = before;
        return false;
      },
      head.first + 1));
  return head;
}

Result<Generations> Generations::list(int draft_dir) {
  Generations result;
  result.draft_dir_ = draft_dir;
  result.unread_ = TRY(list_generations(draft_dir));
  if (result.unread_.empty())
    return fail_errno(ENOENT, "the draft has no journal");
  return result;
}

Status Generations::read_next() {
  uint32_t number = unread_.back();
  unread_.pop_back();
  auto fd = open_generation(draft_dir_, number, O_RDONLY);
  if (!fd && fd.error().err() == ENOENT) return {};
  if (!fd) return std::unexpected(std::move(fd).error().context("journal"));
  auto head = read_head(fd->get());
  if (!head) return std::unexpected(std::move(head).error());
  Position last = known_.empty() ? UINT64_MAX : known_.back().head.first - 1;
  known_.push_back({.number = number, .head = *head, .last = last});
  return {};
}

Result<Generation> Generations::find(Position at) {
  for (size_t i = 0;; ++i) {
    while (i == known_.size() && !unread_.empty()) {
      auto read = read_next();
      if (read) continue;
      if (at == UINT64_MAX || read.error().code() != Code::kCorrupt)
        return std::unexpected(std::move(read).error());
      damage_ = std::move(read);
    }
    if (i == known_.size())
      return fail(Code::kInvalid, "position {} is no longer in the journal",
                  at);
    if (known_[i].head.first <= at) return known_[i];
  }
}

Result<std::vector<Generation>> Generations::all() {
  while (!unread_.empty()) TRY(read_next());
  if (!damage_) return std::unexpected(damage_.error());
  return std::vector<Generation>(known_.rbegin(), known_.rend());
}

Result<ScanEnd> journal_scan(int fd, const JournalHead& head, Position until,
                             const RecordSink& sink) {
  std::vector<Damage> undecoded;
  auto each = [&](const Frame& frame) -> Result<bool> {
    if (frame.sequence > until) return false;
    auto record = decode(frame.type, frame.payload);
    if (!record) {
      undecoded.push_back(
          {.first_lost = frame.sequence, .last_lost = frame.sequence});
      return true;
    }
    TRY(sink({frame.sequence, frame.command, std::move(*record)}));
    return true;
  };
  ScanEnd end =
      TRY(scan_frames(fd, head.size, head.first, head.open.draft, each, until));
  std::ranges::copy(undecoded, std::back_inserter(end.damage));
  return end;
}

Result<std::unique_ptr<Journal>> Journal::resume(int draft_dir,
                                                 const JournalHead& head,
                                                 const ScanEnd& end) {
  std::unique_ptr<Journal> journal(new Journal());
  journal->open_ = head.open;
  journal->dir_ = TRY(journal_dir(draft_dir));
  journal->fd_ = TRY(open_generation(draft_dir, head.open.generation, O_RDWR));
  journal->end_ = journal->reserved_ = end.end;
  journal->position_ = end.sequence;
  // Cuts the torn tail; what a process that was killed had preallocated lies
  // behind the size of the file and is used.
  if (TRY(sys::fstat(journal->fd_.get())).size > end.end)
    TRY_CTX(sys::ftruncate(journal->fd_.get(), end.end), "journal");
  (void)journal->reserve(0, Room::kOrdinary);
  return journal;
}

Result<std::unique_ptr<Journal>> Journal::create(int draft_dir,
                                                 const OpenRecord& open,
                                                 Position after) {
  std::unique_ptr<Journal> journal(new Journal());
  journal->open_ = open;
  journal->dir_ = TRY(journal_dir(draft_dir));
  journal->published_ = false;
  journal->fd_ = TRY_CTX(
      sys::openat(journal->dir_.get(),
                  layout::generation_name(open.generation) + layout::kNewSuffix,
                  O_RDWR | O_CREAT | O_TRUNC, layout::kFileMode),
      "journal");
  journal->position_ = after + 1;
  size_t begin = begin_frame(journal->buffer_);
  encode(open, journal->buffer_);
  end_frame(journal->buffer_, begin,
            {.sequence = after + 1, .type = record_type(open)}, 0);
  TRY(journal->reserve(journal->buffer_.size(), Room::kOrdinary));
  TRY(sys::pwrite_full(journal->fd_.get(),
                       std::as_bytes(std::span(journal->buffer_)), 0));
  journal->end_ = journal->buffer_.size();
  journal->buffer_.clear();
  return journal;
}

Journal::~Journal() {
  if (!fd_) return;
  // Gives back what was preallocated; replay does not need it.
  if (!broken_) (void)sys::ftruncate(fd_.get(), end_);
  if (!published_)
    (void)sys::unlinkat(dir_.get(), layout::generation_name(open_.generation) +
                                        layout::kNewSuffix);
}

Status Journal::publish() {
  std::string name = layout::generation_name(open_.generation);
  TRY(sync());
  TRY_CTX(sys::renameat2(dir_.get(), name + layout::kNewSuffix, dir_.get(),
                         name, 0),
          "journal");
  published_ = true;
  return sys::fsync(dir_.get());
}

Status Journal::reserve(uint64_t size, Room room) {
  uint64_t least = size + (room == Room::kSpare ? 0 : kSpare);
  if (end_ + least <= reserved_) return {};
  for (uint64_t want : {size + kStep, least}) {
    auto done = sys::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, end_, want);
    if (done || done.error().err() == EOPNOTSUPP) {
      reserved_ = end_ + want;
      return {};
    }
    // Nearly full: take just what is needed.
    if (want == least) return done;
  }
  return {};
}

Result<Position> Journal::append(std::span<const Record> records,
                                 uint32_t command, Room room) {
  if (broken_) return fail_errno(EIO);
  buffer_.clear();
  Position position = position_;
  for (const Record& record : records) {
    size_t begin = begin_frame(buffer_);
    encode(record, buffer_);
    if (buffer_.size() - begin - kFrameHead > kMaxPayload)
      return fail_errno(E2BIG);
    end_frame(buffer_, begin,
              {.sequence = ++position,
               .type = record_type(record),
               .command = command},
              open_.draft);
  }
  TRY(reserve(buffer_.size(), room));
  auto written =
      sys::pwrite_full(fd_.get(), std::as_bytes(std::span(buffer_)), end_);
  if (!written) {
    if (!sys::ftruncate(fd_.get(), end_)) broken_ = true;
    reserved_ = end_;
    return std::unexpected(std::move(written).error());
  }
  end_ += buffer_.size();
  position_ = position;
  return position;
}

Status Journal::sync() {
  std::unique_lock lock(sync_mutex_);
  Position target = position_;
  for (;;) {
    if (broken_) return fail_errno(EIO);
    if (synced_ >= target && target != 0) return {};
    if (!syncing_) break;
    sync_done_.wait(lock);
  }
  syncing_ = true;
  Position now = position_;  // everything appended so far goes along
  lock.unlock();
  auto done = sys::fdatasync(fd_.get());
  lock.lock();
  syncing_ = false;
  if (done)
    synced_ = now;
  else
    broken_ = true;  // the kernel drops dirty pages after a failed fsync
  sync_done_.notify_all();
  return done;
}

}  // namespace stoplog::fs
