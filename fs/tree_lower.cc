// SPDX-License-Identifier: Apache-2.0
// The lower side of nodes: opened by path beneath the base, checked by
// identity, never followed when it is another file now. No lock is held while
// the lower tree is asked: it can hang.
#include <dirent.h>

#include "base/clock.h"
#include "base/sys_node.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

bool is_absent(const Error& error) {
  return error.err() == ENOENT || error.err() == ENOTDIR ||
         error.err() == ELOOP;
}

// A commit moves in the real tree what the draft had moved, and says so when
// all of it is done. Until then a node is not where it came from but where the
// draft shows it. ENOENT: it is not there either.
Result<Fd> open_where_shown(Tree::Impl& t, NodeId id, std::string_view origin,
                            const Identity& identity, int flags) {
  std::string path;
  {
    std::shared_lock lock(t.mutex_);
    const Live* live = t.get(id);
    auto shown = live != nullptr ? t.draft_path(*live) : std::nullopt;
    if (!shown || *shown == origin) return fail_errno(ENOENT);
    path = std::move(*shown);
  }
  Fd fd =
      TRY((flags & O_PATH) != 0 ? open_deep(t.base_->get(), path, flags)
                                : open_deep_quiet(t.base_->get(), path, flags));
  if (!(identity_of(TRY(sys::fstat(fd.get()))) == identity))
    return fail_errno(ENOENT);
  return fd;
}

}  // namespace

// An O_PATH fd of the directory's lower side. ENOENT: it has none (any more).
Result<FdHandle> Tree::Impl::lower_dir(NodeId id) {
  if (FdHandle fd = dir_fds_.find(id)) return fd;
  FdCache::Opening opening(dir_fds_, id);
  std::string path;
  Identity identity;
  bool follow = false;  // a pin stands for whatever directory has its name
  {
    std::shared_lock lock(mutex_);
    const Live* live = get(id);
    if (live == nullptr) return fail_errno(ESTALE);
    auto found = lower_path(*live);
    if (!found) return fail_errno(ENOENT);
    path = std::move(*found);
    if (!base_shows(path, S_IFDIR)) return fail_errno(ENOENT);
    if (live->serial == 0) {
      identity = {live->dev, live->lower_ino, live->btime};
    } else if (live->serial == kRootSerial) {
      return base_;
    } else {
      const Held* node = state_.find(live->serial);
      if (node == nullptr || !node->base) return fail_errno(ENOENT);
      identity = identity_of(*node->base);
      follow = node->lower_path.empty();
    }
  }
  auto fd = open_deep(base_->get(), path, O_PATH | O_DIRECTORY);
  if (!fd && !is_absent(fd.error()))
    return std::unexpected(std::move(fd).error());
  if (!fd || !(identity_of(TRY(sys::fstat(fd->get()))) == identity))
    if (auto there =
            open_where_shown(*this, id, path, identity, O_PATH | O_DIRECTORY))
      return dir_fds_.put(opening, std::move(*there));
  if (!fd) {
    note_drift(id, "the directory is gone from the real tree");
    return fail_errno(ENOENT);
  }
  sys::Stat st = TRY(sys::fstat(fd->get()));
  if (!(identity_of(st) == identity)) {
    note_drift(id, "another directory stands here in the real tree");
    if (!follow) return fail_errno(ENOENT);
  }
  return dir_fds_.put(opening, std::move(*fd));
}

Result<sys::Stat> Tree::Impl::lower_child(NodeId dir, const std::string& name) {
  FdHandle fd = TRY(lower_dir(dir));
  sys::Stat st = TRY(sys::statat(fd->get(), name));
  if (!options_.base_shows) return st;
  std::shared_lock lock(mutex_);
  const Live* live = get(dir);
  auto path = live ? lower_path(*live) : std::nullopt;
  if (!path || !base_shows(join_path(*path, name), st.mode))
    return fail_errno(ENOENT);
  return st;
}

bool Tree::Impl::base_shows(std::string_view path, mode_t mode) const {
  if (!options_.base_shows) return true;
  Shown shown = options_.base_shows(path);
  return shown == Shown::kAll || (shown == Shown::kDirectory && S_ISDIR(mode));
}

