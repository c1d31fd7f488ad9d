// SPDX-License-Identifier: Apache-2.0
// Making nodes the draft's: adopting them (with all their ancestors) and
// taking their content.
#include <algorithm>

#include "base/log.h"
#include "base/sys_node.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

// A file may have thousands of names, each in a directory of its own.
constexpr size_t kMaxOtherParents = 256;

// What was removed on the host while it was open in the mount is written to as
// any removed file is. What was moved there is not: the write would be lost,
// where it should show at the new name.
bool is_removed(const FdHandle& fd) {
  if (!fd) return false;
  auto st = sys::fstat(fd->get());
  return st && st->nlink == 0;
}

}  // namespace

Status Tree::Impl::writable() const {
  if (read_only_) return fail_errno(EROFS);
  return {};
}

// What must be possible on a full disk: to take names and content away, and to
// say where a command ended.
static Room room_for(std::span<const Record> records) {
  bool spare = std::ranges::all_of(records, [](const Record& record) {
    return std::holds_alternative<AdoptRecord>(record) ||
           std::holds_alternative<UnlinkRecord>(record) ||
           std::holds_alternative<TruncateRecord>(record) ||
           std::holds_alternative<DropRecord>(record) ||
           std::holds_alternative<MarkRecord>(record);
  });
  return spare ? Room::kSpare : Room::kOrdinary;
}

// Appends and applies. When the append fails nothing has happened.
Status Tree::Impl::append(std::vector<Record> records) {
  TRY(writable());
  std::vector<Serial> drops = std::exchange(pending_drops_, {});
  // No mark keeps what is gone; other records may come from background work
  // that still knew it.
  if (!drops.empty())
    records.insert(std::holds_alternative<MarkRecord>(records.front())
                       ? records.begin()
                       : records.end(),
                   DropRecord{drops});
  Position position = journal_->position();
  const uint64_t bytes = journal_->bytes();
  Room room = room_for(records);
  if (state_.has_unwritten()) {
    std::vector<Record> nodes = state_.unwritten_in(records);
    if (!nodes.empty()) position = TRY(journal_->append(nodes, 0, room));
    for (const Record& node : nodes) state_.set_written(node);
  }
  auto appended = journal_->append(records, command_now(), room);
  if (!appended) {
    pending_drops_ = std::move(drops);
    return std::unexpected(std::move(appended).error());
  }
  // Now and then, look whether a checkpoint is due.
  if ((position & 0x3fff) == 0 ||
      bytes / kCheckpointAt != journal_->bytes() / kCheckpointAt)
    wake_pool();
  RefusedRecord refused;
  std::string why;
  for (Record& record : records) {
    auto applied = state_.apply({++position, command_now(), std::move(record)});
    if (applied) continue;
    refused.positions.push_back(position);
    why = applied.error().text();
  }
  if (refused.positions.empty()) return {};
  // A replay will refuse it as well; that this is no damage it must be told.
  log::error("record {} was refused: {}", refused.positions.front(), why);
  Record told = std::move(refused);
  TRY(journal_->append(std::span(&told, 1), command_now()));
  return std::unexpected(
      Error(Code::kInternal, "a record was refused: " + why, EIO));
}

void Tree::Impl::drop_pending() {
  if (auto drops = std::exchange(pending_drops_, {}); !drops.empty())
    if (!append({DropRecord{drops}})) pending_drops_ = std::move(drops);
}

Result<const Held*> Tree::Impl::held_now(NodeId id) const {
  const Live* live = get(id);
  const Held* node = live != nullptr ? state_.find(live->serial) : nullptr;
  if (node == nullptr) return fail_errno(ESTALE);
  return node;
}

Result<const Held*> Tree::Impl::held_with(NodeId id,
                                          const BodyPtr& body) const {
  const Held* node = TRY(held_now(id));
  if (node->body != body) return fail_errno(ESTALE);
  return node;
}

bool Tree::Impl::has_room(uint64_t bytes, bool writeback) const {
  uint64_t limit = quota_.bytes;
  if (limit == UINT64_MAX) return true;
  if (writeback) limit += std::min(quota_.reserve, UINT64_MAX - limit);
  const uint64_t used = used_bytes();
  return used <= limit && bytes <= limit - used;
}

