// SPDX-License-Identifier: Apache-2.0
// The real tree moved: look what is so now, drop what is no longer so, and
// say what the kernel must be told.
#include "base/sys_node.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

bool is_absent(const Error& error) {
  return error.err() == ENOENT || error.err() == ENOTDIR ||
         error.err() == ELOOP;
}

// Nothing need stand in the real tree at a name that the draft gave it.
bool is_given(const Held& node, Serial dir, std::string_view name) {
  for (const Link& link : node.links)
    if (link.parent == dir && link.name == name)
      return link.from != LinkFrom::kDerived;
  return true;
}

}  // namespace

// A file that was watched through its one directory has several names now:
// what the kernel has of it may be older than the watch that it needs.
void Tree::Impl::tell_links(NodeId id) {
  Invalidation what{
      .kind = Invalidation::Kind::kNode, .node = id, .links = true};
  if (Observer* observer = observer_) observer->invalidate({&what, 1});
}

void Tree::Impl::drop_listing(NodeId dir) {
  std::lock_guard leaf(listings_mutex_);
  std::erase_if(listings_, [&](const auto& old) { return old->dir == dir; });
}

// A held node whose base moved under it.
void Tree::Impl::look_at_held(Serial serial, const Result<sys::Stat>& st,
                              std::vector<Invalidation>& out) {
  NodeId id = 0;
  std::string what;
  {
    std::unique_lock lock(mutex_);
    const Held* node = state_.find(serial);
    if (node == nullptr || !node->base) return;
    id = id_of(slot_of_held(*node));
    if (node->is_dir() &&
        (!st || !(identity_of(*st) == identity_of(*node->base))))
      out.push_back(
          {.kind = Invalidation::Kind::kNode, .node = id, .replaced = true});
    bool live = node->own != kOwnAll || !node->body;
    if (live) out.push_back({.kind = Invalidation::Kind::kNode, .node = id});
    bool moved_here =
        !node->links.empty() && node->links.front().from == LinkFrom::kMoved;
    if (!node->is_touched() && !moved_here) {
      drop_if_idle(static_cast<Slot>(id));
      return;
    }
    if (!st)
      what = is_absent(st.error()) ? "removed in the real tree" : "";
    else if (!(identity_of(*st) == identity_of(*node->base)))
      what = "replaced in the real tree";
    else if (!node->is_dir() &&
             !(fingerprint_of(*st) == fingerprint_of(*node->base)))
      what = "modified in the real tree";
    else if ((st->mode & 07777) != (node->base->mode & 07777))
      what = "its mode changed in the real tree";
  }
  file_fds_.drop(id);
  if (!what.empty()) note_drift(id, std::move(what));
  std::unique_lock lock(mutex_);
  if (get(id) != nullptr) drop_if_idle(static_cast<Slot>(id));
}

// The same for one whose name may be the draft's: at its base's place.
void Tree::Impl::look_at_base(Serial serial, std::vector<Invalidation>& out) {
  NodeId id = 0;
  {
    std::unique_lock lock(mutex_);
    const Held* node = state_.find(serial);
    if (node == nullptr || !node->base || node->links.empty() ||
        !state_.origin_of(*node))
      return;
    id = id_of(slot_of_held(*node));
  }
  auto fd = lower_open(id, O_PATH);
  look_at_held(serial,
               fd ? sys::fstat(fd->get())
                  : Result<sys::Stat>(std::unexpected(std::move(fd).error())),
               out);
}

