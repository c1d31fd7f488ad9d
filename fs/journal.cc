// SPDX-License-Identifier: Apache-2.0
#include "fs/journal.h"

#include <algorithm>

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

// A draft is found by its draft.json, which is as young as its first journal:
// what is synced in the one is lost without the other. The journal of the
// draft's HOME lies one directory deeper. Its directory was just renamed, and
// on the very first use the one above it is new as well.
Status keep_draft(int journal_dir) {
  for (const std::string above : {"..", "../.."}) {
    auto file = sys::openat(journal_dir, above + "/draft.json", O_RDONLY);
    if (!file && file.error().err() == ENOENT) continue;
    TRY(sys::fdatasync(TRY(std::move(file)).get()));
    // The same file, unless draft.json was replaced since.
    if (auto kept = sys::openat(journal_dir, above + "/draft.synced", O_RDONLY))
      TRY(sys::fdatasync(kept->get()));
    for (const char* up : {"", "/..", "/../.."}) {
      Fd dir =
          TRY(sys::openat(journal_dir, above + up, O_RDONLY | O_DIRECTORY));
      TRY(sys::fsync(dir.get()));
    }
    break;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Journal>> Journal::resume(int draft_dir,
                                                 const JournalHead& head,
                                                 const ScanEnd& end) {
  std::unique_ptr<Journal> journal(new Journal());
  journal->open_ = head.open;
  journal->dir_ = TRY(journal_dir(draft_dir));
  journal->fd_ = TRY(open_generation(draft_dir, head.open.generation, O_RDWR));
  journal->end_ = journal->reserved_ = end.end;
  journal->position_ = end.sequence;
  journal->first_ = head.first;
  journal->is_young_ =
      head.open.generation == 1 && !read_newest(journal->dir_.get());
  // Cuts the torn tail; what a process that was killed had preallocated lies
  // behind the size of the file and is used.
  if (TRY(sys::fstat(journal->fd_.get())).size > end.end)
    TRY_CTX(sys::ftruncate(journal->fd_.get(), end.end), "journal");
  (void)journal->reserve(0, Room::kOrdinary);
  return journal;
}

Result<std::unique_ptr<Journal>> Journal::create(int draft_dir,
                                                 const OpenRecord& open,
                                                 Position after,
                                                 const OlderRecord& older) {
  std::unique_ptr<Journal> journal(new Journal());
  journal->open_ = open;
  journal->first_ = after + 1;
  if (!older.parts.empty()) journal->before_ = older.parts.back();
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
  if (older.parts.empty()) return journal;
  const Record told = older;
  TRY(journal->append(std::span(&told, 1), 0));
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
  if (Status synced = sys::fsync(dir_.get()); !synced) {
    // The caller goes on with the older one: this must not be found later.
    if (sys::renameat2(dir_.get(), name, dir_.get(), name + layout::kNewSuffix,
                       0))
      published_ = false;
    return synced;
  }
  tell_newest();
  return {};
}

// Not before the file is there for good. Where it cannot be written, or is
// lost, the journal is as sound as one that was always without.
void Journal::tell_newest() {
  (void)set_newest(dir_.get(), {.part = {.generation = open_.generation,
                                         .draft = open_.draft,
                                         .first = first_},
                                .before = before_.generation,
                                .before_last = before_.last});
}

Status Journal::begin() {
  std::string name = layout::generation_name(open_.generation);
  TRY_CTX(sys::renameat2(dir_.get(), name + layout::kNewSuffix, dir_.get(),
                         name, 0),
          "journal");
  published_ = true;
  is_young_ = true;
  return {};
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
  Status done = sys::fdatasync(fd_.get());
  Status kept;
  if (done && is_young_) kept = keep_draft(dir_.get());
  if (done && kept && is_young_) {
    done = sys::fsync(dir_.get());
    if (done) tell_newest();
    is_young_ = !done;
  }
  lock.lock();
  syncing_ = false;
  if (!done)
    broken_ = true;  // the kernel drops dirty pages after a failed fsync
  else if (kept)
    synced_ = now;
  sync_done_.notify_all();
  return done ? kept : done;
}

}  // namespace stoplog::fs