uint64_t Tree::Impl::used_bytes() const {
  const State::Beside& beside = state_.beside();
  return state_.live_bytes() + beside.bytes + beside.ranges * kRangeCost;
}

Status Tree::Impl::charge(uint64_t bytes, bool writeback) const {
  if (state_.beside().ranges < kMostRanges && has_room(bytes, writeback))
    return {};
  ++refused_bytes_;
  return fail_errno(ENOSPC);
}

Status Tree::Impl::charge_inode() const {
  if (state_.nodes().size() + state_.beside().names <= quota_.inodes) return {};
  ++refused_nodes_;
  return fail_errno(ENOSPC);
}

// What nodes carry beside their content grows from `before` to `after` bytes.
Status Tree::Impl::charge_beside(uint64_t before, uint64_t after) {
  if (after <= before) return {};
  const uint64_t more = after - before;
  auto fits = [&] {
    return has_room(more, false) && state_.beside().bytes + more <= kMostBeside;
  };
  if (fits()) return {};
  // What nobody has open any more still counts.
  drop_pending();
  if (fits()) return {};
  ++refused_bytes_;
  return fail_errno(ENOSPC);
}

// The directories of the other names of a file that the kernel knows: these it
// will not look up again, and they must be the held node's too.
std::vector<NodeId> Tree::Impl::other_parents(NodeId id) const {
  std::vector<NodeId> parents;
  std::shared_lock lock(mutex_);
  const Live* live = get(id);
  if (live == nullptr || !live->links || live->serial != 0) return parents;
  auto [begin, end] = aliases_.equal_range(static_cast<Slot>(id));
  for (auto it = begin; it != end && parents.size() < kMaxOtherParents; ++it)
    if (slots_[it->second.parent].serial == 0)
      parents.push_back(id_of(it->second.parent));
  return parents;
}

// Journals the node and every ancestor that is not held yet.
Status Tree::Impl::hold(NodeId id) {
  // One that is gone meanwhile has no such name any more.
  for (NodeId parent : other_parents(id)) (void)hold(parent);
  struct Step {
    NodeId id;
    NodeId parent;
    std::string name;
    Identity identity;
    sys::Stat st{};
  };
  for (int attempt = 0; attempt < 8; ++attempt) {
    std::vector<Step> chain;
    {
      std::shared_lock lock(mutex_);
      const Live* live = get(id);
      if (live == nullptr) return fail_errno(ESTALE);
      if (live->unlinked && live->serial == 0) {
        lock.unlock();
        return revive(id);
      }
      NodeId at = id;
      while (live->serial == 0) {
        if (live->unlinked) return fail_errno(ENOENT);
        chain.push_back(
            {.id = at,
             .parent = id_of(live->parent),
             .name = live->name,
             .identity = {live->dev, live->lower_ino, live->btime}});
        at = chain.back().parent;
        live = &slots_[live->parent];
      }
    }
    if (chain.empty()) return {};
    TRY(writable());
    std::ranges::reverse(chain);
    for (Step& step : chain) {
      auto st = lower_child(step.parent, step.name);
      if (!st || !(identity_of(*st) == step.identity))
        return step.id == id && is_removed(file_fds_.find(id))
                   ? revive(id)
                   : fail_errno(ESTALE);
      step.st = *st;
    }
    std::unique_lock lock(mutex_);
    bool again = false;
    for (Step& step : chain) {
      Live* live = get(step.id);
      const Live* parent = get(step.parent);
      if (live == nullptr || parent == nullptr) return fail_errno(ESTALE);
      if (live->serial != 0) continue;  // another thread was faster
      const Held* dir = state_.find(parent->serial);
      if (dir != nullptr && dir->is_unlinked()) return fail_errno(ENOENT);
      if (dir == nullptr || live->unlinked ||
          State::child(*dir, step.name).has_value()) {
        again = true;
        break;
      }
      TRY(charge_inode());
      Serial serial = state_.next_serial();
      std::vector<Record> records{AdoptRecord{.serial = serial,
                                              .parent = parent->serial,
                                              .name = step.name,
                                              .ino = live->ino,
                                              .base = step.st}};
      // Its other names that the kernel knows are names of the held node too;
      // the rest is found by identity.
      auto [begin, end] = aliases_.equal_range(static_cast<Slot>(step.id));
      for (auto it = begin; it != end; ++it) {
        const Held* other = state_.find(slots_[it->second.parent].serial);
        if (other == nullptr || other->is_unlinked() || !other->base ||
            State::child(*other, it->second.name))
          continue;
        records.push_back(LinkRecord{.serial = serial,
                                     .parent = other->serial,
                                     .name = it->second.name,
                                     .lower = true,
                                     .time = {}});
      }
      TRY(append(std::move(records)));
      become_held(static_cast<Slot>(step.id), serial);
    }
    if (!again) return {};
  }
  return fail_errno(EBUSY);
}

