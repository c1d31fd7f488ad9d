// SPDX-License-Identifier: Apache-2.0
// Live slots: what the kernel knows, and where each stands in the lower tree.
// Every function here is called with the tree's lock held.
#include <algorithm>

#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

constexpr uint64_t kHashedIno = 3ull << 61;  // bits 62 and 61

Identity identity_of(const Live& live) {
  return {live.dev, live.lower_ino, live.btime};
}

uint64_t inode_key(const Identity& id) {
  return id.ino ^ (id.dev * 0x9e3779b97f4a7c15u);
}

}  // namespace

uint64_t name_key(Slot parent, std::string_view name) {
  return xxh3_64(std::as_bytes(std::span(name))) ^
         (parent * 0x9e3779b97f4a7c15u);
}

uint16_t seen_of(const timespec& mtime, const timespec& ctime, uint64_t size) {
  const uint64_t words[5] = {static_cast<uint64_t>(mtime.tv_sec),
                             static_cast<uint64_t>(mtime.tv_nsec),
                             static_cast<uint64_t>(ctime.tv_sec),
                             static_cast<uint64_t>(ctime.tv_nsec), size};
  // Never 0.
  return static_cast<uint16_t>(xxh3_64(std::as_bytes(std::span(words))) | 1);
}

Live* Tree::Impl::get(NodeId id) {
  return const_cast<Live*>(std::as_const(*this).get(id));
}

const Live* Tree::Impl::get(NodeId id) const {
  Slot slot = static_cast<Slot>(id);
  if (slot == 0 || slot >= slots_.size()) return nullptr;
  const Live& live = slots_[slot];
  if (!live.used || live.generation != id >> 32) return nullptr;
  return &live;
}

NodeId Tree::Impl::id_of(Slot slot) const {
  return static_cast<NodeId>(slots_[slot].generation) << 32 | slot;
}

Slot Tree::Impl::new_slot() {
  Slot slot;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else {
    slot = static_cast<Slot>(slots_.size());
    slots_.emplace_back();
  }
  uint32_t generation = slots_[slot].generation;
  slots_[slot] = Live{};
  slots_[slot].generation = generation;
  slots_[slot].used = true;
  return slot;
}

void Tree::Impl::enter(Slot slot, Slot parent) {
  Live& live = slots_[slot];
  Live& dir = slots_[parent];
  live.parent = parent;
  live.before = 0;
  live.next = dir.first;
  if (dir.first != 0) slots_[dir.first].before = slot;
  dir.first = slot;
  ++dir.children;
}

void Tree::Impl::leave(Slot slot) {
  Live& live = slots_[slot];
  if (live.parent == 0) return;
  Live& dir = slots_[live.parent];
  (live.before != 0 ? slots_[live.before].next : dir.first) = live.next;
  if (live.next != 0) slots_[live.next].before = live.before;
  --dir.children;
  live.parent = live.next = live.before = 0;
}

void Tree::Impl::drop_if_idle(Slot slot) {
  // A dropped slot may have been the last that kept its directory's slot.
  while (slot > 1) {
    Live& live = slots_[slot];
    if (!live.used || live.lookups != 0 || live.children != 0) return;
    NodeId id = id_of(slot);
    dir_fds_.drop(id);
    file_fds_.drop(id);
    unname(slot);
    Slot parent = live.parent;
    if (live.serial != 0) {
      by_serial_.erase(live.serial);
      const Held* node = state_.find(live.serial);
      if (node != nullptr && node->is_dead())
        pending_drops_.push_back(live.serial);
    }
    name_memory_ -= std::min<uint64_t>(name_memory_, live.name.capacity());
    leave(slot);
    live.used = false;
    live.name = {};
    ++live.generation;
    free_.push_back(slot);
    if (parent == 0) return;
    slot = parent;
  }
}

Slot Tree::Impl::find_named(Slot parent, std::string_view name) const {
  auto [begin, end] = by_name_.equal_range(name_key(parent, name));
  for (auto it = begin; it != end; ++it) {
    const Live& live = slots_[it->second];
    if (live.parent == parent && live.name == name) return it->second;
    auto [first, last] = aliases_.equal_range(it->second);
    for (auto alias = first; alias != last; ++alias)
      if (alias->second.parent == parent && alias->second.name == name)
        return it->second;
  }
  return 0;
}

