// SPDX-License-Identifier: Apache-2.0
#include "snapshot/bundle.h"

#include <algorithm>

#include "base/sys_node.h"
#include "base/sys_process.h"
#include "base/temp_file.h"
#include "fs/codec.h"
#include "fs/draft_view.h"
#include "fs/history.h"
#include "fs/layout.h"
#include "snapshot/bundle_map.h"
#include "snapshot/bundle_ranges.h"

namespace stoplog::snapshot {
namespace {

constexpr std::string_view kJournal = "journal/";
constexpr std::string_view kSegments = "segments/";
constexpr std::string_view kObjects = "objects/";
constexpr size_t kBlock = 1u << 20;
constexpr size_t kBatch = 256;  // records a write
// Numbers that count up must have room to do so.
constexpr uint32_t kMaxSegment = 1u << 30;
constexpr fs::Position kMaxPosition = uint64_t{1} << 60;

std::unexpected<Error> damaged(std::string_view what) {
  return fail(Code::kCorrupt, "the bundle is damaged: {}", what);
}

// The number of a section "<prefix><kind>XXXXXXXX"; absent for any other.
std::optional<uint32_t> number_of(std::string_view name,
                                  std::string_view prefix,
                                  std::string_view kind) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  if (!name.starts_with(kind)) return std::nullopt;
  return fs::layout::parse_number(name.substr(kind.size()));
}

Status export_journal(BundleWriter& out, const ExportTree& what) {
  std::vector<std::byte> block(kBlock);
  auto generations = TRY(fs::Generations::list(what.draft_dir));
  for (const fs::Generation& each : TRY(generations.all())) {
    if (each.head.first > what.until) break;
    Fd fd = TRY(fs::open_generation(what.draft_dir, each.number, O_RDONLY));
    fs::ScanEnd end = TRY(fs::scan_frames(
        fd.get(), each.head.size, each.head.first, each.head.open.draft,
        [](const fs::Frame&) -> Result<bool> { return true; },
        std::min(each.last, what.until)));
    TRY(fs::check_whole(each, end, what.until));
    TRY(out.begin(fmt::format("{}{}{}", what.prefix, kJournal,
                              fs::layout::generation_name(each.number)),
                  end.end));
    for (uint64_t at = 0; at < end.end;) {
      size_t want =
          static_cast<size_t>(std::min<uint64_t>(block.size(), end.end - at));
      size_t n =
          TRY(sys::pread_full(fd.get(), std::span(block).first(want), at));
      if (n != want) return fail_errno(EIO, "journal");
      TRY(out.write(std::span(block).first(n)));
      at += n;
    }
    TRY(out.end());
  }
  return {};
}

Status export_segments(BundleWriter& out, const ExportTree& what) {
  const fs::RangeSet& needed = what.needed;
  auto segments = TRY(fs::Segments::open(what.draft_dir, false));
  std::vector<std::byte> block(kBlock);
  uint64_t done = 0;
  for (uint32_t number : needed.segments()) {
    std::vector<fs::SegmentRange> ranges = needed.in(number);
    std::string head = encode_ranges(ranges);
    uint64_t size = head.size();
    for (const fs::SegmentRange& range : ranges) size += range.length;
    TRY(out.begin(fmt::format("{}{}{}", what.prefix, kSegments,
                              fs::layout::segment_name(number)),
                  size));
    TRY(out.write(std::as_bytes(std::span(head))));
    for (const fs::SegmentRange& range : ranges)
      for (uint64_t at = 0; at < range.length;) {
        auto part = std::span(block).first(static_cast<size_t>(
            std::min<uint64_t>(block.size(), range.length - at)));
        size_t n = TRY(segments->read(number, range.at + at, part));
        // After power loss a range can lie beyond the end of its segment.
        std::ranges::fill(part.subspan(n), std::byte{0});
        TRY(out.write(part));
        at += part.size();
        done += part.size();
        if (what.progress) TRY(what.progress(done));
      }
    TRY(out.end());
  }
  return {};
}

class TreeImport {
 public:
  TreeImport(BundleReader& in, const ImportTree& what)
      : in_(in), what_(what), map_(what.compared, what.owners) {}

