// SPDX-License-Identifier: Apache-2.0
#include "fs/generations.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>

#include "base/sys_node.h"
#include "fs/codec.h"
#include "fs/layout.h"

namespace stoplog::fs {
namespace {

// How a generation file begins: open, older (but for the first generation and
// those of before there was one), from (when it goes on from another).
struct Beginning {
  JournalHead head;
  std::optional<OlderRecord> older{};
  bool lost_open = false;
};

// Absent when the first record is damaged.
Result<std::optional<JournalHead>> read_open(int fd) {
  std::optional<JournalHead> head;
  // The open record itself is checked with draft number 0: it carries it.
  ScanEnd end =
      TRY(scan_frames(fd, 0, 0, 0, [&](const Frame& frame) -> Result<bool> {
        auto record = decode(frame.type, frame.payload);
        if (!record) return false;
        if (const auto* open = std::get_if<OpenRecord>(&*record))
          head = {.open = *open,
                  .first = frame.sequence,
                  .size = kFrameHead + frame.payload.size()};
        return false;
      }));
  bool at_start = end.damage.empty() || end.damage.front().end == 0;
  if (!at_start) head.reset();
  return head;
}

// An open record is always as long as this.
uint64_t open_size() {
  std::string bytes;
  encode(OpenRecord{}, bytes);
  return kFrameHead + bytes.size();
}

bool is_sound(const OlderRecord& older, const JournalHead& head) {
  uint32_t number = 0;
  Position end = 0;
  for (const OlderRecord::Part& part : older.parts) {
    if (part.generation <= number || part.first <= end ||
        part.last < part.first)
      return false;
    number = part.generation;
    end = part.last;
  }
  return number < head.open.generation && end < head.first;
}

// `known`: what others say of it.
Result<Beginning> read_beginning(int fd, const OlderRecord::Part* known) {
  Beginning found;
  auto open = TRY(read_open(fd));
  if (!open && known == nullptr)
    return fail(Code::kCorrupt, "the journal's first record is damaged");
  found.lost_open = !open;
  found.head = open ? *open
                    : JournalHead{.open = {.draft = known->draft,
                                           .generation = known->generation},
                                  .first = known->first,
                                  .size = open_size()};
  JournalHead& head = found.head;
  auto each = [&](const Frame& frame) -> Result<bool> {
    if (frame.type == record_type(OlderRecord{})) {
      auto older = decode(frame.type, frame.payload);
      if (older && is_sound(std::get<OlderRecord>(*older), head))
        found.older = std::get<OlderRecord>(std::move(*older));
      return true;
    }
    if (frame.type != record_type(FromRecord{})) return false;
    Reader reader(frame.payload);
    JournalHead::Before before{.record = frame.sequence,
                               .position = reader.u64(),
                               .depth = reader.u32()};
    if (!reader.ok() || before.position >= head.first)
      return fail(Code::kCorrupt, "the journal goes on from itself");
    head.from = before;
    return false;
  };
  const Position behind = head.first + 2;
  TRY(scan_frames(
      fd, head.size, head.first, head.open.draft,
      [&](const Frame& frame) -> Result<bool> {
        return frame.sequence <= behind ? each(frame) : Result<bool>(false);
      },
      behind));
  return found;
}

std::unexpected<Error> lost_file(uint32_t number) {
  return fail(Code::kCorrupt, "generation {} of the journal is missing",
              number);
}

// Not one byte of it: what was never synced may be lost, or read as zeros.
Result<bool> is_blank(int draft_dir, uint32_t number) {
  auto opened = open_generation(draft_dir, number, O_RDONLY);
  if (!opened && opened.error().err() == ENOENT) return false;
  Fd fd = TRY(std::move(opened));
  std::string block(4096, '\0');
  for (uint64_t at = 0;; at += block.size()) {
    size_t n = TRY(sys::pread_full(
        fd.get(), std::as_writable_bytes(std::span(block)), at));
    if (block.find_first_not_of('\0') < n) return false;
    if (n < block.size()) return true;
  }
}

std::string text_of(const Newest& newest) {
  const OlderRecord::Part& part = newest.part;
  std::string text =
      fmt::format("{:08x}-{:016x}-{:016x}-{:08x}-{:016x}", part.generation,
                  part.draft, part.first, newest.before, newest.before_last);
  return text +
         fmt::format("-{:016x}", xxh3_64(std::as_bytes(std::span(text))));
}

}  // namespace

Status set_newest(int dir, const Newest& newest) {
  const std::string name = std::string(layout::kNewest) + layout::kNewSuffix;
  (void)sys::unlinkat(dir, name);  // of a crash
  TRY(sys::symlinkat(text_of(newest), dir, name));
  return sys::renameat2(dir, name, dir, layout::kNewest, 0);
}

std::optional<Newest> read_newest(int dir) {
  auto target = sys::readlinkat(dir, layout::kNewest);
  if (!target) return std::nullopt;
  Newest read;
  OlderRecord::Part& part = read.part;
  uint64_t* const numbers[] = {nullptr, &part.draft, &part.first, nullptr,
                               &read.before_last};
  uint32_t* const small[] = {&part.generation, nullptr, nullptr, &read.before,
                             nullptr};
  const char* at = target->data();
  const char* const end = at + target->size();
  for (size_t i = 0; i < std::size(numbers); ++i) {
    auto done = numbers[i] != nullptr
                    ? std::from_chars(at, end, *numbers[i], 16)
                    : std::from_chars(at, end, *small[i], 16);
    if (done.ec != std::errc()) return std::nullopt;
    at = done.ptr + 1;
  }
  // What is not written just so is not ours.
  if (text_of(read) != *target || part.first == 0) return std::nullopt;
  return read;
}

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
  return TRY(read_beginning(fd, nullptr)).head;
}

