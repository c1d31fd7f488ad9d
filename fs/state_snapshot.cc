// SPDX-License-Identifier: Apache-2.0
// A whole state as records, and back. A generation starts with one; fork and
// rollback are one too.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "fs/state.h"

namespace stoplog::fs {
namespace {

NodeRecord record_of(const Held& node) {
  NodeRecord r;
  r.serial = node.serial;
  r.ino = node.ino;
  r.mode = node.mode;
  r.uid = node.uid;
  r.gid = node.gid;
  r.rdev = node.rdev;
  r.atime = node.atime;
  r.mtime = node.mtime;
  r.ctime = node.ctime;
  r.flags = node.flags | static_cast<uint32_t>(node.own) << 24;
  r.command = node.command;
  r.nlink_delta = node.nlink_delta;
  r.touched = node.touched;
  if (node.base) r.base = *node.base;
  r.lower_path = node.lower_path;
  for (const Link& link : node.links)
    r.links.push_back({.parent = link.parent,
                       .name = link.name,
                       .from = static_cast<uint8_t>(link.from),
                       .origin = link.origin,
                       .shadows = link.shadows});
  r.target = node.target;
  r.xattrs = node.xattrs;
  if (node.body) {
    const FileBody& body = *node.body;
    r.has_content = true;
    r.size = body.map.size();
    r.extents = body.map.all().copy();
    r.lower = body.lower;
    r.has_base = body.has_base;
    r.base_segment = body.base.segment;
    r.base_at = body.base.at;
    r.base_hash = body.base_hash;
  }
  r.drift = node.drift;
  r.drift_time = node.drift_time;
  return r;
}

}  // namespace

void State::snapshot(const std::function<Status(Record)>& sink,
                     Status& result) const {
  auto put = [&](Record record) {
    if (result) result = sink(std::move(record));
  };
  if (device_ != 0) put(DeviceRecord{device_});
  for (const auto& [serial, node] : nodes_) put(record_of(*node));
  for (const auto& [serial, node] : nodes_) {
    GoneRecord gone{.dir = serial, .names = {}};
    for (const auto& [name, child] : node->names)
      if (child == 0) gone.names.push_back(name);
    if (!gone.names.empty()) put(std::move(gone));
  }
  for (const auto& [path, d] : deleted_)
    put(DeletedRecord{.path = path,
                      .base = d.base,
                      .target = d.target,
                      .command = d.command,
                      .when = d.when,
                      .segment = d.content.segment,
                      .at = d.content.at});
  for (const auto& [segment, seals] : seals_)
    for (const auto& [at, seal] : seals)
      put(SealRecord{.segment = segment,
                     .at = at,
                     .length = seal.length,
                     .hash = seal.hash});
  if (!told_.empty()) put(ToldRecord{.follows = false, .commits = told_});
  put(table());
  put(StartRecord{});
}

void State::set_unwritten(bool unwritten) {
  has_unwritten_ = false;
  for (auto& [serial, node] : nodes_) {
    if (!node->links.empty()) continue;
    node->unwritten = unwritten && node->is_dead();
    has_unwritten_ = has_unwritten_ || node->unwritten;
  }
}

std::vector<Record> State::unwritten_in(std::span<const Record> records) const {
  std::vector<Record> nodes;
  for (const Record& record : records) {
    Serial serial = subject_of(record);
    const Held* node = find(serial);
    bool is_new = std::ranges::none_of(
        nodes, [&](const Record& r) { return subject_of(r) == serial; });
    if (node != nullptr && node->unwritten && is_new)
      nodes.push_back(record_of(*node));
  }
  return nodes;
}

void State::set_written(const Record& node) {
  auto it = nodes_.find(subject_of(node));
  if (it != nodes_.end()) it->second->unwritten = false;
}

TableRecord State::table() const {
  return {.next_serial = next_serial_,
          .next_ino = next_ino_,
          .epoch = epoch_,
          .command = command_,
          .next_mark = next_mark_,
          .next_segment = next_segment_,
          .position = position_,
          .marks = marks_};
}

FromRecord State::from(Position position) const {
  FromRecord record{.position = position, .table = table()};
  // Nothing that any mark has seen may be written in place.
  ++record.table.epoch;
  return record;
}

void State::go_on_from(const FromRecord& record, Position now) {
  drop_orphans();
  uint32_t command = command_;
  (void)on(record.table);
  if (record.keeps_command) command_ = command;
  position_ = std::max(now, record.table.position);
  base_changes_.clear();
  telling_ = 0;
  forget_command();
}

void State::add_seal(const SealRecord& r) {
  if (r.at <= INT64_MAX && r.length <= INT64_MAX - r.at)
    seals_[r.segment].try_emplace(r.at, Seal{r.length, r.hash});
}

Status State::on(const NodeRecord& r) {
  if (r.serial == 0 || r.serial >= 1ull << 60 ||
      (r.serial != kRootSerial && find(r.serial) != nullptr))
    return fail(Code::kCorrupt, "serial {} is taken", r.serial);
  if (S_ISDIR(r.mode) && r.links.size() > 1)
    return fail(Code::kCorrupt, "a directory with two names");
  if (r.serial == kRootSerial &&
      (!S_ISDIR(r.mode) || !r.links.empty() || !r.base))
    return fail(Code::kCorrupt, "a root that is none");
  if (r.has_content && !S_ISREG(r.mode))
    return fail(Code::kCorrupt, "content of no file");
  if (r.serial == kRootSerial) nodes_.erase(kRootSerial);
  Held& node = add(r.serial, r.mode, 0);
  node.ino = r.ino;
  node.uid = r.uid;
  node.gid = r.gid;
  node.rdev = r.rdev;
  node.atime = r.atime;
  node.mtime = r.mtime;
  node.ctime = r.ctime;
  node.own = (r.flags >> 24) & kOwnAll;
  node.flags = r.flags & 0xffffff;
  node.command = r.command;
  node.nlink_delta = r.nlink_delta;
  node.touched = r.touched;
  if (r.base) node.base = std::make_unique<sys::Stat>(*r.base);
  node.lower_path = r.lower_path;
  node.target = r.target;
  node.xattrs = r.xattrs;
  node.drift = r.drift;
  node.drift_time = r.drift_time;
  for (const LinkState& link : r.links)
    node.links.push_back({.parent = link.parent,
                          .name = link.name,
                          .from = static_cast<LinkFrom>(link.from),
                          .origin = link.origin,
                          .shadows = link.shadows});
  if (r.has_content) {
    node.body = std::make_shared<FileBody>();
    FileBody& body = *node.body;
    for (const Extent& e : r.extents) {
      if (e.offset > INT64_MAX || e.length > INT64_MAX - e.offset ||
          e.at > INT64_MAX || e.length > INT64_MAX - e.at)
        return fail(Code::kCorrupt, "an extent out of bounds");
      body.map.put(e);
    }
    body.map.truncate(std::min<uint64_t>(r.size, INT64_MAX));
    body.lower = r.lower;
    body.has_base = r.has_base;
    body.base = {
        .segment = r.base_segment, .at = r.base_at, .length = r.lower.size};
    body.base_hash = r.base_hash;
    live_bytes_ += body.map.segment_bytes();
  }
  count_beside(node);
  // One that was removed must not stand in the way of one that has its number
  // or is the same lower file.
  if (node.is_dead()) return {};
  if (node.ino != 0 && by_ino(node.ino) == 0) set_ino(node.ino, node.serial);
  index(node);
  return {};
}

Status State::on(const GoneRecord& r) {
  Held* dir = TRY(need_dir(r.dir));
  for (const std::string& name : r.names) dir->names.try_emplace(name, 0);
  return {};
}

Status State::on(const DeletedRecord& r) {
  set_deleted(r.path,
              Deleted{.base = r.base,
                      .target = r.target,
                      .command = r.command,
                      .when = r.when,
                      .content = {.segment = r.segment,
                                  .at = r.at,
                                  .length = r.segment != 0 ? r.base.size : 0}});
  return {};
}

Status State::on(const TableRecord& r) {
  next_serial_ = std::max(next_serial_, r.next_serial);
  next_ino_ = std::max(next_ino_, r.next_ino);
  epoch_ = r.epoch;
  command_ = r.command;
  next_mark_ = r.next_mark;
  if (r.next_segment > 0) note_range(r.next_segment - 1, 0);
  marks_ = r.marks;
  return {};
}

// Links were read before the directories that they name, perhaps.
Status State::on(const StartRecord&) {
  for (auto& [serial, node] : nodes_) {
    for (const Link& link : node->links) {
      Held* dir = TRY(need_dir(link.parent));
      auto [it, added] = dir->names.insert_or_assign(link.name, serial);
      if (!added && it->second != serial)
        return fail(Code::kCorrupt, "two nodes of one name");
    }
  }
  // Every directory must reach the root; each is walked once.
  std::unordered_set<Serial> sound{kRootSerial};
  for (auto& [serial, node] : nodes_) {
    std::vector<Serial> trail;
    const Held* at = node.get();
    while (!sound.contains(at->serial)) {
      // Removed, or a file with names yet to be seen.
      if (at->links.empty() && at == node.get()) break;
      if (at->links.empty() || trail.size() > nodes_.size())
        return fail(Code::kCorrupt, "node {} hangs in the air", serial);
      trail.push_back(at->serial);
      at = find(at->links.front().parent);
    }
    sound.insert(trail.begin(), trail.end());
  }
  return {};
}

void State::succeed(const State& present) {
  next_serial_ = std::max(next_serial_, present.next_serial_);
  next_ino_ = std::max(next_ino_, present.next_ino_);
  next_mark_ = std::max(next_mark_, present.next_mark_);
  note_range(present.next_segment_ - 1, present.segment_end_);
  position_ = present.position_;
  generation_ = present.generation_;
  // Nothing that any mark has seen may be written in place.
  epoch_ = present.epoch_ + 1;
  command_ = present.command_;
  marks_ = present.marks_;
  told_ = present.told_;
  seals_ = present.seals_;
}

void State::touch_held() {
  for (auto& [serial, node] : nodes_) {
    bool moved = std::ranges::any_of(node->links, [](const Link& link) {
      return link.from != LinkFrom::kDerived;
    });
    if (moved || node->is_touched()) node->touched = position_;
  }
  for (auto& [path, deleted] : deleted_) deleted.when = position_;
}

void State::count_on(const State& older) {
  next_serial_ = std::max(next_serial_, older.next_serial_);
  next_ino_ = std::max(next_ino_, older.next_ino_);
  next_mark_ = std::max(next_mark_, older.next_mark_);
  note_range(older.next_segment_ - 1, older.segment_end_);
  epoch_ = std::max(epoch_, older.epoch_ + 1);
  std::vector<CommitId> told = std::exchange(told_, older.told_);
  for (CommitId commit : told) add_told(commit);
  std::vector<Mark> own = std::exchange(marks_, older.marks_);
  marks_.insert(marks_.end(), own.begin(), own.end());
}

void State::keep_target(Serial serial, const std::string& target) {
  Held* node = edit(serial);
  if (node == nullptr || !S_ISLNK(node->mode) || !node->target.empty()) return;
  uncount_beside(*node);
  node->target = target;
  count_beside(*node);
}

void State::keep_orphans(const State& present,
                         const std::vector<Serial>& serials) {
  for (Serial serial : serials) {
    const Held* old = present.find(serial);
    if (old == nullptr || nodes_.contains(serial)) continue;
    // By the record, so that it is what a replay of the snapshot will give.
    NodeRecord record = record_of(*old);
    record.links.clear();
    // No names left: stat shows no links.
    record.nlink_delta =
        old->base ? -static_cast<int32_t>(old->base->nlink) : 0;
    if (old->base && record.lower_path.empty())
      record.lower_path = present.origin_of(*old).value_or("");
    if (auto added = on(record); !added) continue;
    edit(serial)->body = old->body;
  }
}

}  // namespace stoplog::fs