  Status run() {
    TRY(sys::getrandom(std::as_writable_bytes(std::span(&draft_, 1))));
    TRY(make_dir(fs::layout::kSegmentDir));
    for (const Section& s : in_.sections()) {
      if (auto number = number_of(s.name, what_.prefix, kSegments))
        TRY(segment(s, *number));
      if (auto number = number_of(s.name, what_.prefix, kJournal))
        journals_.emplace(*number, &s);
    }
    for (const auto& [number, section] : journals_)
      TRY(generation(*section, number));
    return check();
  }

 private:
  Status make_dir(const char* name) {
    Status made = sys::mkdirat(what_.draft_dir, name, fs::layout::kDirMode);
    if (!made && made.error().err() == EEXIST) return {};
    return made;
  }

  Status segment(const Section& section, uint32_t number) {
    if (number == 0 || number > kMaxSegment)
      return damaged("a segment without a number");
    Fd dir = TRY(sys::openat(what_.draft_dir, fs::layout::kSegmentDir,
                             O_RDONLY | O_DIRECTORY));
    Fd fd = TRY(sys::openat(dir.get(), fs::layout::segment_name(number),
                            O_RDWR | O_CREAT | O_EXCL, fs::layout::kFileMode));
    RangeSink sink(fd.get());
    TRY(in_.read(section, [&](std::span<const std::byte> bytes) -> Status {
      TRY(sink.take(bytes));
      done_ += bytes.size();
      return what_.progress ? what_.progress(done_) : Status();
    }));
    TRY(sink.finish());
    for (fs::SegmentRange range : sink.ranges()) {
      range.segment = number;
      present_.add(range);
    }
    return {};
  }

  Status generation(const Section& section, uint32_t number) {
    TempFile raw = TRY(TempFile::create(what_.draft_dir, 0600));
    uint64_t at = 0;
    TRY(in_.read(section, [&](std::span<const std::byte> bytes) -> Status {
      TRY(sys::pwrite_full(raw.fd(), bytes, at));
      at += bytes.size();
      return {};
    }));
    fs::JournalHead head = TRY(fs::read_head(raw.fd()));
    if (head.open.generation != number || number > kMaxSegment ||
        head.first <= last_ || head.first > kMaxPosition)
      return damaged("its journal");
    fs::OpenRecord open = head.open;
    open.draft = draft_;
    auto journal =
        TRY(fs::Journal::create(what_.draft_dir, open, head.first - 1));
    TRY(copy(raw.fd(), head, *journal));
    last_ = journal->position();
    return journal->publish();
  }

  Status copy(int raw, const fs::JournalHead& head, fs::Journal& journal) {
    std::vector<fs::Record> batch;
    uint32_t command = 0;
    auto flush = [&]() -> Status {
      if (!batch.empty()) TRY(journal.append(batch, command));
      batch.clear();
      return {};
    };
    fs::ScanEnd end = TRY(fs::journal_scan(
        raw, head, fs::kEnd, [&](const fs::Logged& logged) -> Status {
          if (batch.size() >= kBatch || logged.command != command) TRY(flush());
          command = logged.command;
          batch.push_back(logged.record);
          if (auto* older = std::get_if<fs::OlderRecord>(&batch.back()))
            for (fs::OlderRecord::Part& part : older->parts)
              part.draft = draft_;
          return map_.apply(batch.back());
        }));
    if (!end.damage.empty() || end.torn != 0 || end.sequence > kMaxPosition)
      return damaged("its journal");
    return flush();
  }

  // Every record applies, and what any mark needs is there.
  Status check() {
    if (journals_.empty()) return damaged("it has no journal");
    fs::RangeSet needed;
    TRY_CTX(fs::add_needed(what_.draft_dir, {}, needed),
            "the bundle is damaged");
    for (uint32_t number : needed.segments())
      for (const fs::SegmentRange& range : needed.in(number))
        if (!present_.covers(range))
          return damaged(fmt::format("segment {} lacks content", number));
    Fd dir = TRY(sys::openat(what_.draft_dir, fs::layout::kSegmentDir,
                             O_RDONLY | O_DIRECTORY));
    return sys::syncfs(dir.get());
  }

  BundleReader& in_;
  const ImportTree& what_;
  RecordMap map_;
  uint64_t draft_ = 0;
  uint64_t done_ = 0;
  fs::Position last_ = 0;
  std::map<uint32_t, const Section*> journals_;
  fs::RangeSet present_;
};

}  // namespace

