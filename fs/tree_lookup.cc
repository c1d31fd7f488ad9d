// SPDX-License-Identifier: Apache-2.0
// From names to nodes, and forgetting them.
#include "base/sys_node.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {

// The node of a name, with a lookup counted, rules aside. `lower` gets the
// attributes of an untouched one, which had to be asked for.
Result<NodeId> Tree::Impl::peek(NodeId parent, const std::string& name,
                                std::optional<sys::Stat>* lower) {
  Serial known_clean = 0;
  for (int attempt = 0; attempt < 8; ++attempt) {
    bool ask_lower = false;
    Serial clean = 0;
    {
      std::unique_lock lock(mutex_);
      const Live* dir = get(parent);
      if (dir == nullptr) return fail_errno(ESTALE);
      if (!S_ISDIR(dir->type)) return fail_errno(ENOTDIR);
      if (dir->serial != 0) {
        const Held* held = state_.find(dir->serial);
        if (held == nullptr) return fail_errno(ESTALE);
        if (held->is_unlinked()) return fail_errno(ENOENT);
        auto serial = State::child(*held, name);
        if (serial && *serial == 0) return fail_errno(ENOENT);
        if (serial) {
          const Held* node = state_.find(*serial);
          if (node == nullptr) return fail_errno(EIO);
          if (!node->is_clean() || known_clean == *serial || read_only_) {
            Slot slot = slot_of_held(*node);
            ++slots_[slot].lookups;
            return id_of(slot);
          }
          clean = *serial;
        }
        ask_lower = held->base != nullptr;
      } else {
        ask_lower = !dir->unlinked;
      }
    }
    if (clean != 0) {
      TRY(release_if_replaced(parent, name, clean));
      known_clean = clean;
      continue;
    }
    if (!ask_lower) return fail_errno(ENOENT);
    sys::Stat st = TRY(lower_child(parent, name));
    if (lower != nullptr) *lower = st;
    Serial same = 0;
    {
      std::unique_lock lock(mutex_);
      const Live* dir = get(parent);
      if (dir == nullptr) return fail_errno(ESTALE);
      if (dir->serial != 0) {
        const Held* held = state_.find(dir->serial);
        if (held == nullptr || State::child(*held, name)) continue;
      }
      Slot at = static_cast<Slot>(parent);
      Slot slot = find_named(at, name);
      if (slot != 0) {
        const Live& live = slots_[slot];
        Identity known{live.dev, live.lower_ino, live.btime};
        if (known == identity_of(st) && live.type == (st.mode & S_IFMT)) {
          bool linked = note_links(slot, st);
          if (live.links) prefer_name(slot, at, name);
          ++slots_[slot].lookups;
          NodeId id = id_of(slot);
          lock.unlock();
          if (linked) tell_links(id);
          return id;
        }
        // Another file stands there now. Who has the old one open may go on
        // reading it, as long as we have it open ourselves.
        unname_one(slot, at, name);
        dir_fds_.drop(id_of(slot));
      }
      if (st.nlink > 1 && !S_ISDIR(st.mode)) same = state_.by_identity(st);
      if (same == 0) {
        bool linked = false;
        slot = add_lower(at, name, st, &linked);
        ++slots_[slot].lookups;
        NodeId id = id_of(slot);
        lock.unlock();
        if (linked) tell_links(id);
        return id;
      }
    }
    // One more name of a file that the draft holds.
    TRY(hold(parent));
    std::unique_lock lock(mutex_);
    const Live* dir = get(parent);
    if (dir == nullptr) return fail_errno(ESTALE);
    const Held* held = state_.find(dir->serial);
    const Held* node = state_.find(same);
    if (held == nullptr || State::child(*held, name)) continue;
    if (held->is_unlinked() || node == nullptr || !node->base) continue;
    TRY(append({LinkRecord{.serial = same,
                           .parent = dir->serial,
                           .name = name,
                           .lower = true,
                           .time = {}}}));
    auto known = by_serial_.find(same);
    if (known == by_serial_.end() ||
        !obey(known->second, static_cast<Slot>(parent), name))
      continue;
    NodeId id = id_of(known->second);
    lock.unlock();
    tell_links(id);
  }
  return fail_errno(EBUSY);
}

