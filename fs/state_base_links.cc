// SPDX-License-Identifier: Apache-2.0
// After a commit of some changes: files with several names, and files that were
// moved, of which a part was committed and another was not (fs/state_base.cc).
#include "fs/state.h"

namespace stoplog::fs {

bool is_discard(const BaseChange& change) {
  return !change.from && change.now && change.before &&
         identity_of(*change.now) == identity_of(*change.before) &&
         fingerprint_of(*change.now) == fingerprint_of(*change.before) &&
         same_time(change.now->ctime, change.before->ctime);
}

// The top of the workspace: it has no name, and only attributes of its own.
void State::base_of_top(const BaseChange& change, Position reviewed) {
  Held* top = edit(kRootSerial);
  if (top == nullptr || !top->base || !change.now) return;
  unindex(*top);
  *top->base = *change.now;
  if (top->touched > reviewed || change.rest_held) {
    stand_on(*top, *change.now);
  } else {
    top->own = 0;
    top->flags = 0;
    uncount_beside(*top);
    top->xattrs.clear();
    count_beside(*top);
    top->drift.clear();
  }
  index(*top);
}

// Its base is gone: all that it took from there is its own now.
void State::own_wholly(Held& node) {
  const sys::Stat& st = *node.base;
  if ((node.own & kOwnMode) == 0) {
    node.mode = (node.mode & S_IFMT) | (st.mode & 07777);
    node.uid = st.uid;
    node.gid = st.gid;
  }
  if ((node.own & kOwnTimes) == 0) {
    node.atime = st.atime;
    node.mtime = st.mtime;
  }
  if ((node.own & kOwnCtime) == 0) node.ctime = st.ctime;
  node.own = kOwnAll;
  node.flags |= kXattrsOwn;
  node.nlink_delta += static_cast<int32_t>(st.nlink);
  unindex(node);
  node.base.reset();
  node.lower_path.clear();
  if (node.is_file() && !node.body) node.body = std::make_shared<FileBody>();
  touch(node);
}

// The place that a file was moved from is a deletion of its own from now on.
void State::still_to_go(const Held& node, const std::string& origin) {
  deleted_.try_emplace(origin, Deleted{.base = *node.base,
                                       .target = {},
                                       .command = node.command,
                                       .when = node.touched,
                                       .content = {}});
}

// The same for a file with content of its own. What the base has at its names
// is hidden by it from now on, and another file.
void State::own_alone(Held& node) {
  for (Link& link : node.links) {
    if (link.from == LinkFrom::kMoved) {
      still_to_go(node, link.origin);
    } else if (auto path = link.from == LinkFrom::kDerived ? base_path(link)
                                                           : std::nullopt) {
      still_to_go(node, *path);
      Deleted& hidden = deleted_[*path];
      if (node.body && node.body->has_base) hidden.content = node.body->base;
      link.shadows = true;
    }
    link.from = LinkFrom::kNew;
    link.origin.clear();
  }
  if (node.body) {
    node.body->has_base = false;
    node.body->base = {};
  }
  own_wholly(node);
  node.nlink_delta = static_cast<int32_t>(node.links.size());
}

// The commit put something else where a file stood that the draft has moved
// away, and did not take the move along: the draft's file, whose content was
// taken before (Tree::settle), comes from nowhere now.
void State::orphan_moved(const BaseChange& change, const BaseIndex& index) {
  auto [begin, end] = index.moved.equal_range(change.path.str());
  for (auto it = begin; it != end; ++it) {
    Held* node = edit(it->second);
    if (node == nullptr || !node->base ||
        (change.now && identity_of(*change.now) == identity_of(*node->base)))
      continue;
    // A link is its target, which an undo tells.
    bool is_link = S_ISLNK(node->mode) && !change.before_target.empty();
    if (!is_link && (!node->body || node->body->map.has_lower())) continue;
    uncount_beside(*node);
    if (is_link && node->target.empty()) node->target = change.before_target;
    count_beside(*node);
    std::optional<std::string> read_at;
    int32_t found = 0;
    for (Link& link : node->links) {
      if (link.from == LinkFrom::kMoved && link.origin == change.path.str()) {
        link.from = LinkFrom::kNew;
        link.origin.clear();
        ++found;
      } else if (!read_at && link.from == LinkFrom::kDerived) {
        read_at = base_path(link);
      }
    }
    if (found == 0) continue;
    // The draft still wants nothing, or its own, at the old place.
    if (change.now)
      deleted_.try_emplace(change.path.str(), Deleted{.base = *change.now,
                                                      .target = {},
                                                      .command = node->command,
                                                      .when = node->touched,
                                                      .content = {}});
    if (read_at) {  // the file has another name in the real tree
      node->lower_path = *read_at;
      if (node->base->nlink > 1) --node->base->nlink;
      node->nlink_delta += found;
      continue;
    }
    own_alone(*node);
  }
}

// A file whose base was read by a name that the commit gave to something else
// may have another one.
void State::read_elsewhere(const BaseChange& change, const BaseIndex& index) {
  auto [begin, end] = index.read_at.equal_range(change.path.str());
  for (auto it = begin; it != end; ++it) {
    Held* node = edit(it->second);
    if (node == nullptr || !node->base ||
        node->lower_path != change.path.str() ||
        (change.now && identity_of(*change.now) == identity_of(*node->base)))
      continue;
    for (const Link& link : node->links) {
      auto path =
          link.from == LinkFrom::kDerived ? base_path(link) : std::nullopt;
      if (!path || *path == node->lower_path) continue;
      node->lower_path = *path;
      break;
    }
  }
}

// Files that were moved over others and are committed as those, without the
// deletion of what they were moved from: that stays to be decided.
std::map<std::string, Deleted> State::left_behind(const BaseMapRecord& r) {
  std::map<std::string, Deleted> left;
  for (const BaseChange& change : r.changes) {
    if (change.from || !change.now || change.rest_held) continue;
    size_t at = 0;
    const Held* node = find_path(change.path, &at);
    if (node == nullptr || !node->base ||
        node->links[at].from != LinkFrom::kMoved)
      continue;
    Deleted deleted{.base = *node->base,
                    .target = node->target,
                    .command = node->command,
                    .when = node->touched};
    if (node->body && node->body->has_base) deleted.content = node->body->base;
    left.emplace(node->links[at].origin, std::move(deleted));
  }
  for (const BaseChange& change : r.changes) {
    auto it = left.find(change.path.str());
    if (it == left.end()) continue;
    if (change.now)  // an undo put it back
      it->second = {.base = *change.now,
                    .command = it->second.command,
                    .when = it->second.when};
    else
      left.erase(it);
  }
  return left;
}

// One name of a file with several was committed without the others: the real
// tree has a file of its own there now, and the draft shows that one. The other
// names keep what is held.
bool State::leave_group(Held& node, size_t at, Held& dir,
                        const BaseIndex& index) {
  const Link gone = node.links[at];
  if (!node.is_file()) return false;
  std::optional<std::string> read_at;
  bool alone = true;
  for (size_t i = 0; i < node.links.size(); ++i) {
    if (i == at) continue;
    auto path = path_of(node, i);
    if (path && !index.committed.contains(*path)) alone = false;
    if (!read_at && node.links[i].from == LinkFrom::kDerived)
      read_at = base_path(node.links[i]);
  }
  bool has_own = node.body && !node.body->map.has_lower();
  if (alone || (!read_at && !has_own)) return false;
  uncount_beside(node);
  node.links.erase(node.links.begin() + static_cast<long>(at));
  count_beside(node);
  dir.names.erase(gone.name);
  ++dir.version;
  if (gone.from == LinkFrom::kNew) --node.nlink_delta;
  if (!node.base) return true;
  if (gone.from == LinkFrom::kMoved && !index.committed.contains(gone.origin))
    still_to_go(node, gone.origin);
  if (read_at) {
    if (gone.from != LinkFrom::kNew && node.base->nlink > 1) --node.base->nlink;
    node.lower_path = *read_at;
  } else {
    own_alone(node);
  }
  return true;
}

// The draft goes on with one file at several names, and the real tree has
// another file at one of them now: that name is the draft's own over it, and
// the file is read, and compared, at a name that has its base still.
bool State::part_from_group(Held& node, size_t at, const BaseChange& change,
                            const BaseIndex& index) {
  if (!node.is_file() ||
      (node.base && identity_of(*change.now) == identity_of(*node.base)))
    return false;
  auto hide = [&] {
    Link& link = node.links[at];
    link.from = LinkFrom::kNew;
    link.origin.clear();
    link.shadows = true;
    deleted_.insert_or_assign(change.path.str(),
                              Deleted{.base = *change.now,
                                      .target = {},
                                      .command = node.command,
                                      .when = node.touched,
                                      .content = {}});
  };
  if (node.links.size() == 1) {
    // What stands there now has other names, which are not this file's: over
    // it as its base, those would show what is held here.
    if (change.now->nlink < 2 || !node.body || node.body->map.has_lower())
      return false;
    if (node.base) own_alone(node);
    hide();
    return true;
  }
  if (!node.base) return false;
  std::optional<std::string> read_at;
  for (size_t i = 0; i < node.links.size() && !read_at; ++i) {
    if (i == at || node.links[i].from != LinkFrom::kDerived) continue;
    auto path = base_path(node.links[i]);
    auto known = path ? index.committed.find(*path) : index.committed.end();
    if (path && (known == index.committed.end() ||
                 known->second == identity_of(*node.base)))
      read_at = path;
  }
  if (!read_at) return false;
  if (node.links[at].from == LinkFrom::kDerived) {
    ++node.nlink_delta;
    if (node.base->nlink > 1) --node.base->nlink;
  }
  hide();
  node.lower_path = *read_at;
  return true;
}

// The content that the draft keeps is now another one than `base`. Bytes that
// still stand on the old one were pinned before the commit; where they were
// not, they are found to be gone.
void State::stand_on(Held& node, const sys::Stat& base) {
  if (!node.body) return;
  node.body->has_base = false;
  node.body->base = {};
  if (!node.body->map.has_lower()) node.body->lower = base;
}

void State::exchange_base(Held& node, const sys::Stat& base) {
  unindex(node);
  *node.base = base;
  stand_on(node, base);
  index(node);
}

// The draft moved the file whose base changed at its old place.
bool State::base_under_move(const BaseChange& change, const BaseIndex& known) {
  auto [begin, end] = known.moved.equal_range(change.path.str());
  for (auto it = begin; it != end; ++it) {
    Held* node = edit(it->second);
    if (node == nullptr || !node->base) continue;
    if (change.from) {
      // The draft has moved on what the commit moved here, or back: its place
      // is another, and nothing is to show at this one.
      auto parent = known.dirs.find(change.path.parent().str());
      Held* dir = parent != known.dirs.end() ? edit(parent->second) : nullptr;
      if (dir == nullptr || dir->names.contains(change.path.name()))
        return false;
      exchange_base(*node, *change.now);
      set_name(*dir, std::string(change.path.name()), 0);
      if (node->is_dir()) --dir->nlink_delta;
      return true;
    }
    if (!node->is_file()) continue;
    exchange_base(*node, *change.now);
    return true;
  }
  return false;
}

// Its name is its base's, and a directory above it was moved.
bool State::is_carried(const Held& node) const {
  if (!node.base || !node.lower_path.empty()) return false;
  const Held* at = &node;
  while (at != nullptr && at->lower_path.empty() && !at->links.empty())
    at = find(at->links.front().parent);
  return at != nullptr && !at->lower_path.empty();
}

// The draft moved a directory above what changed in the real tree (a commit
// that it went back past, an undo): what it holds of it stands on that now.
void State::base_of_carried(const BaseChange& change, const BaseIndex& known) {
  auto it = known.carried.find(change.path.str());
  Held* node = it != known.carried.end() ? edit(it->second) : nullptr;
  if (node == nullptr || !node->base || node->links.empty()) return;
  if ((node->mode & S_IFMT) == (change.now->mode & S_IFMT)) {
    exchange_base(*node, *change.now);
    return;
  }
  // Something else stands there now, which the draft's own hides.
  note_deleted(change.path.str(), {.base = *change.now});
  Link& link = node->links.front();
  link.from = LinkFrom::kNew;
  link.shadows = true;
  own_wholly(*node);
}

}  // namespace stoplog::fs
