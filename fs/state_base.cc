// SPDX-License-Identifier: Apache-2.0
// After a commit the real tree has what the draft had at the reviewed mark.
// The records of a base map turn what was committed and left alone since into
// clean lower nodes; what was touched since stays held over the new base.
#include <algorithm>
#include <set>
#include <utility>

#include "fs/move_table.h"
#include "fs/past.h"
#include "fs/state.h"

namespace stoplog::fs {
namespace {

std::string parent_of(const std::string& path) {
  size_t cut = path.rfind('/');
  return cut == std::string::npos ? std::string() : path.substr(0, cut);
}

bool holds_names(const Held& node) {
  return std::ranges::any_of(node.names,
                             [](const auto& e) { return e.second != 0; });
}

// The link of that name, when the draft put the node there over whatever the
// real tree has: its base, if it has one, is another.
Link* not_from_base(Held& node, const Held& dir, std::string_view name) {
  for (Link& link : node.links)
    if (link.parent == dir.serial && link.name == name)
      return link.from != LinkFrom::kDerived ? &link : nullptr;
  return nullptr;
}

}  // namespace

State::BaseIndex State::base_index(const BaseMapRecord& r) const {
  BaseIndex index;
  for (const BaseChange& change : r.changes)
    index.committed.emplace(change.path.str(),
                            change.now ? identity_of(*change.now) : Identity{});
  for (const auto& [serial, node] : nodes_) {
    if (node->is_dir() && !node->is_unlinked())
      if (auto origin = origin_of(*node)) index.dirs.emplace(*origin, serial);
    for (const Link& link : node->links)
      if (link.from == LinkFrom::kMoved)
        index.moved.emplace(link.origin, serial);
    if (node->is_file() && !node->lower_path.empty())
      index.read_at.emplace(node->lower_path, serial);
    if (is_carried(*node))
      if (auto origin = origin_of(*node))
        index.carried.emplace(*origin, serial);
  }
  return index;
}

Held* State::edit_path(const RelPath& path, size_t* link) {
  const Held* node = std::as_const(*this).find_path(path, link);
  return node != nullptr ? edit(node->serial) : nullptr;
}

const Held* State::find_path(const RelPath& path, size_t* link) const {
  const Held* at = find(kRootSerial);
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

// What the draft had moved to where the real tree has it now.
void State::settle_moves() {
  for (auto& [serial, node] : nodes_)
    for (Link& link : node->links) {
      if (link.from != LinkFrom::kMoved) continue;
      Held* dir = edit(link.parent);
      auto origin = dir ? origin_of(*dir) : std::nullopt;
      if (!origin || join_path(*origin, link.name) != link.origin) continue;
      if (node->is_dir()) --dir->nlink_delta;  // the lower counts it now
      link.from = LinkFrom::kDerived;
      link.origin.clear();
      link.shadows = true;
    }
}

// What is gone is told by its path of before. Beneath a directory that moved,
// that is no place any more once the moves are made: it goes first.
std::set<const BaseChange*> State::remove_beneath_moves(const BaseMapRecord& r,
                                                        BaseIndex& index) {
  MoveTable table;
  for (const BaseChange& change : r.changes)
    if (change.from) table.add(change.from->str(), change.path.str());
  std::set<const BaseChange*> done;
  for (const BaseChange& change : r.changes) {
    if (change.now || change.from || !table.rebased(change.path.str()))
      continue;
    if (!change.rest_held) orphan_moved(change, index);
    base_removed(change, index);
    read_elsewhere(change, index);
    done.insert(&change);
  }
  return done;
}

// All moves of a commit, which happened at once: all leave, the innermost
// first, before any arrives, for one may go where another was.
bool State::base_moves(const BaseMapRecord& r, BaseIndex& index) {
  std::vector<const BaseChange*> moves;
  for (const BaseChange& change : r.changes)
    if (change.from) moves.push_back(&change);
  if (moves.empty()) return false;
  std::ranges::sort(moves, std::greater<>(),
                    [](const BaseChange* c) { return c->from->str(); });
  MoveTable table;
  for (const BaseChange* move : moves) {
    base_removed({.path = *move->from,
                  .now = {},
                  .from = move->path,
                  .preimage = {},
                  .before = move->before,
                  .before_target = {}},
                 index);
    table.add(move->from->str(), move->path.str());
  }
  for (auto& [serial, node] : nodes_) {
    if (auto path = table.rebased(node->lower_path)) node->lower_path = *path;
    for (Link& link : node->links)
      if (auto path = link.from == LinkFrom::kMoved ? table.rebased(link.origin)
                                                    : std::nullopt)
        link.origin = *path;
  }
  std::map<std::string, Deleted> moved;
  for (auto it = deleted_.begin(); it != deleted_.end();) {
    auto path = table.rebased(it->first);
    if (path) moved.emplace(*path, std::move(it->second));
    it = path ? deleted_.erase(it) : std::next(it);
  }
  deleted_.merge(moved);
  settle_moves();
  return true;
}

void State::base_removed(const BaseChange& change, BaseIndex& index) {
  const std::string& path = change.path.str();
  deleted_.erase(path);
  auto it = index.dirs.find(parent_of(path));
  if (it == index.dirs.end()) return;
  Held* dir = edit(it->second);
  if (dir == nullptr) return;
  auto name = dir->names.find(change.path.name());
  if (name == dir->names.end()) return;
  bool was_dir = change.before && S_ISDIR(change.before->mode);
  Held* node = name->second != 0 ? edit(name->second) : nullptr;
  if (node == nullptr) {
    dir->names.erase(name);
    if (was_dir) ++dir->nlink_delta;
  } else if (Link* other = not_from_base(*node, *dir, change.path.name())) {
    other->shadows = false;  // what it hid is gone
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
  uncount_beside(node);
  std::erase_if(node.links, [&](const Link& link) {
    return link.parent == dir.serial && link.name == name;
  });
  count_beside(node);
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
  // The file has another name in the real tree.
  for (const Link& link : node.links)
    if (auto path =
            link.from == LinkFrom::kDerived ? base_path(link) : std::nullopt) {
      if (node.base->nlink > 1) --node.base->nlink;
      ++node.nlink_delta;
      node.lower_path = *path;
      return;
    }
  own_wholly(node);
}

void State::base_stands(const BaseChange& change, Position reviewed,
                        const BaseIndex& known) {
  const std::string& path = change.path.str();
  base_of_carried(change, known);
  size_t at = 0;
  Held* node = edit_path(change.path, &at);
  if (node == nullptr && (change.rest_held || change.from) &&
      base_under_move(change, known))
    return;
  // Going back past the commit: the link that it replaced keeps its target.
  bool other_link = reviewed == 0 && node != nullptr && node->base &&
                    S_ISLNK(node->mode) && !node->target.empty();
  if (node == nullptr || other_link ||
      (node->mode & S_IFMT) != (change.now->mode & S_IFMT)) {
    if (node != nullptr && node->base && node->links.size() == 1 &&
        node->links[0].from == LinkFrom::kDerived) {
      node->links[0].from = LinkFrom::kNew;
      own_wholly(*node);
    }
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
  Held* dir = edit(link.parent);
  if (dir == nullptr || !dir->base) return;  // stands on nothing: stays held
  if (node->links.size() > 1 && node->touched <= reviewed &&
      !change.rest_held && leave_group(*node, at, *dir, known))
    return;
  bool stays = node->touched > reviewed || change.rest_held;
  if ((stays || node->links.size() > 1) &&
      part_from_group(*node, at, change, known))
    return;
  bool was_in_base = link.from == LinkFrom::kDerived;
  bool was_own = link.from == LinkFrom::kNew;
  link.from = LinkFrom::kDerived;
  link.origin.clear();
  link.shadows = true;
  // The base counted a directory here before, and counts one now.
  bool was_counted = was_in_base || (!change.from && change.before &&
                                     S_ISDIR(change.before->mode));
  if (node->is_dir() && !was_counted) --dir->nlink_delta;
  unindex(*node);
  node->lower_path.clear();
  if (at != 0) std::swap(node->links[0], node->links[at]);
  bool is_new = !node->base;
  node->base = std::make_unique<sys::Stat>(*change.now);
  if (!stays) {
    node->own = 0;
    node->flags = 0;
    uncount_beside(*node);
    node->xattrs.clear();
    node->target.clear();
    node->drift.clear();
    count_dead(*node);
    node->body.reset();
    count_beside(*node);
    if (!node->is_dir()) {
      int32_t seen = 0;
      for (const Link& l : node->links)
        if (l.from == LinkFrom::kNew) ++seen;
      node->nlink_delta = seen;
    }
  } else {
    stand_on(*node, *change.now);
    // The draft made it, and holds it whatever becomes of the base.
    if (is_new && !node->body) node->flags |= kAttrChanged;
    // The base counts this name from now on.
    if (!node->is_dir() && was_own) --node->nlink_delta;
  }
  if (is_new && node->is_dir()) node->nlink_delta -= 2;
  index(*node);
}

// An undo took the path back, or a discard dropped it, and the draft left it
// alone since: it goes here as well.
void State::drop_agreed(const BaseChange& change, Position reviewed) {
  size_t at = 0;
  Held* node = edit_path(change.path, &at);
  if (node == nullptr || node->touched > reviewed || change.rest_held) return;
  for (const auto& [name, child] : node->names)
    if (child != 0) return;
  Held* dir = edit(node->links[at].parent);
  bool counted_below = node->links[at].from == LinkFrom::kDerived;
  Link link = detach(*node, at);
  if (!node->is_dir()) --node->nlink_delta;
  if (dir != nullptr) {
    dir->names.erase(link.name);
    // The lower's own count of it went with it.
    if (node->is_dir() && counted_below) ++dir->nlink_delta;
  }
  deleted_.erase(change.path.str());
}

// The draft is to show the real thing at the place that it moved it away from.
// What it has elsewhere is a file of its own, as a copy would be: its content
// was taken before (Tree::settle). A directory goes when the place that it was
// moved to, over another one, is discarded as well.
void State::leave_discarded(const BaseChange& change, Position reviewed,
                            const BaseIndex& index) {
  auto [begin, end] = index.moved.equal_range(change.path.str());
  for (auto it = begin; it != end; ++it) {
    Held* node = edit(it->second);
    if (node == nullptr || !node->base || node->links.empty() ||
        node->touched > reviewed)
      continue;
    if (node->body && !node->body->map.has_lower()) {
      own_alone(*node);
      deleted_.erase(change.path.str());
      continue;
    }
    auto path = path_of(*node);
    if (!node->is_dir() || !path || !index.committed.contains(*path) ||
        holds_names(*node))
      continue;
    Held* dir = edit(node->links[0].parent);
    if (dir == nullptr) continue;
    Link link = detach(*node, 0);
    auto hidden = deleted_.find(*path);
    if (hidden != deleted_.end() && S_ISDIR(hidden->second.base.mode))
      ++dir->nlink_delta;
    dir->names.erase(link.name);
    deleted_.erase(*path);
  }
}

// A discarded deletion, or what a discarded move left: the real thing stands
// and nothing of the draft's hides it for a later reason.
void State::show_again(const BaseChange& change, Position reviewed,
                       const BaseIndex& index) {
  const std::string& path = change.path.str();
  auto gone = deleted_.find(path);
  if (gone != deleted_.end() && gone->second.when > reviewed) return;
  size_t at = 0;
  RelPath above = change.path.parent();
  Held* dir = above.is_root() ? edit(kRootSerial) : edit_path(above, &at);
  if (dir == nullptr) return;
  auto name = dir->names.find(change.path.name());
  if (name == dir->names.end() || name->second != 0) return;
  auto [begin, end] = index.moved.equal_range(path);
  for (auto it = begin; it != end; ++it)
    if (const Held* node = find(it->second))
      for (const Link& link : node->links)
        if (link.from == LinkFrom::kMoved && link.origin == path) return;
  dir->names.erase(name);
  if (S_ISDIR(change.now->mode)) ++dir->nlink_delta;
  if (gone != deleted_.end()) deleted_.erase(gone);
}

// Directories that only carried the times of changes inside show the real ones
// again.
void State::show_times(const BaseMapRecord& r) {
  for (const BaseChange& change : r.changes) {
    size_t at = 0;
    RelPath parent = change.path.parent();
    Held* dir = parent.is_root() ? edit(kRootSerial) : edit_path(parent, &at);
    if (dir != nullptr && dir->base && (dir->flags & kAttrChanged) == 0 &&
        (dir->own & kOwnMode) == 0)
      dir->own = 0;
  }
}

// The draft has taken away what the base has at `path`.
bool State::is_gone(const std::string& path, const BaseIndex& index) const {
  auto it = index.dirs.find(parent_of(path));
  const Held* dir = it != index.dirs.end() ? find(it->second) : nullptr;
  size_t cut = path.rfind('/') + 1;  // npos + 1 is 0
  return dir != nullptr &&
         child(*dir, std::string_view(path).substr(cut)) == Serial{0};
}

// What a commit did happened at once, however many records tell it: one of a
// thousand moves may go where another was.
Status State::on(const BaseMapRecord& r) {
  if (!r.more) add_told(std::exchange(telling_, 0));
  if (!r.more && base_changes_.empty()) {
    rebase(r);
    return {};
  }
  base_changes_.insert(base_changes_.end(), r.changes.begin(), r.changes.end());
  if (!r.more)
    rebase({.reviewed = r.reviewed,
            .more = false,
            .changes = std::exchange(base_changes_, {})});
  return {};
}

void State::rebase(const BaseMapRecord& r) {
  // It changes more than is worth keeping; going back past it is a thing of its
  // own (fs/restore.h).
  if (past_) past_->clear();
  // Removals come children first, for a directory goes only when nothing is
  // left in it.
  for (const BaseChange& change : r.changes)
    if (!change.now && !change.from) drop_agreed(change, r.reviewed);
  BaseIndex index = base_index(r);
  for (const BaseChange& change : r.changes)
    if (is_discard(change)) leave_discarded(change, r.reviewed, index);
  for (const BaseChange& change : r.changes)
    if (change.now && !change.from) show_again(change, r.reviewed, index);
  std::map<std::string, Deleted> left = left_behind(r);
  std::set<const BaseChange*> done = remove_beneath_moves(r, index);
  if (base_moves(r, index)) index = base_index(r);
  // What stands now comes parents first, also what was moved into a directory
  // that this commit made; what is gone keeps its order.
  std::vector<const BaseChange*> order;
  for (const BaseChange& change : r.changes) order.push_back(&change);
  auto gone = std::ranges::stable_partition(
      order, [](const BaseChange* c) { return c->now.has_value(); });
  std::sort(order.begin(), gone.begin(),
            [](const BaseChange* a, const BaseChange* b) {
              return a->path < b->path;
            });
  for (const BaseChange* each : order) {
    const BaseChange& change = *each;
    if (done.contains(each)) continue;
    if (change.path.is_root()) {
      base_of_top(change, r.reviewed);
      continue;
    }
    if (!change.from && !change.rest_held) orphan_moved(change, index);
    if (change.now)
      base_stands(change, r.reviewed, index);
    else
      base_removed(change, index);
    if (!change.from) read_elsewhere(change, index);
  }
  // Other names of a discarded file that stay held are a file of their own from
  // now on (its content was taken before, Tree::settle): as the same one it
  // would be found at the discarded name again.
  for (const BaseChange& change : r.changes) {
    size_t at = 0;
    Held* node = is_discard(change) ? edit(by_identity(*change.now)) : nullptr;
    if (node != nullptr && node->is_touched() && !node->links.empty() &&
        node->body && !node->body->map.has_lower() &&
        find_path(change.path, &at) != node)
      own_alone(*node);
  }
  for (auto& [path, deleted] : left)
    if (!index.committed.contains(path) || is_gone(path, index))
      deleted_.try_emplace(path, deleted);
  show_times(r);
}

}  // namespace stoplog::fs