Slot Tree::Impl::find_inode(const Identity& identity) const {
  auto [begin, end] = by_inode_.equal_range(inode_key(identity));
  for (auto it = begin; it != end; ++it)
    if (identity_of(slots_[it->second]) == identity) return it->second;
  return 0;
}

// The names of an untouched slot lead to it no longer; it keeps its place.
void Tree::Impl::unname(Slot slot) {
  Live& live = slots_[slot];
  auto erase = [&](Slot parent, const std::string& name) {
    auto [begin, end] = by_name_.equal_range(name_key(parent, name));
    for (auto it = begin; it != end; ++it)
      if (it->second == slot) {
        by_name_.erase(it);
        return;
      }
  };
  if (live.named) erase(live.parent, live.name);
  live.named = false;
  auto [first, last] = by_inode_.equal_range(inode_key(identity_of(live)));
  for (auto it = first; it != last; ++it)
    if (it->second == slot) {
      by_inode_.erase(it);
      break;
    }
  if (!live.links) return;
  auto [begin, end] = aliases_.equal_range(slot);
  std::vector<Slot> parents;
  for (auto it = begin; it != end; ++it) {
    erase(it->second.parent, it->second.name);
    --slots_[it->second.parent].children;
    parents.push_back(it->second.parent);
  }
  aliases_.erase(begin, end);
  for (Slot parent : parents) drop_if_idle(parent);
}

bool Tree::Impl::note_links(Slot slot, const sys::Stat& st) {
  Live& live = slots_[slot];
  if (live.links || st.nlink < 2 || S_ISDIR(st.mode) || live.serial != 0)
    return false;
  live.links = true;
  return true;
}

// The name by which a file with several is reached, and another of them.
void Tree::Impl::exchange_names(Slot slot, Alias& alias) {
  Live& live = slots_[slot];
  const Slot parent = alias.parent;
  alias.parent = live.parent;
  leave(slot);
  enter(slot, parent);
  // As many names as before lead from each.
  ++slots_[alias.parent].children;
  --slots_[parent].children;
  std::swap(live.name, alias.name);
}

void Tree::Impl::prefer_name(Slot slot, Slot parent, std::string_view name) {
  Live& live = slots_[slot];
  if (live.parent == parent && live.name == name) return;
  auto [begin, end] = aliases_.equal_range(slot);
  for (auto it = begin; it != end; ++it) {
    if (it->second.parent != parent || it->second.name != name) continue;
    exchange_names(slot, it->second);
    return;
  }
}

void Tree::Impl::unname_one(Slot slot, Slot parent, std::string_view name) {
  Live& live = slots_[slot];
  auto [begin, end] = aliases_.equal_range(slot);
  if (begin == end) return unname(slot);
  if (live.parent == parent && live.name == name)
    exchange_names(slot, begin->second);
  for (auto it = begin; it != end; ++it) {
    if (it->second.parent != parent || it->second.name != name) continue;
    auto [first, last] = by_name_.equal_range(name_key(parent, name));
    for (auto at = first; at != last; ++at)
      if (at->second == slot) {
        by_name_.erase(at);
        break;
      }
    aliases_.erase(it);
    --slots_[parent].children;
    drop_if_idle(parent);
    return;
  }
}