// A committed node that nobody touched since is live: when another file (or
// none) stands at its name in the real tree, it is forgotten.
Status Tree::Impl::release_if_replaced(NodeId parent, const std::string& name,
                                       Serial serial) {
  auto st = lower_child(parent, name);
  if (!st && st.error().err() != ENOENT && st.error().err() != ENOTDIR)
    return std::unexpected(std::move(st).error());
  std::unique_lock lock(mutex_);
  const Held* node = state_.find(serial);
  if (node == nullptr || !node->is_clean()) return {};
  if (st && identity_of(*st) == identity_of(*node->base)) return {};
  sys::Stat base = *node->base;
  std::string own_name = node->links.front().name;
  const Held* dir = state_.find(node->links.front().parent);
  Slot above = dir != nullptr ? slot_of_held(*dir) : Slot{kRootId};
  TRY(append({ReleaseRecord{serial}}));
  auto it = by_serial_.find(serial);
  if (it == by_serial_.end()) return {};
  // The kernel may still know it: it stands for the file that was there.
  const Slot slot = it->second;
  Live& live = slots_[slot];
  by_serial_.erase(it);
  live.serial = 0;
  live.name = own_name;
  live.dev = base.dev;
  live.lower_ino = base.ino;
  live.btime = base.btime;
  enter(slot, above);
  return {};
}

Result<Entry> Tree::lookup(NodeId parent, std::string_view name) {
  return look(parent, name, true);
}

Result<Entry> Tree::look(NodeId parent, std::string_view name, bool asked) {
  Impl& t = *impl_;
  if (name.size() > 255) return fail_errno(ENAMETOOLONG);
  if (!is_valid_name(name)) return fail_errno(EINVAL);
  std::optional<sys::Stat> lower;
  NodeId id = TRY(t.peek(parent, std::string(name), &lower));
  Rule rule = Rule::kNone;
  std::string path;
  if (t.options_.rules != nullptr && !t.options_.rules->empty()) {
    std::shared_lock lock(t.mutex_);
    const Live* live = t.get(id);
    const Live* dir = t.get(parent);
    if (live == nullptr || dir == nullptr) return fail_errno(ESTALE);
    rule = std::max(live->rule, t.rule_at(*dir, name, S_ISDIR(live->type)));
    if (rule != Rule::kNone)
      path = join_path(t.draft_path(*dir).value_or(""), name);
  }
  if (rule == Rule::kHide || rule == Rule::kDeny) {
    t.uncount(id, 1);
    if (rule == Rule::kHide) return fail_errno(ENOENT);
    if (!asked) return fail_errno(EACCES);
    return std::unexpected(t.deny(std::move(path), rule, "lookup", 0));
  }
  auto entry = t.entry_of(id, lower ? &*lower : nullptr);
  if (!entry) {
    forget(id, 1);
    // Gone between the two looks.
    if (entry.error().err() == ESTALE) return fail_errno(ENOENT);
  }
  return entry;
}

Result<Entry> Tree::lookup_parent(NodeId dir) {
  Impl& t = *impl_;
  NodeId id = 0;
  {
    std::unique_lock lock(t.mutex_);
    const Live* live = t.get(dir);
    if (live == nullptr) return fail_errno(ESTALE);
    if (live->serial == 0) {
      id = t.id_of(live->parent);
    } else {
      const Held* held = t.state_.find(live->serial);
      if (held == nullptr) return fail_errno(ESTALE);
      id = kRootId;
      if (!held->links.empty())
        if (const Held* parent = t.state_.find(held->links.front().parent))
          id = t.id_of(t.slot_of_held(*parent));
    }
    ++t.get(id)->lookups;
  }
  return t.entry_of(id);
}

void Tree::Impl::uncount(NodeId node, uint64_t count) {
  std::unique_lock lock(mutex_);
  Live* live = get(node);
  if (live == nullptr || node == kRootId) return;
  live->lookups -= std::min(live->lookups, count);
  drop_if_idle(static_cast<Slot>(node));
}

void Tree::forget(NodeId node, uint64_t count) { impl_->uncount(node, count); }

}  // namespace stoplog::fs