Result<Generations> Generations::list(int draft_dir) {
  constexpr int kTries = 8;
  for (int tries = 0; tries < kTries; ++tries) {
    Generations result;
    result.draft_dir_ = draft_dir;
    if (TRY(result.read_first())) return result;
  }
  return fail_errno(EBUSY, "journal");
}

// False: a newer one came and took the place of what was listed.
Result<bool> Generations::read_first() {
  // Before the list: what it names was there then.
  auto dir =
      sys::openat(draft_dir_, layout::kJournalDir, O_RDONLY | O_DIRECTORY);
  if (dir) newest_ = read_newest(dir->get());
  numbers_ = TRY(list_generations(draft_dir_));
  unread_ = numbers_.size();
  if (numbers_.empty() && newest_) return lost_file(newest_->part.generation);
  // Journal::begin(): the power went before it was kept.
  bool never_was = numbers_ == std::vector<uint32_t>{1} && !newest_ &&
                   TRY(is_blank(draft_dir_, 1));
  if (numbers_.empty() || never_was)
    return fail_errno(ENOENT, "the draft has no journal");
  is_missing_ = newest_ && newest_->part.generation > numbers_.back();
  TRY(read_or_note());
  return !known_.empty() || !damage_;
}

const OlderRecord::Part* Generations::part_of(uint32_t number) const {
  auto it = std::ranges::find(parts_, number, &Part::generation);
  if (it != parts_.end()) return &*it;
  // After a crash the link may be of the one before.
  bool is_newest = newest_ && newest_->part.generation == number;
  return is_newest ? &newest_->part : nullptr;
}

bool Generations::has(uint32_t number) const {
  return std::ranges::binary_search(numbers_, number);
}

Status Generations::read_or_note() {
  auto read = read_next();
  if (read || read.error().code() != Code::kCorrupt) return read;
  damage_ = std::move(read);
  return {};
}

Status Generations::read_next() {
  const uint32_t number = numbers_[--unread_];
  // A newer one does not know it: it is none of this journal.
  if (number < parts_of_ && part_of(number) == nullptr) return {};
  auto fd = open_generation(draft_dir_, number, O_RDONLY);
  if (!fd && fd.error().err() == ENOENT) return {};
  if (!fd) return std::unexpected(std::move(fd).error().context("journal"));
  const Part* part = part_of(number);
  auto found = read_beginning(fd->get(), part);
  if (!found) {
    lost_ = number;
    return std::unexpected(
        std::move(found).error().context(fmt::format("generation {}", number)));
  }
  const JournalHead& head = found->head;
  if (head.open.generation != number ||
      (part != nullptr &&
       (head.open.draft != part->draft || head.first != part->first))) {
    if (known_.empty() && newest_ && part == &newest_->part)
      is_missing_ = true;
    else
      lost_ = number;
    return fail(Code::kCorrupt,
                "generation {} of the journal is another one's file", number);
  }
  add({.number = number, .head = head, .lost_open = found->lost_open},
      std::move(found->older));
  return {};
}

void Generations::add(Generation generation, std::optional<OlderRecord> older) {
  const Part* part = part_of(generation.number);
  if (part != nullptr && !(newest_ && part == &newest_->part)) {
    generation.last = part->last;
    generation.reaches_last = true;
  } else {
    generation.ends_before = lost_;
    if (!known_.empty()) {
      generation.last = known_.back().head.first - 1;
    } else if (is_missing_) {
      generation.reaches_last = newest_->before == generation.number;
      generation.last = generation.reaches_last ? newest_->before_last
                                                : newest_->part.first - 1;
    }
  }
  lost_ = 0;
  if (older && parts_of_ == 0) {
    parts_ = std::move(older->parts);
    parts_of_ = generation.number;
  }
  known_.push_back(std::move(generation));
}

std::unexpected<Error> Generations::absent(Position at) const {
  if (is_missing_ && at >= newest_->part.first)
    return lost_file(newest_->part.generation);
  for (const Part& part : parts_) {
    if (at < part.first || at > part.last) continue;
    if (!has(part.generation)) return lost_file(part.generation);
    if (!damage_) return std::unexpected(damage_.error());
  }
  return fail(Code::kInvalid, "position {} is no longer in the journal", at);
}