// A lower file that the draft deleted while it was open is written to: it
// becomes a held file without a name, with a copy of the content.
Status Tree::Impl::revive(NodeId id) {
  NodeView view;
  {
    std::shared_lock lock(mutex_);
    view = TRY(view_of(id));
  }
  if (view.serial != 0) return {};
  sys::Stat st = TRY(lower_stat(view));
  Xattrs xattrs = TRY(xattrs_of(view));
  uint32_t segment = 0;
  uint64_t at = 0;
  Segments::Claim claim;
  if (S_ISREG(st.mode) && st.size > 0) {
    FdHandle fd = TRY(lower_file(view));
    SegmentRange range = TRY(segments_->allocate(st.size, {}, &claim));
    segment = range.segment;
    at = range.at;
    std::vector<std::byte> block(std::min<uint64_t>(st.size, 1u << 20));
    for (uint64_t done = 0; done < st.size;) {
      size_t n = TRY(sys::pread_full(fd->get(), block, done));
      if (n == 0) return std::unexpected(Error(Code::kDrift, "short", EIO));
      n = static_cast<size_t>(std::min<uint64_t>(n, st.size - done));
      TRY(segments_->write({segment, at + done, n}, std::span(block).first(n)));
      done += n;
    }
  }
  std::unique_lock lock(mutex_);
  Live* live = get(id);
  if (live == nullptr) return fail_errno(ESTALE);
  if (live->serial != 0) return {};
  Serial serial = state_.next_serial();
  std::vector<Record> records{CreateRecord{.serial = serial,
                                           .parent = 0,
                                           .name = {},
                                           .ino = live->ino,
                                           .mode = st.mode,
                                           .uid = st.uid,
                                           .gid = st.gid,
                                           .rdev = st.rdev,
                                           .time = st.mtime,
                                           .target = {},
                                           .xattrs = std::move(xattrs)}};
  if (segment != 0)
    records.push_back(ExtentRecord{.serial = serial,
                                   .offset = 0,
                                   .length = st.size,
                                   .where = Where::kSegment,
                                   .segment = segment,
                                   .at = at,
                                   .keep_size = false,
                                   .time = st.mtime});
  TRY(append(std::move(records)));
  claim.recorded();
  become_held(static_cast<Slot>(id), serial);
  return {};
}

// Gives a held file content of its own, from the lower file open at `fd`: small
// ones whole, with the base's hash; large ones as a range of the lower file, to
// be pinned later. False: the lower file does not hold still.
Result<bool> Tree::Impl::take_from(int fd, Serial serial) {
  for (int attempt = 0; attempt < 16; ++attempt) {
    sys::Stat st = TRY(sys::fstat(fd));
    TakeRecord record{.serial = serial,
                      .base = st,
                      .whole = st.size <= options_.take_whole,
                      .segment = 0,
                      .at = 0,
                      .hash = {}};
    Segments::Claim claim;
    if (record.whole) {
      std::vector<std::byte> bytes(st.size);
      size_t n = TRY(sys::pread_full(fd, bytes, 0));
      sys::Stat after = TRY(sys::fstat(fd));
      // Someone writes to the real file just now: read again.
      if (n != st.size || !(fingerprint_of(after) == fingerprint_of(st)))
        continue;
      record.hash = xxh3(bytes);
      if (!bytes.empty()) {
        SegmentRange range = TRY(segments_->allocate(bytes.size(), {}, &claim));
        TRY(segments_->write_thin(range, bytes, st.blocks * 512 < st.size));
        record.segment = range.segment;
        record.at = range.at;
      }
    }
    std::unique_lock lock(mutex_);
    // A rollback may have given it content, or taken it away.
    const Held* node = state_.find(serial);
    if (node != nullptr && node->body) return true;
    if (node == nullptr || !node->base ||
        !(identity_of(*node->base) == identity_of(st)))
      return fail_errno(ESTALE);
    if (record.whole) TRY(charge(st.size, true));
    TRY(append({record}));
    claim.recorded();
    if (!record.whole) {
      unpinned_.insert(serial);
      wake_pool();
    }
    return true;
  }
  return false;
}

