// SPDX-License-Identifier: Apache-2.0
#include "fs/draft_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/sys_node.h"
#include "fs/drift.h"
#include "fs/journal_view.h"
#include "fs/restore.h"
#include "fs/standing.h"

namespace stoplog::fs {

Result<JournalView::Place> JournalView::resolve(const RelPath& path) const {
  const Held* at = &state_.root();
  auto parts = path.components();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!at->is_dir()) return Place{};
    auto serial = State::child(*at, parts[i]);
    if (serial && *serial == 0) return Place{};
    if (serial) {
      at = state_.find(*serial);
      if (at == nullptr) return Place{};
      if (!at->is_clean()) continue;
      // Committed and left alone: what the real tree has there counts.
      auto origin = state_.origin_of(*at);
      for (++i; origin && i < parts.size(); ++i)
        *origin = join_path(*origin, parts[i]);
      return Place{.held = nullptr, .lower = std::move(origin)};
    }
    auto origin = state_.origin_of(*at);
    if (!origin) return Place{};
    for (; i < parts.size(); ++i) *origin = join_path(*origin, parts[i]);
    return Place{.held = nullptr, .lower = std::move(origin)};
  }
  return Place{.held = at, .lower = {}};
}

// The state of the base as recorded; the rest (xattrs, a symlink's target) is
// read now, as long as the same file stands there.
Result<NodeState> JournalView::base_state_of(const sys::Stat& st,
                                             const std::string& path,
                                             const std::string& target,
                                             const SegmentRange* content,
                                             Seen* seen) const {
  NodeState state = plain_state(st);
  const bool blind = seen != nullptr && seen->blind;
  Result<Fd> fd = fail_errno(ENOENT);
  if (!blind) fd = open_deep(base_->get(), path, O_PATH);
  auto now = fd ? sys::fstat(fd->get())
                : Result<sys::Stat>(std::unexpected(Error(ENOENT)));
  if (now && seen != nullptr) *seen = {path, *now};
  bool same = now && identity_of(*now) == identity_of(st);
  if (same) state.xattrs = TRY_CTX(read_xattrs(fd->get()), path);
  if (state.type == Type::kSymlink) {
    state.target = target;
    if (state.target.empty() && same)
      state.target = TRY_CTX(sys::path_readlink(fd->get()), path);
  }
  if (state.type != Type::kFile) return state;
  if (content != nullptr) {
    ExtentMap map;
    map.put({.offset = 0,
             .length = content->length,
             .where = Where::kSegment,
             .segment = content->segment,
             .at = content->at});
    state.content = std::make_shared<HeldContent>(
        segments_, seals_, std::make_shared<const ExtentMap>(std::move(map)),
        nullptr, path, lent_);
  } else {
    state.content = std::make_shared<RealContent>(base_, path, st);
  }
  return state;
}

Result<NodeState> JournalView::held_state(const Held& node,
                                          const NodeState* before,
                                          bool blind) const {
  NodeState state;
  Seen seen{.blind = blind};
  std::string origin = state_.origin_of(node).value_or("");
  if (node.base) {
    bool live = node.own != kOwnAll || (node.is_file() && !node.body);
    sys::Stat st = *node.base;
    if (live && !blind)
      if (auto now = TRY(stat_beneath(base_->get(), origin));
          now && identity_of(*now) == identity_of(st))
        st = *now;
    if (node.body)
      state = plain_state(st);
    else
      state = TRY(base_state_of(st, origin, node.target, nullptr, &seen));
    if ((node.flags & kXattrsOwn) == 0 && node.body && !blind)
      state.xattrs =
          before != nullptr
              ? before->xattrs
              : TRY(base_state_of(*node.base, origin, "", &node.body->base))
                    .xattrs;
  }
  state.type = type_of(node.mode);
  if ((node.own & kOwnMode) != 0) {
    state.mode = node.mode & 07777;
    state.uid = node.uid;
    state.gid = node.gid;
  }
  if ((node.own & kOwnTimes) != 0) state.mtime = node.mtime;
  if ((node.flags & kXattrsOwn) != 0) state.xattrs = node.xattrs;
  if (!node.base) {
    state.rdev = node.rdev;
    state.target = node.target;
    state.size = node.target.size();
  }
  if (node.body) {
    std::shared_ptr<const Content> lower;
    if (node.body->map.has_lower())
      lower = std::make_shared<RealContent>(base_, origin, node.body->lower);
    std::string path = state_.path_of(node).value_or(origin);
    state.size = node.body->map.size();
    state.content = std::make_shared<HeldContent>(
        segments_, seals_,
        std::shared_ptr<const ExtentMap>(node.body, &node.body->map),
        std::move(lower), std::move(path), lent_);
  }
  state.link_group = node.links.size() > 1 ? node.serial : 0;
  return state;
}

Result<std::optional<NodeState>> JournalView::draft_state(
    const RelPath& path) const {
  Place place = TRY(resolve(path));
  if (place.held != nullptr) {
    if (place.held->serial == kRootSerial && place.held->own == 0)
      return real_state_at(base_, path);
    return TRY(held_state(*place.held));
  }
  if (!place.lower) return std::nullopt;
  // Another name of a file that the draft holds?
  if (auto st = TRY(stat_beneath(base_->get(), *place.lower));
      st && st->nlink > 1 && !S_ISDIR(st->mode))
    if (const Held* held = state_.find(state_.by_identity(*st)))
      return TRY(held_state(*held));
  return real_state_at(base_, TRY(RelPath::parse(*place.lower)));
}