Result<Generation> Generations::find(Position at) {
  for (size_t i = 0;; ++i) {
    while (i == known_.size() && unread_ > 0) TRY(read_or_note());
    if (at == kEnd && !is_missing_ &&
        (known_.empty() || known_[0].number != numbers_.back()))
      return std::unexpected(damage_.error());
    if (i == known_.size()) return absent(at);
    const Generation& each = known_[i];
    if (each.head.first > at) continue;
    if (at == kEnd) return each;
    if (each.ends_before != 0)
      return fail(Code::kCorrupt,
                  "the first record of generation {} of the journal is damaged",
                  each.ends_before);
    if (at > each.last) return absent(at);
    return each;
  }
}

Result<std::vector<Generation>> Generations::all() {
  while (unread_ > 0) TRY(read_or_note());
  if (!damage_) return std::unexpected(damage_.error());
  return std::vector<Generation>(known_.rbegin(), known_.rend());
}

Result<std::vector<Generation>> Generations::readable(Position at) {
  while (unread_ > 0 && (known_.empty() || known_.back().head.first > at))
    TRY(read_or_note());
  std::vector<Generation> found;
  for (auto it = known_.rbegin(); it != known_.rend(); ++it)
    if (it->last > at && it->ends_before == 0) found.push_back(*it);
  return found;
}

std::string Generations::trouble() const {
  if (is_missing_)
    return fmt::format(
        "generation {} of the journal is missing: all from record {} on is "
        "lost",
        newest_->part.generation, newest_->part.first);
  if (!known_.empty() && known_[0].lost_open)
    return fmt::format(
        "the first record of generation {} of the journal is damaged",
        known_[0].number);
  return {};
}

OpenRecord Generations::newest_open() const {
  OpenRecord open = known_[0].head.open;
  if (!is_missing_) return open;
  open.draft = newest_->part.draft;
  open.generation = newest_->part.generation;
  return open;
}

Position Generations::behind_lost(Position end) const {
  // More records than one generation ever had: 128 GiB of frames alone.
  constexpr Position kMostRecords = Position{1} << 32;
  return std::max(end, newest_ ? newest_->part.first : 0) + kMostRecords;
}

Status Generations::check_present(const std::set<uint32_t>& needed) const {
  for (const Part& part : parts_)
    if (needed.contains(part.generation) && !has(part.generation))
      return lost_file(part.generation);
  return {};
}

Result<OlderRecord> Generations::older(Position end,
                                       const std::set<uint32_t>& needed) {
  if (known_.empty() || parts_of_ != known_[0].number)
    while (unread_ > 0) TRY(read_or_note());
  std::map<uint32_t, Part> all;
  for (const Part& part : parts_)
    if (has(part.generation) || needed.contains(part.generation))
      all[part.generation] = part;
  for (const Generation& each : known_) {
    if (each.ends_before != 0) continue;
    bool is_last = &each == &known_[0] && !is_missing_;
    Part part{.generation = each.number,
              .draft = each.head.open.draft,
              .first = each.head.first,
              .last = is_last ? end : each.last};
    // Not written down: as far as it goes.
    if (!is_last && !each.reaches_last) part.last = TRY(end_of(each));
    all[each.number] = part;
  }
  OlderRecord record;
  for (const auto& [number, part] : all) record.parts.push_back(part);
  return record;
}

Result<Position> Generations::end_of(const Generation& each) const {
  Fd fd = TRY(open_generation(draft_dir_, each.number, O_RDONLY));
  return TRY(scan_frames(
                 fd.get(), each.head.size, each.head.first,
                 each.head.open.draft,
                 [](const Frame&) -> Result<bool> { return true; }, each.last))
      .sequence;
}

Status Generations::tell_newest() {
  if (is_missing_ || known_.empty() || known_[0].number != numbers_.back() ||
      known_[0].lost_open)
    return {};
  // Of one that was begun and may not be on the disk yet, its sync() tells.
  if (!newest_ && known_[0].number == 1) return {};
  Newest now{.part = {.generation = known_[0].number,
                      .draft = known_[0].head.open.draft,
                      .first = known_[0].head.first}};
  if (parts_of_ == known_[0].number)
    for (const Part& part : parts_)
      if (has(part.generation)) {
        now.before = part.generation;
        now.before_last = part.last;
      }
  if (newest_ && text_of(*newest_) == text_of(now)) return {};
  Fd dir =
      TRY(sys::openat(draft_dir_, layout::kJournalDir, O_RDONLY | O_DIRECTORY));
  return set_newest(dir.get(), now);
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

Status check_whole(const Generation& each, const ScanEnd& end, Position until) {
  for (const Damage& gap : end.damage)
    if (gap.first_lost <= until)
      return fail(Code::kCorrupt, "the journal is damaged: record {} is lost",
                  gap.first_lost);
  Position last = std::min(each.last, until);
  if (!each.reaches_last || end.sequence >= last) return {};
  return fail(Code::kCorrupt,
              "the journal is damaged: records {} to {} are lost",
              end.sequence + 1, last);
}

}  // namespace stoplog::fs