// The records of commits are found without applying any: what counts is that
// none is missed.
Result<std::set<Sha256Digest>> replaced_objects(int draft_dir,
                                                fs::Position until) {
  std::set<Sha256Digest> ids;
  const uint16_t wanted = fs::record_type(fs::BaseMapRecord{});
  auto each = [&](const fs::Frame& frame) -> Result<bool> {
    if (frame.sequence > until) return false;
    if (frame.type != wanted) return true;
    fs::Record record = TRY(fs::decode(frame.type, frame.payload));
    for (const fs::BaseChange& change :
         std::get<fs::BaseMapRecord>(record).changes)
      if (change.preimage) ids.insert(*change.preimage);
    return true;
  };
  auto generations = TRY(fs::Generations::list(draft_dir));
  if (std::string trouble = generations.trouble(); !trouble.empty())
    return fail(Code::kCorrupt, "{}", trouble);
  std::set<uint32_t> marked;
  for (const fs::Mark& mark : TRY(fs::list_marks(draft_dir)))
    marked.insert(mark.generation);
  TRY(generations.check_present(marked));
  for (const fs::Generation& part : TRY(generations.all())) {
    if (part.head.first > until) break;
    Fd fd = TRY(fs::open_generation(draft_dir, part.number, O_RDONLY));
    fs::ScanEnd end = TRY(fs::scan_frames(fd.get(), part.head.size,
                                          part.head.first, part.head.open.draft,
                                          each, std::min(part.last, until)));
    TRY(fs::check_whole(part, end, until));
  }
  return ids;
}

Status export_tree(BundleWriter& out, const ExportTree& what) {
  TRY(export_journal(out, what));
  return export_segments(out, what);
}

Status import_tree(BundleReader& in, const ImportTree& what) {
  return TreeImport(in, what).run();
}

Result<ObjectsOut> export_objects(BundleWriter& out, ObjectStore& store,
                                  int draft_dir, fs::Position until) {
  ObjectsOut count;
  for (const Sha256Digest& id : TRY(replaced_objects(draft_dir, until))) {
    if (!TRY(store.has(id))) {
      ++count.missing;
      continue;
    }
    auto content = TRY(store.content(id));
    std::vector<fs::SegmentRange> ranges;
    for (const fs::Content::Range& range : content->data())
      ranges.push_back({.at = range.offset, .length = range.length});
    std::string head;
    fs::Writer(head).u64(content->size());
    head += encode_ranges(ranges);
    uint64_t size = head.size();
    for (const fs::SegmentRange& range : ranges) size += range.length;
    TRY(out.begin(fmt::format("{}{}", kObjects, hex(id)), size));
    TRY(out.write(std::as_bytes(std::span(head))));
    TRY(for_each_piece(*content, [&](uint64_t, auto bytes) -> Status {
      return out.write(bytes);
    }));
    TRY(out.end());
    ++count.objects;
  }
  return count;
}

Status import_objects(BundleReader& in, ObjectStore& store, int scratch) {
  PackWriter pack = TRY(store.new_pack());
  for (const Section& s : in.sections()) {
    if (!s.name.starts_with(kObjects)) continue;
    Sha256Digest id;
    TRY(unhex(std::string_view(s.name).substr(kObjects.size()), id));
    TempFile raw = TRY(TempFile::create(scratch, 0600));
    RangeSink sink(raw.fd(), RangeSink::Sized::kYes);
    TRY(in.read(s, [&](auto bytes) { return sink.take(bytes); }));
    TRY(sink.finish());
    TRY(sys::ftruncate(raw.fd(), sink.size()));
    auto content = TRY(file_content(TRY(sys::dup(raw.fd()))));
    if (TRY(pack.add(*content)) != id)
      return damaged("an object is not what its name says");
  }
  TRY(pack.finish());
  return {};
}

bool is_section_name(std::string_view name) {
  for (std::string_view prefix : {"", "home/"}) {
    if (number_of(name, prefix, kJournal) || number_of(name, prefix, kSegments))
      return true;
    if (name.starts_with(prefix) && name.substr(prefix.size()) == "base")
      return true;
  }
  if (name.starts_with(kObjects)) {
    Sha256Digest id;
    return unhex(name.substr(kObjects.size()), id).has_value();
  }
  return name == "manifest" || name == "ledger";
}

}  // namespace stoplog::snapshot