Result<std::vector<DirEntry>> JournalView::draft_list(
    const RelPath& path) const {
  Place place = TRY(resolve(path));
  if (place.lower)
    return list_beneath(base_->get(), TRY(RelPath::parse(*place.lower)));
  if (place.held == nullptr) return fail_errno(ENOENT, "{}", path.str());
  if (!place.held->is_dir()) return fail_errno(ENOTDIR, "{}", path.str());
  std::vector<DirEntry> entries;
  auto shines_through = [&](const std::string& name) {
    auto serial = State::child(*place.held, name);
    const Held* node = serial ? state_.find(*serial) : nullptr;
    return !serial || (node != nullptr && node->is_clean());
  };
  for (const auto& [name, serial] : place.held->names)
    if (const Held* node = serial != 0 ? state_.find(serial) : nullptr;
        node != nullptr && !node->is_clean())
      entries.push_back({name, type_of(node->mode)});
  if (auto origin = state_.origin_of(*place.held)) {
    auto lower = list_beneath(base_->get(), TRY(RelPath::parse(*origin)));
    if (!lower && !is_absence(lower.error()))
      return std::unexpected(std::move(lower).error());
    if (lower)
      for (DirEntry& entry : *lower)
        if (shines_through(entry.name)) entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, &DirEntry::name);
  return entries;
}

Result<std::unique_ptr<DraftView>> open_view(const ViewOptions& options) {
  // Before it is read; without a position the draft's lock is held.
  Fd held;
  if (options.at != kEnd) {
    Generations generations = TRY(Generations::list(options.draft_dir));
    if (auto found = generations.find(options.at))
      held = stand_on(options.draft_dir, found->number, options.at);
  }
  Replayed replayed = TRY(replay(options.draft_dir, options.at));
  if (options.at == kEnd && !replayed.damaged)
    held =
        stand_on(options.draft_dir, replayed.generation, replayed.end.sequence);
  replayed.state.move_to_device(TRY(sys::fstat(options.base)).dev);
  std::shared_ptr<Segments> segments =
      TRY(Segments::open(options.draft_dir, false));
  std::shared_ptr<LentObjects> lent;
  if (options.at != kEnd) {
    auto maps = TRY(base_maps_since(options.draft_dir, options.at, &replayed));
    if (!maps.empty()) {
      lent = std::make_shared<LentObjects>(options.objects);
      TRY(restore_replaced(replayed.state, std::move(maps), options.base,
                           [&](const Sha256Digest& digest,
                               uint64_t size) -> Result<SegmentRange> {
                             return lent->add(digest, size);
                           }));
    }
  }
  return std::make_unique<JournalView>(
      JournalView::Stand{std::move(replayed), std::move(held)},
      TRY(share_root(options.base)), std::move(segments), std::move(lent));
}

namespace {

bool is_change(uint16_t type) {
  static const std::set<uint16_t> kChanges{
      record_type(CreateRecord{}),
      record_type(LinkRecord{}),
      record_type(UnlinkRecord{}),
      record_type(RenameRecord{}),
      record_type(SetAttrRecord{}),
      record_type(XattrRecord{}),
      record_type(ExtentRecord{}),
      record_type(TruncateRecord{}),
      record_type(TouchRecord{}),
      record_type(StartRecord{})};  // what the state before it had is not known
  return kChanges.contains(type);
}

// By a name, or by what it went back to.
bool leads_back(const Mark& mark) {
  return mark.kind == MarkKind::kCommandBegin ||
         mark.kind == MarkKind::kCommandEnd || mark.kind == MarkKind::kNamed ||
         mark.kind == MarkKind::kRollback;
}

}  // namespace

// A generation begins with those of the ones before.
Result<Timeline> read_timeline(int draft_dir) {
  Generations generations = TRY(Generations::list(draft_dir));
  const Generation newest = TRY(generations.find(kEnd));
  const JournalHead& head = newest.head;
  Fd fd =
      TRY_CTX(open_generation(draft_dir, newest.number, O_RDONLY), "journal");
  Timeline out;
  bool begun = head.first == 1 || head.from;
  const uint16_t mark = record_type(MarkRecord{});
  const uint16_t table = record_type(TableRecord{});
  const uint16_t from = record_type(FromRecord{});
  const uint16_t start = record_type(StartRecord{});
  auto each = [&](const Frame& frame) -> Result<bool> {
    begun = begun || frame.type == start;
    out.unmarked = out.unmarked || is_change(frame.type);
    if (frame.type != mark && frame.type != table && frame.type != from)
      return true;
    Record record = TRY(decode(frame.type, frame.payload));
    if (auto* all = std::get_if<TableRecord>(&record)) {
      out.marks = std::move(all->marks);
      return true;
    }
    if (auto* before = std::get_if<FromRecord>(&record)) {
      out.marks = std::move(before->table.marks);
      return true;
    }
    out.marks.push_back(std::get<MarkRecord>(record).mark);
    out.marks.back().position = frame.sequence;
    out.marks.back().generation = newest.number;
    if (leads_back(out.marks.back())) out.unmarked = false;
    return true;
  };
  ScanEnd end = TRY(scan_frames(fd.get(), head.size, head.first,
                                head.open.draft, each, newest.last));
  out.end = end.sequence;
  out.damaged = !check_whole(newest, end, kEnd) || !begun ||
                !generations.trouble().empty();
  return out;
}

Result<std::vector<Mark>> list_marks(int draft_dir) {
  return TRY(read_timeline(draft_dir)).marks;
}

}  // namespace stoplog::fs
