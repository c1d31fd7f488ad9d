// SPDX-License-Identifier: Apache-2.0
// After a commit the real tree has what the draft had at the reviewed mark.
// The records of a base map turn what was committed and left alone since into
// clean lower nodes; what was touched since stays held over the new base.
#include <algorithm>
#include <set>

#include "fs/state.h"

namespace stoplog::fs {
namespace {

// `path` with the leading `from` replaced by `to`; absent when not within.
std::optional<std::string> rebased(const std::string& path,
                                   const std::string& from,
                                   const std::string& to) {
  if (!path.starts_with(from)) return std::nullopt;
  if (path.size() == from.size()) return to;
  if (path[from.size()] != '/') return std::nullopt;
  return to + path.substr(from.size());
}

std::string parent_of(const std::string& path) {
  size_t cut = path.rfind('/');
  return cut == std::string::npos ? std::string() : path.substr(0, cut);
}

// The content that the draft keeps is now another one than `base`. Bytes that
// still stand on the old one were pinned before the commit; where they were
// not, they are found to be gone.
void stand_on(Held& node, const sys::Stat& base) {
  if (!node.body) return;
  node.body->has_base = false;
  node.body->base = {};
  if (!node.body->map.has_lower()) node.body->lower = base;
}

bool holds_names(const Held& node) {
  return std::ranges::any_of(node.names,
                             [](const auto& e) { return e.second != 0; });
}

}  // namespace

State::BaseIndex State::base_index(const BaseMapRecord& r) const {
  BaseIndex index;
  for (const BaseChange& change : r.changes)
    index.committed.insert(change.path.str());
  for (const auto& [serial, node] : nodes_) {
    if (node->is_dir() && !node->is_unlinked())
      if (auto origin = origin_of(*node)) index.dirs.emplace(*origin, serial);
    if (node->is_file())
      for (const Link& link : node->links)
        if (link.from == LinkFrom::kMoved)
          index.moved.emplace(link.origin, serial);
    if (node->is_file() && !node->lower_path.empty())
      index.read_at.emplace(node->lower_path, serial);
  }
  return index;
}

Held* State::find_path(const RelPath& path, size_t* link) {
  Held* at = find(kRootSerial);
  Serial parent = 0;
  std::string_view last;
  for (std::string_view name : path.components()) {
    auto serial = child(*at, name);
    if (!serial || *serial == 0) return nullptr;
    parent = at->serial;
    last = name;
    at = find(*serial);
    if (at == nullptr) return nullptr;
  }
  for (size_t i = 0; i < at->links.size(); ++i)
    if (at->links[i].parent == parent && at->links[i].name == last) {
      *link = i;
      return at;
    }
  return nullptr;
}

// The real tree renamed `from` to `to`: places of bases move along.
void State::base_moved(const std::string& from, const std::string& to) {
  for (auto& [serial, node] : nodes_) {
    if (auto path = rebased(node->lower_path, from, to))
      node->lower_path = *path;
    for (Link& link : node->links)
      if (auto path = link.from == LinkFrom::kMoved
                          ? rebased(link.origin, from, to)
                          : std::nullopt)
        link.origin = *path;
  }
  std::map<std::string, Deleted> moved;
  for (auto it = deleted_.lower_bound(from); it != deleted_.end();) {
    auto path = rebased(it->first, from, to);
    if (!path) {
      if (!it->first.starts_with(from)) break;
      ++it;
      continue;
    }
    moved.emplace(*path, std::move(it->second));
    it = deleted_.erase(it);
  }
  deleted_.merge(moved);
}

// What the draft had moved to where the real tree has it now.
void State::settle_moves() {
  for (auto& [serial, node] : nodes_)
    for (Link& link : node->links) {
      if (link.from != LinkFrom::kMoved) continue;
      Held* dir = find(link.parent);
      auto origin = dir ? origin_of(*dir) : std::nullopt;
      if (!origin || join_path(*origin, link.name) != link.origin) continue;
      if (node->is_dir()) --dir->nlink_delta;  // the lower counts it now
      link.from = LinkFrom::kDerived;
      link.origin.clear();
      link.shadows = true;
    }
}

// All moves of a commit, which happened at once: the innermost leave first, and
// none arrives before all have left, for one may go where another was.
void State::base_moves(const BaseMapRecord& r) {
  std::vector<const BaseChange*> moves;
  for (const BaseChange& change : r.changes)
    if (change.from) moves.push_back(&change);
  if (moves.empty()) return;
  std::ranges::sort(moves, std::greater<>(),
                    [](const BaseChange* c) { return c->from->str(); });
  BaseIndex index = base_index(r);
  auto on_the_way = [](size_t i) {
    return std::string(1, '\0') + std::to_string(i);  // no path has a NUL
  };
  for (size_t i = 0; i < moves.size(); ++i) {
    base_removed({.path = *moves[i]->from,
                  .now = {},
                  .from = moves[i]->path,
                  .preimage = {},
                  .before = moves[i]->before,
                  .before_target = {}},
                 index);
    base_moved(moves[i]->from->str(), on_the_way(i));
  }
  for (size_t i = 0; i < moves.size(); ++i)
    base_moved(on_the_way(i), moves[i]->path.str());
  settle_moves();
}

void State::base_removed(const BaseChange& change, BaseIndex& index) {
  const std::string& path = change.path.str();
  deleted_.erase(path);
  auto it = index.dirs.find(parent_of(path));
  if (it == index.dirs.end()) return;
  Held* dir = find(it->second);
  if (dir == nullptr) return;
  auto name = dir->names.find(change.path.name());
  if (name == dir->names.end()) return;
  bool was_dir = change.before && S_ISDIR(change.before->mode);
  Held* node = name->second != 0 ? find(name->second) : nullptr;
  if (node == nullptr) {
    dir->names.erase(name);
    if (was_dir) ++dir->nlink_delta;
  } else if (!node->is_touched() && !holds_names(*node)) {
    follow_base(*node, *dir, change.path.name());
  } else {
    lose_base(*node, *dir, change);
    if (was_dir) ++dir->nlink_delta;
  }
}

// Nothing in it is the draft's: its name is the real tree's to give or take.
void State::follow_base(Held& node, Held& dir, std::string_view name) {
  std::erase_if(node.links, [&](const Link& link) {
    return link.parent == dir.serial && link.name == name;
  });
  dir.names.erase(dir.names.find(name));
  ++dir.version;
  if (node.links.empty()) remove(node.serial);
}

// The draft holds what the real tree no longer has: it is the draft's alone
// now, or, when it was moved there, comes from elsewhere.
void State::lose_base(Held& node, const Held& dir, const BaseChange& change) {
  for (Link& link : node.links) {
    if (link.parent != dir.serial || link.name != change.path.name() ||
        link.from != LinkFrom::kDerived)
      continue;
    if (change.from) {
      pin_lower_path(node);
      link.from = LinkFrom::kMoved;
      link.origin = change.path.str();
    } else {
      link.from = LinkFrom::kNew;
    }
    link.shadows = false;
  }
  if (change.from || !node.base) return;
  own_wholly(node);
}

// The draft moved the file whose base changed at its old place.
bool State::base_under_move(const BaseChange& change) {
  for (auto& [serial, node] : nodes_)
    for (const Link& link : node->links) {
      if (link.from != LinkFrom::kMoved || link.origin != change.path.str() ||
          !node->is_file() || !node->base)
        continue;
      unindex(*node);
      *node->base = *change.now;
      stand_on(*node, *change.now);
      index(*node);
      return true;
    }
  return false;
}

void State::base_stands(const BaseChange& change, Position reviewed,
                        const BaseIndex& known) {
  const std::string& path = change.path.str();
  size_t at = 0;
  Held* node = find_path(change.path, &at);
  if (node == nullptr && change.rest_held && base_under_move(change)) return;
  if (node == nullptr || (node->mode & S_IFMT) != (change.now->mode & S_IFMT)) {
    // Deleted or made anew since: the draft still wants the base gone.
    if (Deleted* d = deleted_.contains(path) ? &deleted_[path] : nullptr)
      *d = Deleted{.base = *change.now,
                   .target = {},
                   .command = d->command,
                   .when = d->when,
                   .content = {}};
    else if (node != nullptr)
      note_deleted(path, {.base = *change.now});
    return;
  }
  Link& link = node->links[at];
  if (reviewed == 0 && link.from == LinkFrom::kMoved && link.origin != path) {
    // Going back past the commit: it was moved here from elsewhere, and what
    // the commit put here is as hidden by it as what it replaced.
    Deleted& hidden = deleted_[path];
    hidden.base = *change.now;
    hidden.target.clear();
    hidden.content = {};
    return;
  }
  deleted_.erase(path);
  Held* dir = find(link.parent);
  if (dir == nullptr || !dir->base) return;  // stands on nothing: stays held
  if (node->links.size() > 1 && node->touched <= reviewed &&
      !change.rest_held && leave_group(*node, at, *dir, known))
    return;
  bool was_in_base = link.from == LinkFrom::kDerived;
  bool was_own = link.from == LinkFrom::kNew;
  link.from = LinkFrom::kDerived;
  link.origin.clear();
  link.shadows = true;
  if (node->is_dir() && !was_in_base) --dir->nlink_delta;
  unindex(*node);
  node->lower_path.clear();
  if (at != 0) std::swap(node->links[0], node->links[at]);
  bool is_new = !node->base;
  node->base = std::make_unique<sys::Stat>(*change.now);
  if (node->touched <= reviewed && !change.rest_held) {
    node->own = 0;
    node->flags = 0;
    node->xattrs.clear();
    node->target.clear();
    node->drift.clear();
    if (node->body) node->body->map.clear([&](const Extent& e) { counted(e); });
    node->body.reset();
    if (!node->is_dir()) {
      int32_t seen = 0;
      for (const Link& l : node->links)
        if (l.from == LinkFrom::kNew) ++seen;
      node->nlink_delta = seen;
    }
  } else {
    stand_on(*node, *change.now);
    // The base counts this name from now on.
    if (!node->is_dir() && was_own) --node->nlink_delta;
  }
  if (is_new && node->is_dir()) node->nlink_delta -= 2;
  index(*node);
}

Status State::on(const BaseMapRecord& r) {
  // An undo took the path back, or a discard dropped it, and the draft left it
  // alone since: it goes here as well. Removals come children first, for a
  // directory goes only when nothing is left in it.
  auto drop_agreed = [&](const BaseChange& change) {
    size_t at = 0;
    Held* node = find_path(change.path, &at);
    if (node == nullptr || node->touched > r.reviewed || change.rest_held)
      return;
    for (const auto& [name, child] : node->names)
      if (child != 0) return;
    Held* dir = find(node->links[at].parent);
    bool counted_below = node->links[at].from == LinkFrom::kDerived;
    Link link = detach(*node, at);
    if (!node->is_dir()) --node->nlink_delta;
    if (dir != nullptr) {
      dir->names.erase(link.name);
      // The lower's own count of it went with it.
      if (node->is_dir() && counted_below) ++dir->nlink_delta;
    }
    deleted_.erase(change.path.str());
  };
  for (const BaseChange& change : r.changes)
    if (!change.now && !change.from) drop_agreed(change);
  // A discarded deletion, or what a discarded move left: the real thing stands
  // and nothing of the draft's hides it for a later reason.
  auto show_again = [&](const BaseChange& change) {
    const std::string& path = change.path.str();
    auto gone = deleted_.find(path);
    if (gone != deleted_.end() && gone->second.when > r.reviewed) return;
    size_t at = 0;
    RelPath above = change.path.parent();
    Held* dir = above.is_root() ? find(kRootSerial) : find_path(above, &at);
    if (dir == nullptr) return;
    auto name = dir->names.find(change.path.name());
    if (name == dir->names.end() || name->second != 0) return;
    for (const auto& [serial, node] : nodes_)
      for (const Link& link : node->links)
        if (link.from == LinkFrom::kMoved && link.origin == path) return;
    dir->names.erase(name);
    if (S_ISDIR(change.now->mode)) ++dir->nlink_delta;
    if (gone != deleted_.end()) deleted_.erase(gone);
  };
  for (const BaseChange& change : r.changes)
    if (change.now && !change.from) show_again(change);
  std::map<std::string, Deleted> left = left_behind(r);
  base_moves(r);
  BaseIndex index = base_index(r);
  for (const BaseChange& change : r.changes) {
    if (!change.from && !change.rest_held) orphan_moved(change, index);
    if (change.now)
      base_stands(change, r.reviewed, index);
    else
      base_removed(change, index);
    if (!change.from) read_elsewhere(change, index);
  }
  for (auto& [path, deleted] : left) deleted_.try_emplace(path, deleted);
  // Directories that only carried the times of changes inside show the real
  // ones again.
  for (const BaseChange& change : r.changes) {
    size_t at = 0;
    RelPath parent = change.path.parent();
    Held* dir = parent.is_root() ? find(kRootSerial) : find_path(parent, &at);
    if (dir != nullptr && dir->base && (dir->flags & kAttrChanged) == 0 &&
        (dir->own & kOwnMode) == 0)
      dir->own = 0;
  }
  return {};
}

}  // namespace stoplog::fs