void Tree::Impl::look(NodeId dir, const std::string& name,
                      std::vector<Invalidation>& out) {
  using Kind = Invalidation::Kind;
  Serial held = 0;
  bool given = false;
  {
    std::shared_lock lock(mutex_);
    const Live* live = get(dir);
    if (live == nullptr) return;
    if (live->serial != 0) {
      const Held* node = state_.find(live->serial);
      auto serial = node ? State::child(*node, name) : std::nullopt;
      if (serial == Serial{0}) return;  // gone in the draft, whatever comes
      held = serial.value_or(0);
      const Held* child = held != 0 ? state_.find(held) : nullptr;
      given = child != nullptr && is_given(*child, live->serial, name);
    }
  }
  auto st = lower_child(dir, name);
  if (st && !S_ISDIR(st->mode)) {
    // Known by another name, which no event speaks of: whoever links a file on
    // the host, or writes to it, tells the directory of that name only.
    std::unique_lock lock(mutex_);
    Slot known = find_inode(identity_of(*st));
    if (known != 0 && known != find_named(static_cast<Slot>(dir), name)) {
      note_links(known, *st);
      slots_[known].seen = seen_of(st->mtime, st->ctime, st->size);
      out.push_back({.kind = Kind::kNode,
                     .node = id_of(known),
                     .links = slots_[known].links});
    }
  }
  if (held != 0 && given && !st) return;
  if (held != 0) return look_at_held(held, st, out);
  bool was_dir = false;
  {
    std::unique_lock lock(mutex_);
    Slot slot = find_named(static_cast<Slot>(dir), name);
    if (slot == 0) {
      out.push_back({.kind = Kind::kExpire, .node = dir, .name = name});
      return;
    }
    Live& live = slots_[slot];
    NodeId id = id_of(slot);
    Identity known{live.dev, live.lower_ino, live.btime};
    if (st && identity_of(*st) == known) {
      note_links(slot, *st);
      live.seen = seen_of(st->mtime, st->ctime, st->size);
      out.push_back({.kind = Kind::kNode, .node = id, .links = live.links});
      return;
    }
    was_dir = S_ISDIR(live.type);
    unname_one(slot, static_cast<Slot>(dir), name);
    out.push_back({.kind = st ? Kind::kExpire : Kind::kDrop,
                   .node = dir,
                   .child = id,
                   .name = name});
    // A file that lost its one name is still what it was, to whoever has it
    // open: what the kernel has of it stays, and so does our descriptor.
    if (was_dir || live.links) out.push_back({.kind = Kind::kNode, .node = id});
  }
  // Cached fds beneath it lead to where it went.
  if (was_dir) dir_fds_.clear();
}

Serial Tree::Impl::serial_of(NodeId id) const {
  std::shared_lock lock(mutex_);
  const Live* live = get(id);
  return live != nullptr ? live->serial : 0;
}

// An untouched directory is where it was seen: nothing has changed for what is
// in it. Of the top that is always so.
bool Tree::Impl::still_stands(NodeId dir) {
  Result<NodeView> view = fail_errno(ESTALE);
  {
    std::shared_lock lock(mutex_);
    view = view_of(dir);
  }
  return view && (dir == kRootId || lower_stat_once(*view));
}

// Every name in it that is known here.
void Tree::Impl::look_beneath(NodeId dir, std::vector<Invalidation>& out) {
  std::vector<std::string> names;
  {
    std::shared_lock lock(mutex_);
    const Live* live = get(dir);
    if (live == nullptr) return;
    for (Slot at = live->first; at != 0; at = slots_[at].next)
      if (slots_[at].named) names.push_back(slots_[at].name);
    if (const Held* node = live->serial ? state_.find(live->serial) : nullptr)
      for (const auto& [held, serial] : node->names)
        if (serial != 0) names.push_back(held);
  }
  for (const std::string& each : names) look(dir, each, out);
}

