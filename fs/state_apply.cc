// SPDX-License-Identifier: Apache-2.0
// What each record does to the state. Everything is checked before anything
// changes: a journal is data from a disk.
#include <algorithm>

#include "fs/past.h"
#include "fs/state.h"

namespace stoplog::fs {
namespace {

constexpr uint64_t kMaxOffset = INT64_MAX;

bool fits(uint64_t offset, uint64_t length) {
  return offset <= kMaxOffset && length <= kMaxOffset - offset;
}

}  // namespace

Status State::apply(const Logged& logged) {
  now_ = logged.position;
  by_ = logged.command;
  // The records of one base map are written at once: what follows the first of
  // them is another of them, or power was lost in between and it never was.
  if (!std::holds_alternative<BaseMapRecord>(logged.record)) {
    base_changes_.clear();
    telling_ = 0;
  }
  TRY(std::visit([&](const auto& record) { return on(record); },
                 logged.record));
  position_ = std::max(position_, logged.position);
  return {};
}

Result<Held*> State::need(Serial serial) {
  Held* node = edit(serial);
  if (node == nullptr) return fail(Code::kCorrupt, "no node {}", serial);
  return node;
}

Result<Held*> State::need_dir(Serial serial) {
  Held* node = TRY(need(serial));
  if (!node->is_dir())
    return fail(Code::kCorrupt, "node {} is no directory", serial);
  return node;
}

Result<Held*> State::need_place(Serial serial) {
  Held* node = TRY(need_dir(serial));
  if (node->is_unlinked())
    return fail(Code::kCorrupt, "directory {} was removed", serial);
  return node;
}

Result<Held*> State::need_body(Serial serial) {
  Held* node = TRY(need(serial));
  if (!node->body)
    return fail(Code::kCorrupt, "node {} has no content", serial);
  return node;
}

Status State::on(const OpenRecord&) {
  return fail(Code::kCorrupt, "a second open record");
}

Status State::on(const AdoptRecord& r) {
  Held* dir = TRY(need_place(r.parent));
  if (r.serial == 0 || find(r.serial) != nullptr || r.serial >= 1ull << 60)
    return fail(Code::kCorrupt, "serial {} is taken", r.serial);
  if (!dir->base || child(*dir, r.name))
    return fail(Code::kCorrupt, "nothing to adopt at this name");
  Held& node = add(r.serial, r.base.mode, r.ino);
  node.uid = r.base.uid;
  node.gid = r.base.gid;
  node.rdev = r.base.rdev;
  node.atime = r.base.atime;
  node.mtime = r.base.mtime;
  node.ctime = r.base.ctime;
  node.base = std::make_unique<sys::Stat>(r.base);
  node.links.push_back({.parent = r.parent,
                        .name = r.name,
                        .from = LinkFrom::kDerived,
                        .origin = {},
                        .shadows = true});
  set_name(*dir, r.name, r.serial);
  index(node);
  return {};
}

Status State::on(const CreateRecord& r) {
  Held* dir = nullptr;
  if (r.parent != 0) {
    dir = TRY(need_place(r.parent));
    if (child(*dir, r.name).value_or(0) != 0 || r.name.empty())
      return fail(Code::kCorrupt, "the name exists");
  }
  if (r.serial == 0 || find(r.serial) != nullptr || r.serial >= 1ull << 60)
    return fail(Code::kCorrupt, "serial {} is taken", r.serial);
  Held& node = add(r.serial, r.mode, r.ino);
  node.uid = r.uid;
  node.gid = r.gid;
  node.rdev = r.rdev;
  node.own = kOwnAll;
  node.flags = kXattrsOwn;
  node.atime = node.mtime = node.ctime = r.time;
  node.target = r.target;
  node.xattrs = r.xattrs;
  count_beside(node);
  if (node.is_file()) node.body = std::make_shared<FileBody>();
  node.nlink_delta = dir == nullptr ? 0 : node.is_dir() ? 2 : 1;
  // Numbers of new nodes count up with bit 62 set.
  if ((r.ino >> 61) == 2)
    next_ino_ = std::max<uint64_t>(next_ino_, (r.ino & ~(1ull << 62)) + 1);
  touch(node);
  if (dir != nullptr) {
    attach(node, *dir, {.parent = 0, .name = r.name, .from = {}, .origin = {}});
    touch_dir(*dir, r.time);
  }
  return {};
}

Status State::on(const LinkRecord& r) {
  Held* node = TRY(need(r.serial));
  Held* dir = TRY(need_place(r.parent));
  if (node->is_dir()) return fail(Code::kCorrupt, "a link to a directory");
  auto there = child(*dir, r.name);
  // A discard has parted it from its other names: so says today's program of a
  // journal in which an older one found it there again.
  if (r.lower && !node->base) return {};
  if (r.lower ? there.has_value() || !dir->base : there.value_or(0) != 0)
    return fail(Code::kCorrupt, "the name exists");
  if (r.lower) {
    uncount_beside(*node);
    node->links.push_back({.parent = r.parent,
                           .name = r.name,
                           .from = LinkFrom::kDerived,
                           .origin = {},
                           .shadows = true});
    count_beside(*node);
    set_name(*dir, r.name, r.serial);
    return {};
  }
  pin_lower_path(*node);
  attach(*node, *dir,
         {.parent = 0, .name = r.name, .from = LinkFrom::kNew, .origin = {}});
  ++node->nlink_delta;
  node->own |= kOwnCtime;
  node->ctime = r.time;
  touch(*node);
  touch_dir(*dir, r.time);
  return {};
}

Status State::on(const UnlinkRecord& r) {
  Held* dir = TRY(need_dir(r.parent));
  if (child(*dir, r.name).value_or(0) == 0 && !r.lower)
    return fail(Code::kCorrupt, "nothing to unlink");
  TRY(replace(*dir, r.name, r.lower, r.lower_target, r.time));
  touch_dir(*dir, r.time);
  return {};
}

Status State::on(const RenameRecord& r) {
  Held* dir = TRY(need_dir(r.parent));
  Held* new_dir = TRY(need_place(r.new_parent));
  Held* node = TRY(need(child(*dir, r.name).value_or(0)));
  if (node->is_dir() && is_within(*new_dir, *node))
    return fail(Code::kCorrupt, "a directory moved into itself");
  if (r.exchange) return exchange(r);
  if (child(*new_dir, r.new_name).value_or(0) == node->serial)
    return fail(Code::kCorrupt, "renamed onto itself");
  size_t at = 0;
  while (at < node->links.size() &&
         (node->links[at].parent != r.parent || node->links[at].name != r.name))
    ++at;
  if (at == node->links.size())
    return fail(Code::kCorrupt, "node {} lacks its name", node->serial);
  TRY(replace(*new_dir, r.new_name, r.lower, r.lower_target, r.time));
  Link link = detach(*node, at);
  link.name = r.new_name;
  attach(*node, *new_dir, std::move(link));
  node->own |= kOwnCtime;
  node->ctime = r.time;
  touch(*node);
  touch_dir(*dir, r.time);
  touch_dir(*new_dir, r.time);
  return {};
}

Status State::exchange(const RenameRecord& r) {
  Held* dir = TRY(need_dir(r.parent));
  Held* new_dir = TRY(need_dir(r.new_parent));
  Held* a = TRY(need(child(*dir, r.name).value_or(0)));
  Held* b = TRY(need(child(*new_dir, r.new_name).value_or(0)));
  if (a == b || (b->is_dir() && is_within(*dir, *b)))
    return fail(Code::kCorrupt, "impossible exchange");
  auto find_link = [](Held& node, Serial parent, const std::string& name) {
    size_t i = 0;
    while (i < node.links.size() &&
           (node.links[i].parent != parent || node.links[i].name != name))
      ++i;
    return i;
  };
  size_t i = find_link(*a, r.parent, r.name);
  size_t j = find_link(*b, r.new_parent, r.new_name);
  if (i == a->links.size() || j == b->links.size())
    return fail(Code::kCorrupt, "a node lacks its name");
  Link from_a = detach(*a, i);
  Link from_b = detach(*b, j);
  from_a.name = r.new_name;
  from_b.name = r.name;
  attach(*a, *new_dir, std::move(from_a));
  attach(*b, *dir, std::move(from_b));
  for (Held* node : {a, b}) {
    node->own |= kOwnCtime;
    node->ctime = r.time;
    touch(*node);
  }
  touch_dir(*dir, r.time);
  touch_dir(*new_dir, r.time);
  return {};
}

Status State::on(const SetAttrRecord& r) {
  Held* node = TRY(need(r.serial));
  node->own |= r.own & kOwnAll;
  bool only_times = true;
  if ((r.own & kOwnMode) != 0) {
    mode_t mode = (node->mode & S_IFMT) | (r.mode & 07777);
    only_times = mode == node->mode && r.uid == node->uid && r.gid == node->gid;
    node->mode = mode;
    node->uid = r.uid;
    node->gid = r.gid;
  }
  if ((r.own & kOwnTimes) != 0) {
    node->atime = r.atime;
    node->mtime = r.mtime;
  }
  if ((r.own & kOwnCtime) != 0) node->ctime = r.ctime;
  if (r.by_user) node->flags |= kAttrChanged;
  // git freshens the times of objects that it would have written: no change.
  if (only_times)
    node->touched = now_;
  else
    touch(*node);
  return {};
}

Status State::on(const XattrRecord& r) {
  Held* node = TRY(need(r.serial));
  node->flags |= kXattrsOwn | kXattrsChanged;
  uncount_beside(*node);
  node->xattrs = r.xattrs;
  count_beside(*node);
  node->own |= kOwnCtime;
  node->ctime = r.ctime;
  touch(*node);
  return {};
}

Status State::on(const TakeRecord& r) {
  Held* node = TRY(need(r.serial));
  if (!node->is_file() || node->body || !node->base ||
      !fits(r.at, r.base.size) || r.base.size > kMaxOffset)
    return fail(Code::kCorrupt, "no content to take");
  auto body = std::make_shared<FileBody>();
  body->lower = r.base;
  if (r.whole) {
    body->base = {.segment = r.segment, .at = r.at, .length = r.base.size};
    body->has_base = true;
    body->base_hash = r.hash;
    live_bytes_ += r.base.size;
    note_range(r.segment, r.at + r.base.size);
  }
  body->map.put({.offset = 0,
                 .length = r.base.size,
                 .where = r.whole ? Where::kSegment : Where::kLower,
                 .segment = r.segment,
                 .at = r.at});
  node->body = std::move(body);
  if ((node->own & kOwnMode) == 0) {
    node->mode = (node->mode & S_IFMT) | (r.base.mode & 07777);
    node->uid = r.base.uid;
    node->gid = r.base.gid;
  }
  if ((node->own & kOwnTimes) == 0) {
    node->atime = r.base.atime;
    node->mtime = r.base.mtime;
  }
  if ((node->own & kOwnCtime) == 0) node->ctime = r.base.ctime;
  node->own = kOwnAll;
  // The content may have changed since it was adopted; this is what was seen.
  unindex(*node);
  *node->base = r.base;
  index(*node);
  touch(*node);
  return {};
}

Status State::on(const ExtentRecord& r) {
  Held* node = TRY(need_body(r.serial));
  if (!fits(r.offset, r.length) || !fits(r.at, r.length) ||
      r.where == Where::kLower)
    return fail(Code::kCorrupt, "an extent out of bounds");
  const uint64_t ranges = further_ranges(*node);
  FileBody& body = own_body(*node);
  DeadSink dead = [&](const Extent& e) {
    // The base's own bytes stay for a merge.
    bool is_base = body.has_base && e.segment == body.base.segment &&
                   e.at >= body.base.at &&
                   e.at < body.base.at + body.base.length;
    if (is_base)
      live_bytes_ -= std::min(live_bytes_, e.length);
    else
      counted(e);
  };
  uint64_t size = body.map.size();
  if (r.where == Where::kHole) {
    body.map.punch(r.offset, r.length, dead);
    if (!r.keep_size && r.offset + r.length > size)
      body.map.truncate(r.offset + r.length);
  } else {
    Extent extent{.offset = r.offset,
                  .length = r.length,
                  .where = r.where,
                  .segment = r.segment,
                  .at = r.at,
                  .epoch = epoch_};
    if (r.where == Where::kSegment) {
      live_bytes_ += r.length;
      note_range(r.segment, r.at + r.length);
    } else {
      extent.segment = 0;
      extent.at = 0;
    }
    body.map.put(extent, dead);
    if (r.keep_size && body.map.size() > size) body.map.truncate(size, dead);
  }
  recount_ranges(*node, ranges);
  weigh_parted(body);
  node->mtime = node->ctime = r.time;
  touch(*node);
  return {};
}

Status State::on(const TruncateRecord& r) {
  Held* node = TRY(need_body(r.serial));
  if (r.size > kMaxOffset) return fail(Code::kCorrupt, "an absurd size");
  const uint64_t ranges = further_ranges(*node);
  FileBody& body = own_body(*node);
  body.map.truncate(r.size, [&](const Extent& e) {
    bool is_base = body.has_base && e.segment == body.base.segment &&
                   e.at >= body.base.at &&
                   e.at < body.base.at + body.base.length;
    if (is_base)
      live_bytes_ -= std::min(live_bytes_, e.length);
    else
      counted(e);
  });
  recount_ranges(*node, ranges);
  weigh_parted(body);
  node->mtime = node->ctime = r.time;
  touch(*node);
  return {};
}

Status State::on(const TouchRecord& r) {
  Held* node = TRY(need_body(r.serial));
  node->mtime = node->ctime = r.time;
  touch(*node);
  return {};
}

Status State::on(const PinRecord& r) {
  Held* node = TRY(need_body(r.serial));
  const uint64_t ranges = further_ranges(*node);
  FileBody& body = own_body(*node);
  if (!fits(r.at, body.lower.size) || body.has_base)
    return fail(Code::kCorrupt, "nothing to pin");
  uint64_t before = body.map.segment_bytes();
  body.map.pin(r.segment, r.at);
  recount_ranges(*node, ranges);
  weigh_parted(body);
  live_bytes_ += body.map.segment_bytes() - before;
  body.base = {.segment = r.segment, .at = r.at, .length = body.lower.size};
  body.has_base = true;
  body.base_hash = r.hash;
  note_range(r.segment, r.at + body.lower.size);
  return {};
}

void State::note_range(uint32_t segment, uint64_t end) {
  if (segment >= next_segment_) {
    next_segment_ = segment + 1;
    segment_end_ = end;
  } else if (segment + 1 == next_segment_) {
    segment_end_ = std::max(segment_end_, end);
  }
}

Status State::on(const SealRecord& r) {
  if (!fits(r.at, r.length)) return fail(Code::kCorrupt, "an absurd seal");
  seals_[r.segment].insert_or_assign(r.at, Seal{r.length, r.hash});
  return {};
}

Status State::on(const MarkRecord& r) {
  Mark mark = r.mark;
  mark.position = now_;
  mark.generation = generation_;
  next_mark_ = std::max(next_mark_, mark.id + 1);
  if (mark.kind == MarkKind::kCommandBegin) command_ = mark.command;
  if (mark.kind == MarkKind::kCommandBegin ||
      mark.kind == MarkKind::kCommandEnd) {
    forget_command();
    since_ = mark.kind == MarkKind::kCommandBegin ? now_ : 0;
    since_serial_ = next_serial_;
  }
  marks_.push_back(std::move(mark));
  ++epoch_;
  if (past_) past_->begin(now_);
  return {};
}

Status State::on(const DropRecord& r) {
  for (Serial serial : r.serials)
    if (const Held* node = find(serial); node != nullptr && node->is_dead())
      remove(serial);
  return {};
}

Status State::on(const DriftRecord& r) {
  Held* node = TRY(need(r.serial));
  node->drift = r.what;
  node->drift_time = r.time;
  return {};
}

Status State::on(const ReleaseRecord& r) {
  Held* node = TRY(need(r.serial));
  if (!node->is_clean()) return fail(Code::kCorrupt, "not clean");
  for (const Link& link : node->links)
    if (Held* dir = edit(link.parent)) set_name(*dir, link.name, {});
  remove(r.serial);
  return {};
}

// What it speaks of changed nothing: replay() takes note.
Status State::on(const RefusedRecord&) { return {}; }

// It is no change: who replays looks at it before the others.
Status State::on(const FromRecord&) {
  return fail(Code::kCorrupt, "a generation starts twice");
}

Status State::on(const ToldRecord& r) {
  if (r.follows && r.commits.size() != 1)
    return fail(Code::kCorrupt, "a base map of {} commits", r.commits.size());
  if (r.follows)
    telling_ = r.commits.front();
  else
    for (CommitId commit : r.commits) add_told(commit);
  return {};
}

void State::add_told(CommitId commit) {
  constexpr size_t kMost = 256;
  if (commit == 0) return;
  if (told_.size() == kMost) told_.erase(told_.begin());
  told_.push_back(commit);
}

// Speaks of files, not of what is in them.
Status State::on(const OlderRecord&) { return {}; }

Status State::on(const DeviceRecord& r) {
  move_to_device(r.device);
  return {};
}

void State::move_to_device(dev_t device) {
  dev_t old = std::exchange(device_, device);
  if (old == 0 || old == device) return;
  if (past_) past_->clear();
  auto move = [&](sys::Stat& st) {
    if (st.dev == old) st.dev = device;
  };
  for (auto& [serial, node] : nodes_) {
    if (!node->base) continue;
    unindex(*node);
    move(*node->base);
    if (node->body) move(node->body->lower);
    index(*node);
  }
  for (auto& [path, deleted] : deleted_) move(deleted.base);
}

}  // namespace stoplog::fs
