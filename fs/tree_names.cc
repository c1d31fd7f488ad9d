// SPDX-License-Identifier: Apache-2.0
// Making and removing names. Each change looks first (the lower without a
// lock), then locks, looks again, and starts over when something moved.
#include <algorithm>

#include "base/sys_node.h"
#include "fs/acl.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

constexpr int kAttempts = 16;
constexpr size_t kMostLinks = 65000;  // as ext4
constexpr uint64_t kNewIno = 1ull << 62;

Status check_valid(std::string_view name) {
  if (name.size() > 255) return fail_errno(ENAMETOOLONG);
  if (!is_valid_name(name)) return fail_errno(EINVAL);
  return {};
}

}  // namespace

Error Tree::Impl::deny(std::string path, Rule rule, const char* operation,
                       pid_t pid) {
  ++denials_;
  if (Observer* observer = observer_)
    observer->denied({.path = std::move(path),
                      .rule = rule,
                      .operation = operation,
                      .pid = pid});
  return Error(rule == Rule::kReadOnly ? EROFS : EACCES);
}

// May this node be changed?
Status Tree::Impl::check_change(NodeId id, const char* operation,
                                const Caller* caller) {
  TRY(writable());
  Rule rule;
  std::string path;
  {
    std::shared_lock lock(mutex_);
    const Live* live = get(id);
    if (live == nullptr) return fail_errno(ESTALE);
    rule = live->rule;
    if (rule == Rule::kNone) return {};
    path = draft_path(*live).value_or("");
  }
  return std::unexpected(
      deny(std::move(path), rule, operation, caller ? caller->pid : 0));
}

Rule Tree::Impl::rule_of(NodeId id) const {
  std::shared_lock lock(mutex_);
  const Live* live = get(id);
  return live != nullptr ? live->rule : Rule::kNone;
}

Status Tree::Impl::learn_links(NodeId id, const sys::Stat& st) {
  if (!ruled_links_ || st.nlink < 2 || !S_ISREG(st.mode)) return {};
  const Rule own = rule_of(id);
  if (own >= Rule::kMask) return {};
  Observer* observer = observer_;
  const Rule rule = TRY(ruled_links_->rule(st, own, [observer] {
    return observer != nullptr && observer->is_given_up();
  }));
  if (rule <= own) return {};
  {
    std::unique_lock lock(mutex_);
    Live* live = get(id);
    if (live == nullptr) return fail_errno(ESTALE);
    live->rule = std::max(live->rule, rule);
  }
  tell_links(id);  // its size is another one now
  return {};
}

// Before a change of the file itself. One with content of its own was asked
// about when that was taken.
Status Tree::Impl::ask_links(NodeId id) {
  if (!ruled_links_) return {};
  NodeView view;
  {
    std::shared_lock lock(mutex_);
    view = TRY(view_of(id));
  }
  if (!S_ISREG(view.mode) || view.body || !view.has_base ||
      view.rule >= Rule::kMask)
    return {};
  auto st = lower_stat(view);
  return st ? learn_links(id, *st) : Status();
}

// May something be put at, or taken from, this name?
Status Tree::Impl::check_name(NodeId parent, std::string_view name, bool is_dir,
                              const char* operation, const Caller& caller) {
  TRY(writable());
  TRY(check_valid(name));
  if (options_.rules == nullptr || options_.rules->empty()) return {};
  Rule rule;
  bool by_name = false;
  std::string path;
  {
    std::shared_lock lock(mutex_);
    const Live* dir = get(parent);
    if (dir == nullptr) return fail_errno(ESTALE);
    rule = std::max(dir->rule, rule_at(*dir, name, is_dir));
    if (rule == Rule::kNone) return {};
    by_name = dir->rule == Rule::kNone;
    path = join_path(draft_path(*dir).value_or(""), name);
  }
  if (rule == Rule::kMask && by_name) {
    // Only what stands there in the real tree is masked: see rule_for().
    auto id = peek(parent, std::string(name));
    if (!id) return {};
    Counted counted{*this, *id};
    std::shared_lock lock(mutex_);
    const Live* live = get(*id);
    if (live == nullptr || live->rule < Rule::kMask) return {};
  }
  return std::unexpected(deny(std::move(path), rule, operation, caller.pid));
}