// Held directories whose place in the real tree another one has, as `out` names
// them: what is known of them and beneath is of the one that stood there.
void Tree::Impl::look_at_replaced(std::vector<Invalidation>& out) {
  using Kind = Invalidation::Kind;
  std::set<NodeId> done;
  Observer* observer = observer_;
  const bool at_once = observer != nullptr && observer->forgets_names();
  for (size_t i = 0; i < out.size(); ++i) {  // it grows
    const NodeId dir = out[i].node;
    if (!out[i].replaced || !done.insert(dir).second) continue;
    // Cached ones beneath it lead to where it went.
    dir_fds_.clear();
    drop_listing(dir);
    // Its watch is put first: what comes after the look is told.
    if (observer != nullptr) observer->invalidate({&out[i], 1});
    out[i].replaced = false;
    look_beneath(dir, out);
    if (at_once) continue;
    // The kernel takes what it knows to be absent in it along with its name.
    std::shared_lock lock(mutex_);
    const Live* live = get(dir);
    const Held* node = live != nullptr ? state_.find(live->serial) : nullptr;
    if (node == nullptr || node->links.empty()) continue;
    const Link& link = node->links.front();
    if (auto above = by_serial_.find(link.parent); above != by_serial_.end())
      out.push_back({.kind = Kind::kDrop,
                     .node = id_of(above->second),
                     .child = dir,
                     .name = link.name});
  }
  if (!done.empty() && at_once) out.push_back({.kind = Kind::kEveryName});
}

void Tree::lower_changed(NodeId dir, std::string_view name) {
  Impl& t = *impl_;
  std::vector<Invalidation> out;
  if (t.options_.base_shows && !name.empty()) {
    std::shared_lock lock(t.mutex_);
    const Live* live = t.get(dir);
    auto path = live ? t.lower_path(*live) : std::nullopt;
    // What never showed cannot have changed.
    if (!path ||
        t.options_.base_shows(join_path(*path, name)) == Shown::kNothing)
      return;
  }
  t.drop_listing(dir);
  if (!name.empty()) {
    t.look(dir, std::string(name), out);
  } else {
    t.dir_fds_.drop(dir);
    Serial itself = t.serial_of(dir);
    if (itself > kRootSerial)
      t.look_at_base(itself, out);
    else if (!t.still_stands(dir))
      t.look_beneath(dir, out);
  }
  t.look_at_replaced(out);
  out.push_back({.kind = Invalidation::Kind::kNode, .node = dir});
  if (Observer* observer = t.observer_) observer->invalidate(out);
}

// The draft's own names and nodes that watches would have told of: those that
// the kernel knows, and what is in directories that it knows.
std::set<Serial> Tree::Impl::held_in_sight() const {
  std::set<Serial> seen;
  for (const auto& [serial, slot] : by_serial_) {
    const Held* node = state_.find(serial);
    if (node == nullptr) continue;
    if (serial != kRootSerial) seen.insert(serial);
    for (const auto& [name, child] : node->names)
      if (child != 0) seen.insert(child);
  }
  return seen;
}

void Tree::lower_changed_everywhere() {
  using Kind = Invalidation::Kind;
  Impl& t = *impl_;
  std::vector<Invalidation> out;
  t.dir_fds_.clear();
  t.file_fds_.clear();
  {
    std::lock_guard leaf(t.listings_mutex_);
    t.listings_.clear();
  }
  std::set<Serial> held;
  {
    std::shared_lock lock(t.mutex_);
    auto expire = [&](Slot slot, Slot parent, const std::string& name) {
      out.push_back({.kind = Kind::kExpire,
                     .node = t.id_of(parent),
                     .child = t.id_of(slot),
                     .name = name});
    };
    for (Slot slot = 1; slot < t.slots_.size(); ++slot) {
      const Live& live = t.slots_[slot];
      if (!live.used) continue;
      out.push_back(
          {.kind = Kind::kNode, .node = t.id_of(slot), .links = live.links});
      if (live.named) expire(slot, live.parent, live.name);
    }
    for (const auto& [slot, alias] : t.aliases_)
      expire(slot, alias.parent, alias.name);
    held = t.held_in_sight();
  }
  for (Serial serial : held) t.look_at_base(serial, out);
  if (Observer* observer = t.observer_) observer->invalidate(out);
}

}  // namespace stoplog::fs