Status Tree::Impl::take(NodeId id) {
  TRY(hold(id));
  OneEach::Turn once(take_, id);
  NodeView view;
  {
    std::shared_lock lock(mutex_);
    view = TRY(view_of(id));
  }
  if (view.body) return {};
  if (!S_ISREG(view.mode)) return fail_errno(EINVAL);
  FdHandle fd = TRY(lower_file(view));
  TRY(check_change(id, "write", nullptr));  // what was learnt just now
  if (TRY(take_from(fd->get(), view.serial))) return {};
  note_drift(id, "the file is being written in the real tree");
  return std::unexpected(
      Error(Code::kDrift, "the lower file does not hold still", EIO));
}

// Files that the draft shows under another name than their base's, and not by
// a mere rename: a commit of what stands at the base's name, without them,
// would take their content away. They get content of their own before it. So do
// files of several names, which a discard of one of them parts.
Status Tree::Impl::take_strays() {
  std::vector<std::pair<Serial, std::string>> strays;
  {
    std::unique_lock lock(mutex_);
    for (const auto& [serial, node] : state_.nodes()) {
      if (!node->is_file() || node->body || !node->base) continue;
      auto origin = state_.origin_of(*node);
      auto path = origin ? RelPath::parse(*origin) : RelPath::parse("");
      bool elsewhere = std::ranges::any_of(node->links, [](const Link& link) {
        return link.from != LinkFrom::kDerived;
      });
      bool parts = node->links.size() > 1 && node->is_touched();
      if (!origin || !path || !(elsewhere || parts)) continue;
      size_t link = 0;
      // It kept its number when a commit of this draft put another file there
      // (3: a number of another device); the undo of that would replace it.
      bool committed = node->ino != node->base->ino && node->ino >> 61 != 3;
      bool mere_rename = node->links.size() == 1 && !node->links[0].shadows &&
                         !committed &&
                         state_.find_path(*path, &link) == nullptr;
      if (!mere_rename) strays.emplace_back(serial, *origin);
    }
  }
  for (const auto& [serial, origin] : strays) {
    auto fd = open_deep_quiet(base_->get(), origin, O_RDONLY | O_NONBLOCK);
    if (!fd) continue;  // gone in the real tree: that is drift
    // ESTALE: another file stands there by now, which is drift as well.
    if (auto taken = take_from(fd->get(), serial);
        !taken && taken.error().err() != ESTALE)
      return std::unexpected(std::move(taken.error()).context(origin));
  }
  return {};
}

Result<BodyPtr> Tree::Impl::body_of(NodeId id) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    Serial kept = 0;
    {
      std::shared_lock lock(mutex_);
      const Live* live = get(id);
      if (live == nullptr) return fail_errno(ESTALE);
      if (S_ISDIR(live->type)) return fail_errno(EISDIR);
      const Held* node =
          live->serial != 0 ? state_.find(live->serial) : nullptr;
      if (node != nullptr && node->body) {
        if (!node->body->kept) return node->body;
        kept = live->serial;
      }
    }
    if (kept == 0) {
      TRY(take(id));
      continue;
    }
    // All who are about to change it must meet at one lock.
    std::unique_lock lock(mutex_);
    state_.own_body(kept);
  }
  return fail_errno(EBUSY);
}

}  // namespace stoplog::fs