Result<Tree::Impl::Target> Tree::Impl::target_at(NodeId parent,
                                                 const std::string& name) {
  Target target;
  {
    std::shared_lock lock(mutex_);
    const Live* dir = get(parent);
    if (dir == nullptr) return fail_errno(ESTALE);
    if (!S_ISDIR(dir->type)) return fail_errno(ENOTDIR);
    const Held* held = state_.find(dir->serial);
    if (held == nullptr) return fail_errno(ESTALE);
    if (held->links.empty() && held->serial != kRootSerial)
      return fail_errno(ENOENT);  // the directory itself was removed
    if (auto serial = State::child(*held, name)) {
      target.held = *serial;
      target.gone = *serial == 0;
      if (const Held* node = state_.find(*serial)) target.mode = node->mode;
      return target;
    }
    if (!held->base) {
      // The directory may itself be one that was removed and made anew.
      target.gone = !state_.deleted().empty();
      return target;
    }
  }
  auto st = lower_child(parent, name);
  if (!st && st.error().err() == ENOENT) return target;
  if (!st) return std::unexpected(std::move(st).error());
  target.lower = *st;
  target.mode = st->mode;
  if (S_ISLNK(st->mode)) {
    FdHandle dir = TRY(lower_dir(parent));
    if (auto text = sys::readlinkat(dir->get(), name))
      target.lower_target = std::move(*text);
  }
  return target;
}

// With the lock held: is the name still as `target` says?
Result<bool> Tree::Impl::still_so(const Held& dir, const std::string& name,
                                  const Target& target) {
  if (dir.links.empty() && dir.serial != kRootSerial) return fail_errno(ENOENT);
  auto serial = State::child(dir, name);
  if (target.lower) return !serial.has_value();
  return serial.value_or(0) == target.held;
}

// The draft took this name from the lower: a node the kernel still has lives
// on without it.
void Tree::Impl::forget_lower_name(Slot dir, std::string_view name) {
  Slot slot = find_named(dir, name);
  if (slot == 0) return;
  unname(slot);
  slots_[slot].unlinked = true;
}

Result<Entry> Tree::Impl::create(NodeId parent, std::string_view name_view,
                                 const NewNode& what, const Caller& caller) {
  std::string name(name_view);
  bool is_dir = S_ISDIR(what.mode);
  TRY(check_name(parent, name, is_dir, "create", caller));
  TRY(hold(parent));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Target target = TRY(target_at(parent, name));
    if (target.exists()) return fail_errno(EEXIST);
    if (target.gone && S_ISREG(what.mode)) (void)take_hidden(parent, name);
    NodeView dir_view;
    {
      std::shared_lock lock(mutex_);
      dir_view = TRY(view_of(parent));
    }
    Source source{};
    Attr dir_attr = TRY(compose(dir_view, source));
    CreateRecord record;
    record.name = name;
    record.mode = what.mode;
    record.rdev = what.rdev;
    record.target = what.target;
    record.uid = caller.uid;
    record.gid = caller.gid;
    record.time = sys::coarse_now();
    if ((dir_attr.mode & S_ISGID) != 0) {
      record.gid = dir_attr.gid;
      if (is_dir) record.mode |= S_ISGID;
    }
    if (!S_ISLNK(what.mode)) TRY(inherit(dir_view, caller.umask, record));
    NodeId id = 0;
    {
      std::unique_lock lock(mutex_);
      const Live* dir = get(parent);
      const Held* held = dir ? state_.find(dir->serial) : nullptr;
      if (held == nullptr) return fail_errno(ESTALE);
      if (!TRY(still_so(*held, name, target))) continue;
      TRY(charge_inode());
      TRY(charge_beside(0, record.target.size() + size_of(record.xattrs)));
      record.serial = state_.next_serial();
      record.ino = kNewIno | state_.next_ino();
      record.parent = dir->serial;
      Serial serial = record.serial;
      TRY(append({std::move(record)}));
      Slot slot = slot_of_held(*state_.find(serial));
      ++slots_[slot].lookups;
      id = id_of(slot);
    }
    return entry_of(id);
  }
  return fail_errno(EBUSY);
}

