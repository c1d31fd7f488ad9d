// SPDX-License-Identifier: Apache-2.0
// Names: finding, attaching, detaching, and the paths that follow from them.
#include "fs/state.h"

#include <algorithm>

#include "fs/past.h"

namespace stoplog::fs {

std::string join_path(std::string_view parent, std::string_view name) {
  std::string path(parent);
  if (!path.empty()) path += '/';
  return path += name;
}

State::State() {
  Held& root = add(kRootSerial, S_IFDIR | 0755, 0);
  root.base = std::make_unique<sys::Stat>();
  root.base->mode = root.mode;
  root.base->nlink = 2;
  next_serial_ = kRootSerial + 1;
}

State::~State() = default;
State::State(State&&) = default;
State& State::operator=(State&&) = default;

Held* State::edit(Serial serial) {
  auto it = nodes_.find(serial);
  if (it == nodes_.end()) return nullptr;
  if (past_) past_->keep(*it->second);
  return it->second.get();
}

void State::set_name(Held& dir, const std::string& name,
                     std::optional<Serial> serial) {
  if (past_) past_->keep_name(dir, name);
  if (serial)
    dir.names.insert_or_assign(name, *serial);
  else
    dir.names.erase(name);
}

void State::set_deleted(const std::string& path,
                        std::optional<Deleted> deleted) {
  if (past_) past_->keep_deleted(deleted_, path);
  if (deleted)
    deleted_.insert_or_assign(path, std::move(*deleted));
  else
    deleted_.erase(path);
}

void State::set_identity(const Identity& identity, Serial serial) {
  if (past_) past_->keep_identity(by_identity(identity), identity);
  if (serial != 0)
    identities_.insert_or_assign(identity, serial);
  else
    identities_.erase(identity);
}

void State::set_ino(uint64_t ino, Serial serial) {
  if (past_) past_->keep_ino(by_ino(ino), ino);
  if (serial != 0)
    inos_.insert_or_assign(ino, serial);
  else
    inos_.erase(ino);
}

const Held* State::find(Serial serial) const {
  auto it = nodes_.find(serial);
  return it == nodes_.end() ? nullptr : it->second.get();
}

std::optional<Serial> State::child(const Held& dir, std::string_view name) {
  auto it = dir.names.find(name);
  if (it == dir.names.end()) return std::nullopt;
  return it->second;
}

std::optional<std::string> State::origin_of(const Held& node) const {
  if (!node.base) return std::nullopt;
  // Names from the node up to the first ancestor whose path is known.
  std::vector<std::string_view> names;
  const Held* at = &node;
  while (at->lower_path.empty() && at->serial != kRootSerial) {
    if (at->links.empty() || !at->base) return std::nullopt;
    const Link& link = at->links.front();
    if (link.from != LinkFrom::kDerived) return std::nullopt;
    names.push_back(link.name);
    at = find(link.parent);
    if (at == nullptr) return std::nullopt;
  }
  if (!at->base) return std::nullopt;
  std::string path = at->lower_path;
  for (auto it = names.rbegin(); it != names.rend(); ++it) {
    if (!path.empty()) path += '/';
    path += *it;
  }
  return path;
}

std::optional<std::string> State::base_path(const Link& link) const {
  if (link.from == LinkFrom::kMoved) return link.origin;
  if (link.from == LinkFrom::kNew) return std::nullopt;
  const Held* parent = find(link.parent);
  if (parent == nullptr) return std::nullopt;
  auto origin = origin_of(*parent);
  if (!origin) return std::nullopt;
  return join_path(*origin, link.name);
}

std::optional<std::string> State::path_of(const Held& node, size_t link) const {
  if (node.serial == kRootSerial) return std::string();
  if (link >= node.links.size()) return std::nullopt;
  std::vector<std::string_view> names;
  const Link* at = &node.links[link];
  for (;;) {
    names.push_back(at->name);
    if (at->parent == kRootSerial) break;
    const Held* parent = find(at->parent);
    if (parent == nullptr || parent->links.empty()) return std::nullopt;
    at = &parent->links.front();
  }
  std::string path;
  for (auto it = names.rbegin(); it != names.rend(); ++it) {
    if (!path.empty()) path += '/';
    path += *it;
  }
  return path;
}

Serial State::by_identity(const sys::Stat& st) const {
  return by_identity(identity_of(st));
}

Serial State::by_identity(const Identity& identity) const {
  auto it = identities_.find(identity);
  return it == identities_.end() ? 0 : it->second;
}

Serial State::by_ino(uint64_t ino) const {
  auto it = inos_.find(ino);
  return it == inos_.end() ? 0 : it->second;
}

const State::SealMap* State::seals(uint32_t segment) const {
  auto it = seals_.find(segment);
  return it == seals_.end() ? nullptr : &it->second;
}

Held& State::add(Serial serial, mode_t mode, uint64_t ino) {
  auto node = std::make_unique<Held>();
  node->serial = serial;
  node->mode = mode;
  node->ino = ino;
  Held& held = *node;
  if (past_) past_->keep_absence(held);
  nodes_[serial] = std::move(node);
  if (ino != 0 && by_ino(ino) == 0) set_ino(ino, serial);
  next_serial_ = std::max(next_serial_, serial + 1);
  return held;
}

void State::remove(Serial serial) {
  Held* node = edit(serial);
  if (node == nullptr) return;
  unindex(*node);
  if (node->ino != 0 && by_ino(node->ino) == serial) set_ino(node->ino, 0);
  uncount_beside(*node);
  count_dead(*node);
  if (past_) past_->keep_names(*node);
  nodes_.erase(serial);
}

uint64_t State::further_ranges(const Held& node) {
  const size_t ranges = node.body ? node.body->map.all().size() : 0;
  return ranges > 1 ? ranges - 1 : 0;
}

void State::recount_ranges(const Held& node, uint64_t before) {
  beside_.ranges -= std::min(beside_.ranges, before);
  beside_.ranges += further_ranges(node);
}

State::Beside State::beside_of(const Held& node) {
  Beside sum{.bytes = node.target.size(),
             .names = node.links.size() > 1 ? node.links.size() - 1 : 0,
             .ranges = further_ranges(node)};
  for (const auto& [name, value] : node.xattrs)
    sum.bytes += name.size() + value.size();
  return sum;
}

void State::uncount_beside(const Held& node) {
  const Beside its = beside_of(node);
  beside_.bytes -= std::min(beside_.bytes, its.bytes);
  beside_.names -= std::min(beside_.names, its.names);
  beside_.ranges -= std::min(beside_.ranges, its.ranges);
}

void State::count_beside(const Held& node) {
  const Beside its = beside_of(node);
  beside_.bytes += its.bytes;
  beside_.names += its.names;
  beside_.ranges += its.ranges;
}

void State::index(const Held& node) {
  // What a rollback took away is another file than the real one that it was.
  if (node.base && !node.is_dir() && node.base->nlink > 1 && !node.is_dead() &&
      by_identity(*node.base) == 0)
    set_identity(identity_of(*node.base), node.serial);
}

void State::unindex(const Held& node) {
  if (!node.base) return;
  if (by_identity(*node.base) == node.serial)
    set_identity(identity_of(*node.base), 0);
}

void State::touch(Held& node) {
  if (since_ != 0 && (node.touched < since_ || node.command != by_))
    recent_.push_back(node.serial);
  // A command may make and remove files for as long as it likes.
  if (recent_.size() >= recent_most_) {
    std::erase_if(recent_, [&](Serial s) { return !nodes_.contains(s); });
    recent_most_ = std::max(kRecentLeast, 2 * recent_.size());
  }
  node.touched = now_;
  node.command = by_;
}

void State::touch_dir(Held& dir, const timespec& time) {
  if ((dir.own & kOwnTimes) == 0 && dir.base) dir.atime = dir.base->atime;
  dir.own |= kOwnTimes | kOwnCtime;
  dir.mtime = dir.ctime = time;
  ++dir.version;
}

// From here on the node's place in the draft no longer tells its place below.
void State::pin_lower_path(Held& node) {
  if (!node.base || !node.lower_path.empty()) return;
  if (auto origin = origin_of(node)) node.lower_path = *origin;
}

bool State::is_within(const Held& node, const Held& dir) const {
  const Held* at = &node;
  while (at != nullptr && at != &dir) {
    if (at->serial == kRootSerial || at->links.empty()) return false;
    at = find(at->links.front().parent);
  }
  return at == &dir;
}

void State::note_deleted(const std::string& path, Deleted deleted) {
  deleted.command = by_;
  deleted.when = now_;
  set_deleted(path, std::move(deleted));
}

Link State::detach(Held& node, size_t index) {
  uncount_beside(node);
  pin_lower_path(node);
  Link link = node.links[index];
  if (link.from == LinkFrom::kDerived) {
    if (auto path = base_path(link)) {
      link.from = LinkFrom::kMoved;
      link.origin = *path;
      link.shadows = true;
    } else {
      link.from = LinkFrom::kNew;
    }
  }
  if (Held* dir = edit(link.parent)) {
    set_name(*dir, link.name,
             link.shadows ? std::optional<Serial>(0) : std::nullopt);
    if (node.is_dir()) --dir->nlink_delta;
  }
  node.links.erase(node.links.begin() + static_cast<long>(index));
  count_beside(node);
  return link;
}

void State::attach(Held& node, Held& dir, Link link) {
  auto old = child(dir, link.name);
  link.parent = dir.serial;
  link.shadows = old.has_value();
  if (link.from == LinkFrom::kMoved) {
    auto origin = origin_of(dir);
    if (origin && join_path(*origin, link.name) == link.origin) {
      // Back where it came from: as if it had never left.
      link.from = LinkFrom::kDerived;
      link.origin.clear();
      link.shadows = true;
    }
  }
  set_name(dir, link.name, node.serial);
  if (node.is_dir()) ++dir.nlink_delta;
  uncount_beside(node);
  node.links.push_back(std::move(link));
  count_beside(node);
}

void State::delete_link(Held& node, size_t index, const timespec& time) {
  Link link = detach(node, index);
  if (link.from == LinkFrom::kMoved && node.base) {
    Deleted deleted{.base = *node.base, .target = node.target};
    if (node.body && node.body->has_base) deleted.content = node.body->base;
    note_deleted(link.origin, std::move(deleted));
  }
  node.own |= kOwnCtime;
  node.ctime = time;
  if (!node.is_dir()) --node.nlink_delta;
  touch(node);
}

// Takes away what stands at `name`, if anything does.
Status State::replace(Held& dir, const std::string& name,
                      const std::optional<sys::Stat>& lower,
                      const std::string& target, const timespec& time) {
  auto serial = child(dir, name);
  if (serial && *serial != 0) {
    Held* old = edit(*serial);
    if (old == nullptr) return fail(Code::kCorrupt, "no node {}", *serial);
    if (since_ != 0 && (old->base || *serial < since_serial_))
      recent_gone_.emplace_back(dir.serial, name);
    if (old->is_dir())
      for (const auto& [entry, node] : old->names)
        if (node != 0)
          return fail(Code::kCorrupt, "directory {} is not empty", *serial);
    for (size_t i = 0; i < old->links.size(); ++i)
      if (old->links[i].parent == dir.serial && old->links[i].name == name) {
        delete_link(*old, i, time);
        return {};
      }
    return fail(Code::kCorrupt, "node {} lacks its name", *serial);
  }
  if (!lower) return {};
  if (serial) return fail(Code::kCorrupt, "a name was deleted twice");
  auto origin = origin_of(dir);
  if (!origin) return fail(Code::kCorrupt, "no base to delete from");
  note_deleted(join_path(*origin, name), {.base = *lower, .target = target});
  if (since_ != 0) recent_gone_.emplace_back(dir.serial, name);
  set_name(dir, name, 0);
  if (S_ISDIR(lower->mode)) --dir.nlink_delta;
  return {};
}

void State::counted(const Extent& dead) {
  live_bytes_ -= std::min(live_bytes_, dead.length);
  if (dead_) dead_(dead);
}

// Its content goes with it.
void State::count_dead(Held& node) {
  if (!node.body) return;
  for (const Extent& e : node.body->map.all())
    if (e.where == Where::kSegment) counted(e);
  if (node.body->kept) return;
  node.body->map.clear();
  weigh_parted(*node.body);
}

void State::keep_marks(const std::set<Position>& keep) {
  std::erase_if(marks_,
                [&](const Mark& m) { return !keep.contains(m.position); });
}

void State::drop_seals(
    const std::function<bool(uint32_t, uint64_t, uint32_t)>& gone) {
  for (auto it = seals_.begin(); it != seals_.end();) {
    std::erase_if(it->second, [&](const auto& seal) {
      return gone(it->first, seal.first, seal.second.length);
    });
    it = it->second.empty() ? seals_.erase(it) : std::next(it);
  }
}

void State::forget_command() {
  since_ = 0;
  recent_.clear();
  recent_most_ = kRecentLeast;
  recent_gone_.clear();
}

uint64_t State::changed_by_command() const {
  uint64_t count = 0;
  for (Serial serial : std::set(recent_.begin(), recent_.end())) {
    const Held* node = find(serial);
    if (node == nullptr || node->links.empty()) continue;
    // Comes with what is in it, as in a change set.
    if (node->is_dir() && !node->base && !node->names.empty()) continue;
    bool moved = std::ranges::any_of(node->links, [](const Link& link) {
      return link.from != LinkFrom::kDerived;
    });
    if (node->is_touched() || moved) ++count;
  }
  for (const auto& [parent, name] :
       std::set(recent_gone_.begin(), recent_gone_.end())) {
    const Held* dir = find(parent);
    count += dir == nullptr || child(*dir, name).value_or(0) == 0;
  }
  return count;
}

void State::drop_orphans() {
  std::vector<Serial> gone;
  for (const auto& [serial, node] : nodes_)
    if (node->is_dead()) gone.push_back(serial);
  for (Serial serial : gone) remove(serial);
}

}  // namespace stoplog::fs