Status Tree::Impl::list_lower(NodeId dir, int fd, const DirVisitor& visit) {
  if (!options_.base_shows) return sys::list_dir(fd, visit);
  std::string at;
  {
    std::shared_lock lock(mutex_);
    const Live* live = get(dir);
    auto path = live ? lower_path(*live) : std::nullopt;
    if (!path) return {};
    at = std::move(*path);
  }
  return sys::list_dir(
      fd, [&](std::string_view name, unsigned char type, uint64_t ino) {
        mode_t mode = static_cast<mode_t>(DTTOIF(type));
        if (type == DT_UNKNOWN)
          if (auto st = sys::statat(fd, std::string(name))) mode = st->mode;
        if (base_shows(join_path(at, name), mode)) visit(name, type, ino);
      });
}

Result<Fd> Tree::Impl::lower_open(NodeId id, int flags) {
  std::string path;
  Identity identity;
  {
    std::shared_lock lock(mutex_);
    const Live* live = get(id);
    if (live == nullptr) return fail_errno(ESTALE);
    auto found = lower_path(*live);
    if (!found) return fail_errno(ENOENT);
    path = std::move(*found);
    const Held* node = live->serial != 0 ? state_.find(live->serial) : nullptr;
    identity = node != nullptr && node->base
                   ? identity_of(*node->base)
                   : Identity{live->dev, live->lower_ino, live->btime};
  }
  if (options_.base_shows && options_.base_shows(path) == Shown::kNothing)
    return fail_errno(ENOENT);
  auto fd = (flags & O_PATH) != 0 ? open_deep(base_->get(), path, flags)
                                  : open_deep_quiet(base_->get(), path, flags);
  if (fd || !is_absent(fd.error())) return fd;
  auto there = open_where_shown(*this, id, path, identity, flags);
  return there ? std::move(there) : std::move(fd);
}

// One more of the names of an untouched file with several links leads to it:
// then that is the one it is reached by from now on.
bool Tree::Impl::find_other_name(NodeId id, const Identity& identity) {
  std::vector<Alias> others;
  {
    std::shared_lock lock(mutex_);
    const Live* live = get(id);
    if (live == nullptr || live->serial != 0 || !live->links) return false;
    auto [begin, end] = aliases_.equal_range(static_cast<Slot>(id));
    for (auto it = begin; it != end; ++it) others.push_back(it->second);
  }
  for (const Alias& other : others) {
    NodeId parent = 0;
    {
      std::shared_lock lock(mutex_);
      parent = id_of(other.parent);
    }
    auto st = lower_child(parent, other.name);
    if (!st || !(identity_of(*st) == identity)) continue;
    std::unique_lock lock(mutex_);
    if (get(id) == nullptr) return false;
    prefer_name(static_cast<Slot>(id), other.parent, other.name);
    return true;
  }
  return false;
}

// The lower's attributes now, when the same file still stands there; ESTALE
// when another does, ENOENT when none.
Result<sys::Stat> Tree::Impl::lower_stat(const NodeView& view) {
  auto st = lower_stat_once(view);
  if (st) return st;
  if (view.links && find_other_name(view.id, view.identity))
    return lower_stat_once(view);
  // Removed, replaced or moved on the host: it may be open in the mount.
  FdHandle fd = view.serial == 0 ? file_fds_.find(view.id) : nullptr;
  return fd ? sys::fstat(fd->get()) : st;
}

Result<sys::Stat> Tree::Impl::lower_stat_once(const NodeView& view) {
  sys::Stat st;
  bool is_dir = S_ISDIR(view.mode);
  if (FdHandle fd = is_dir ? dir_fds_.find(view.id) : nullptr)
    return sys::fstat(fd->get());
  NodeId parent = 0;
  std::string name;
  {
    std::shared_lock lock(mutex_);
    const Live* live = get(view.id);
    if (live == nullptr) return fail_errno(ESTALE);
    if (live->serial == 0 && live->parent != 0) {
      parent = id_of(live->parent);
      name = live->name;
    }
  }
  if (parent != 0) {
    st = TRY(lower_child(parent, name));
  } else if (is_dir) {
    FdHandle fd = TRY(lower_dir(view.id));
    return sys::fstat(fd->get());
  } else {
    Fd fd = TRY(lower_open(view.id, O_PATH));
    st = TRY(sys::fstat(fd.get()));
  }
  if (!(identity_of(st) == view.identity)) return fail_errno(ESTALE);
  return st;
}