// A name is shown when its directory is and the draft says nothing about it.
void Tree::Impl::check_names(std::vector<Invalidation>& out) {
  enum : uint8_t { kUnknown, kShown, kLost };
  std::vector<uint8_t> known(slots_.size(), kUnknown);
  auto shown = [&](auto& self, Slot dir, std::string_view name) -> bool {
    const Live& live = slots_[dir];
    if (live.serial != 0) {
      const Held* node = state_.find(live.serial);
      return node != nullptr && !node->is_unlinked() &&
             !State::child(*node, name);
    }
    if (known[dir] == kUnknown)
      known[dir] = live.parent != 0 && self(self, live.parent, live.name)
                       ? kShown
                       : kLost;
    return known[dir] == kShown;
  };
  std::vector<Alias> lost;
  for (Slot slot = 2; slot < slots_.size(); ++slot) {
    Live& live = slots_[slot];
    if (!live.used || live.serial != 0 || live.parent == 0) continue;
    // The draft holds this file by another of its names: this one leads there,
    // and the kernel must be told, for no held directory knows it.
    bool held = live.links && state_.by_identity(identity_of(live)) != 0;
    auto gone = [&](Slot parent, const std::string& name) {
      if (held)
        out.push_back({.kind = Invalidation::Kind::kDrop,
                       .node = id_of(parent),
                       .name = name});
      return held || !shown(shown, parent, name);
    };
    auto [begin, end] = aliases_.equal_range(slot);
    lost.clear();
    for (auto it = begin; it != end; ++it)
      if (gone(it->second.parent, it->second.name)) lost.push_back(it->second);
    for (const Alias& alias : lost) unname_one(slot, alias.parent, alias.name);
    live.unlinked = gone(live.parent, std::string(live.name));
    if (!live.unlinked) continue;
    // Another of its names will do.
    live.unlinked = !aliases_.contains(slot);
    unname_one(slot, live.parent, std::string(live.name));
  }
}

Slot Tree::Impl::add_lower(Slot parent, std::string_view name,
                           const sys::Stat& st, bool* linked) {
  bool links = st.nlink > 1 && !S_ISDIR(st.mode);
  Identity identity = identity_of(st);
  if (Slot slot = S_ISDIR(st.mode) ? 0 : find_inode(identity); slot != 0) {
    if (links) {
      bool news = note_links(slot, st);
      news |= obey(slot, parent, name);
      if (linked != nullptr) *linked = news;
      aliases_.emplace(slot, Alias{parent, std::string(name)});
      by_name_.emplace(name_key(parent, name), slot);
      ++slots_[parent].children;
      // Just seen to be good; the others may have moved since.
      prefer_name(slot, parent, name);
      return slot;
    }
    unname(slot);  // its one name is here now
  }
  Slot slot = new_slot();
  Live& live = slots_[slot];
  live.name = name;
  live.ino = shown_ino(st);
  live.lower_ino = st.ino;
  live.dev = st.dev;
  live.btime = st.btime;
  live.type = st.mode & S_IFMT;
  live.links = links;
  live.named = true;
  name_memory_ += live.name.capacity();
  enter(slot, parent);
  by_name_.emplace(name_key(parent, name), slot);
  if (!S_ISDIR(st.mode)) by_inode_.emplace(inode_key(identity), slot);
  if (options_.rules != nullptr && !options_.rules->empty())
    live.rule = rule_for(live, lower_path(live).value_or(""),
                         draft_path(live).value_or(""));
  return slot;
}

void Tree::Impl::become_held(Slot slot, Serial serial) {
  Live& live = slots_[slot];
  unname(slot);
  live.serial = serial;
  by_serial_[serial] = slot;
  Slot parent = live.parent;
  leave(slot);
  live.name = {};
  if (parent != 0) drop_if_idle(parent);
}

Slot Tree::Impl::slot_of_held(const Held& node) {
  auto it = by_serial_.find(node.serial);
  if (it != by_serial_.end()) return it->second;
  Slot slot = new_slot();
  Live& live = slots_[slot];
  live.serial = node.serial;
  live.ino = node.ino;
  live.type = node.mode & S_IFMT;
  by_serial_[node.serial] = slot;
  if (options_.rules != nullptr && !options_.rules->empty()) {
    live.rule = rule_for(live, lower_path(live).value_or(""),
                         draft_path(live).value_or(""));
    for (size_t i = 1; i < node.links.size(); ++i)
      live.rule = std::max(
          live.rule, shared_rule(rule_for(
                         live, state_.base_path(node.links[i]).value_or(""),
                         state_.path_of(node, i).value_or(""))));
  }
  return slot;
}

// The next node upwards that is held, and the path from there; null: gone.
std::pair<const Held*, std::string> Tree::Impl::held_above(
    const Live& live) const {
  std::vector<std::string_view> names;
  const Live* at = &live;
  while (at->serial == 0) {
    names.push_back(at->name);
    if (at->parent == 0) return {nullptr, {}};
    at = &slots_[at->parent];
  }
  std::string path;
  for (auto it = names.rbegin(); it != names.rend(); ++it) {
    if (!path.empty()) path += '/';
    path += *it;
  }
  return {state_.find(at->serial), std::move(path)};
}