// umask, or the directory's default ACL in its place.
Status Tree::Impl::inherit(const NodeView& dir, mode_t umask,
                           CreateRecord& record) {
  std::string bytes;
  std::string key(kAclDefault);
  if ((dir.flags & kXattrsOwn) != 0) {
    Xattrs xattrs = TRY(xattrs_of(dir));
    if (auto it = xattrs.find(key); it != xattrs.end()) bytes = it->second;
  } else if (auto fd = lower_dir(dir.id)) {
    if (auto value = sys::path_getxattr((*fd)->get(), key))
      bytes = std::move(*value);
  }
  auto acl = bytes.empty() ? Result<Acl>(Acl()) : parse_acl(bytes);
  if (!acl || acl->empty()) {
    record.mode &= ~umask;
    return {};
  }
  mode_t mode = record.mode & 0777;
  if (auto inherited = inherit_acl(*acl, mode))
    record.xattrs[std::string(kAclAccess)] = encode_acl(*inherited);
  record.mode = (record.mode & ~static_cast<mode_t>(0777)) | mode;
  if (S_ISDIR(record.mode)) record.xattrs[key] = bytes;
  return {};
}

Result<Entry> Tree::mknod(NodeId parent, std::string_view name, mode_t mode,
                          dev_t rdev, const Caller& caller) {
  if ((mode & S_IFMT) == 0) mode |= S_IFREG;
  if (S_ISDIR(mode) || S_ISLNK(mode)) return fail_errno(EINVAL);
  return impl_->create(parent, name, {.mode = mode, .rdev = rdev}, caller);
}

Result<Entry> Tree::mkdir(NodeId parent, std::string_view name, mode_t mode,
                          const Caller& caller) {
  return impl_->create(parent, name, {.mode = (mode & 07777) | S_IFDIR},
                       caller);
}

Result<Entry> Tree::symlink(NodeId parent, std::string_view name,
                            std::string_view target, const Caller& caller) {
  if (target.size() > 4095) return fail_errno(ENAMETOOLONG);
  return impl_->create(parent, name, {.mode = S_IFLNK | 0777, .target = target},
                       caller);
}

Result<Entry> Tree::tmpfile(NodeId parent, mode_t mode, const Caller& caller) {
  Impl& t = *impl_;
  TRY(t.check_change(parent, "tmpfile", &caller));
  TRY(t.hold(parent));
  NodeView dir;
  {
    std::shared_lock lock(t.mutex_);
    dir = TRY(t.view_of(parent));
  }
  Source source{};
  Attr attr = TRY(t.compose(dir, source));
  CreateRecord record;
  record.mode = S_IFREG | (mode & 07777);
  record.uid = caller.uid;
  record.gid = (attr.mode & S_ISGID) != 0 ? attr.gid : caller.gid;
  record.time = sys::coarse_now();
  TRY(t.inherit(dir, caller.umask, record));
  NodeId id;
  {
    std::unique_lock lock(t.mutex_);
    TRY(t.charge_inode());
    Serial serial = record.serial = t.state_.next_serial();
    record.ino = kNewIno | t.state_.next_ino();
    TRY(t.append({std::move(record)}));
    Slot slot = t.slot_of_held(*t.state_.find(serial));
    ++t.slots_[slot].lookups;
    id = t.id_of(slot);
  }
  return t.entry_of(id);
}

Result<Entry> Tree::link(NodeId node, NodeId new_parent, std::string_view view,
                         const Caller& caller) {
  Impl& t = *impl_;
  std::string name(view);
  TRY(t.check_change(node, "link", &caller));
  TRY(t.check_name(new_parent, name, false, "link", caller));
  TRY(t.hold(node));
  TRY(t.hold(new_parent));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Impl::Target target = TRY(t.target_at(new_parent, name));
    if (target.exists()) return fail_errno(EEXIST);
    if (target.gone) (void)t.take_hidden(new_parent, name);
    {
      std::unique_lock lock(t.mutex_);
      Live* live = t.get(node);
      const Live* dir = t.get(new_parent);
      if (live == nullptr || dir == nullptr) return fail_errno(ESTALE);
      if (S_ISDIR(live->type)) return fail_errno(EPERM);
      const Held* held = t.state_.find(live->serial);
      const Held* parent = t.state_.find(dir->serial);
      if (held == nullptr || parent == nullptr) return fail_errno(ESTALE);
      if (held->links.size() >= kMostLinks) return fail_errno(EMLINK);
      TRY(t.charge_inode());
      if (!TRY(t.still_so(*parent, name, target))) continue;
      TRY(t.append({LinkRecord{.serial = live->serial,
                               .parent = dir->serial,
                               .name = name,
                               .lower = false,
                               .time = sys::coarse_now()}}));
      ++live->lookups;
    }
    return t.entry_of(node);
  }
  return fail_errno(EBUSY);
}

}  // namespace stoplog::fs