Result<FdHandle> Tree::Impl::lower_file(const NodeView& view) {
  if (FdHandle fd = file_fds_.find(view.id)) return fd;
  FdCache::Opening opening(file_fds_, view.id);
  // O_NONBLOCK: should a FIFO have taken the name, the open must not hang.
  if (view.links && view.serial == 0) static_cast<void>(lower_stat(view));
  auto fd = lower_open(view.id, O_RDONLY | O_NONBLOCK);
  if (!fd) {
    int err = fd.error().err();
    if (err == EACCES || err == EPERM)
      return std::unexpected(std::move(fd).error());
    if (is_overtaken(view)) return fail_errno(ESTALE);
    note_drift(view.id, "the file is gone from the real tree");
    return std::unexpected(Error(Code::kDrift, "the lower file is gone", EIO));
  }
  sys::Stat st = TRY(sys::fstat(fd->get()));
  if (!(identity_of(st) == view.identity) || !S_ISREG(st.mode)) {
    if (is_overtaken(view)) return fail_errno(ESTALE);
    note_drift(view.id, "the file was replaced in the real tree");
    return std::unexpected(
        Error(Code::kDrift, "the lower file was replaced", EIO));
  }
  TRY(learn_links(view.id, st));
  if (st.dev == base_stat_.dev && base_is_local_)
    return file_fds_.put(opening, std::move(*fd));
  return file_fds_.put(opening, closer_.keep(std::move(*fd)));
}

bool Tree::Impl::is_overtaken(const NodeView& view) const {
  std::shared_lock lock(mutex_);
  return turns_ != view.turn;
}

// Kept with the node and told once; untouched nodes have no drift, they are
// the real tree.
void Tree::Impl::note_drift(NodeId id, std::string what) {
  DriftNote note;
  {
    std::unique_lock lock(mutex_);
    Live* live = get(id);
    if (live == nullptr || live->serial == 0) return;
    const Held* node = state_.find(live->serial);
    if (node == nullptr || node->drift == what || node->links.empty()) return;
    note.time = Clock::real().now();
    if (auto path = draft_path(*live))
      if (auto parsed = RelPath::parse(*path)) note.path = *parsed;
    if (auto path = lower_path(*live))
      if (auto parsed = RelPath::parse(*path)) note.origin = *parsed;
    // A draft that cannot be written to still tells.
    (void)append(
        {DriftRecord{.serial = live->serial, .what = what, .time = note.time}});
  }
  note.what = std::move(what);
  if (Observer* observer = observer_) observer->drift(note);
}

std::optional<LowerRef> Tree::lower_ref(NodeId node) {
  Impl& t = *impl_;
  LowerRef ref;
  {
    std::shared_lock lock(t.mutex_);
    const Live* live = t.get(node);
    if (live == nullptr) return std::nullopt;
    auto path = t.lower_path(*live);
    if (!path) return std::nullopt;
    auto parsed = RelPath::parse(*path);
    if (!parsed) return std::nullopt;
    ref.path = std::move(*parsed);
    ref.dev = live->dev;
    ref.ino = live->lower_ino;
    if (live->serial != 0) {
      const Held* held = t.state_.find(live->serial);
      if (held == nullptr || !held->base) return std::nullopt;
      ref.dev = held->base->dev;
      ref.ino = held->base->ino;
      ref.any = held->is_dir() && held->lower_path.empty();
    }
    if (live->serial == kRootSerial) {
      ref.any = false;
      ref.dev = t.base_stat_.dev;
      ref.ino = t.base_stat_.ino;
    }
  }
  return ref;
}

}  // namespace stoplog::fs