std::optional<std::string> Tree::Impl::lower_path(const Live& live) const {
  auto [node, rest] = held_above(live);
  auto path = node != nullptr ? state_.origin_of(*node) : std::nullopt;
  if (path && !rest.empty()) path = join_path(*path, rest);
  return path;
}

std::optional<std::string> Tree::Impl::draft_path(const Live& live) const {
  auto [node, rest] = held_above(live);
  auto path = node != nullptr ? state_.path_of(*node) : std::nullopt;
  if (path && !rest.empty()) path = join_path(*path, rest);
  return path;
}

uint64_t Tree::Impl::shown_ino(const sys::Stat& st) const {
  if (st.dev == base_stat_.dev && state_.by_ino(st.ino) == 0) return st.ino;
  // Another device, or a number that a held node kept from an inode that is
  // gone: a number of its own, the same after every mount.
  const uint64_t words[4] = {st.dev, st.ino,
                             static_cast<uint64_t>(st.btime.tv_sec),
                             static_cast<uint64_t>(st.btime.tv_nsec)};
  return kHashedIno | (xxh3_64(std::as_bytes(std::span(words))) >> 3);
}

// The strictest of where it came from and where it stands.
Rule Tree::Impl::rule_for(const Live& live, std::string_view origin,
                          std::string_view path) const {
  bool is_dir = S_ISDIR(live.type);
  Rule rule = options_.rules->rule(path, is_dir);
  // A mask keeps the real tree's content from the draft; what the draft made
  // itself (`cp .env.example .env`, a key for a test) hides nothing.
  if (rule == Rule::kMask && origin.empty()) rule = Rule::kNone;
  if (origin != path)
    rule = std::max(rule, options_.rules->rule(origin, is_dir));
  return rule;
}

bool Tree::Impl::obey(Slot slot, Slot parent, std::string_view name) {
  if (options_.rules == nullptr || options_.rules->empty()) return false;
  auto below = [&](const std::optional<std::string>& dir) {
    return dir ? join_path(*dir, name) : std::string();
  };
  Live& live = slots_[slot];
  const Live& dir = slots_[parent];
  Rule rule = shared_rule(
      rule_for(live, below(lower_path(dir)), below(draft_path(dir))));
  if (rule <= live.rule) return false;
  live.rule = rule;
  return true;
}

Rule Tree::Impl::rule_at(const Live& dir, std::string_view name,
                         bool is_dir) const {
  if (options_.rules == nullptr || options_.rules->empty()) return Rule::kNone;
  Rule rule = Rule::kNone;
  if (auto path = draft_path(dir))
    rule = options_.rules->rule(join_path(*path, name), is_dir);
  return rule;
}

Result<NodeView> Tree::Impl::view_of(NodeId id) const {
  const Live* live = get(id);
  if (live == nullptr) return fail_errno(ESTALE);
  NodeView view;
  view.id = id;
  view.serial = live->serial;
  view.ino = live->ino;
  view.mode = live->type;
  view.rule = live->rule;
  view.unlinked = live->unlinked;
  view.links = live->links;
  view.turn = turns_;
  if (live->serial == 0) {
    view.has_base = true;
    view.identity = {live->dev, live->lower_ino, live->btime};
    return view;
  }
  const Held* node = state_.find(live->serial);
  if (node == nullptr) return fail_errno(ESTALE);
  view.has_base = node->base != nullptr;
  view.name_held = true;
  view.mode = node->mode;
  view.own = node->own;
  view.flags = node->flags;
  view.uid = node->uid;
  view.gid = node->gid;
  view.rdev = node->rdev;
  view.atime = node->atime;
  view.mtime = node->mtime;
  view.ctime = node->ctime;
  view.nlink_delta = node->nlink_delta;
  view.target = node->target;
  view.body = node->body;
  if (node->base) {
    view.base = *node->base;
    view.identity = identity_of(*node->base);
  }
  if (node->body) {
    view.size = node->body->map.size();
    view.allocated = node->body->map.allocated();
  }
  return view;
}

}  // namespace stoplog::fs
