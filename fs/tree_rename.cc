// SPDX-License-Identifier: Apache-2.0
// Taking names away and moving them.
#include <linux/fs.h>

#include <algorithm>

#include "base/sys_node.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

constexpr int kAttempts = 16;

bool is_empty(const Held& dir) {
  return std::ranges::all_of(dir.names,
                             [](const auto& e) { return e.second == 0; });
}

}  // namespace

// Does the lower directory show nothing through? Names that a rule hides
// count: removing the directory would remove them unseen.
Result<bool> Tree::Impl::lower_is_empty(NodeId dir) {
  auto fd = lower_dir(dir);
  if (!fd && fd.error().err() == ENOENT) return true;
  if (!fd) return std::unexpected(std::move(fd).error());
  std::vector<std::string> names;
  TRY(list_lower(dir, (*fd)->get(),
                 [&](std::string_view name, unsigned char, uint64_t) {
                   names.emplace_back(name);
                 }));
  std::shared_lock lock(mutex_);
  const Live* live = get(dir);
  if (live == nullptr) return fail_errno(ESTALE);
  const Held* held = state_.find(live->serial);
  if (live->serial == 0 || held == nullptr) return names.empty();
  return std::ranges::all_of(names, [&](const std::string& name) {
    return State::child(*held, name) == Serial{0};
  });
}

Status Tree::Impl::remove_name(NodeId parent, std::string_view name_view,
                               bool directory, const Caller& caller) {
  std::string name(name_view);
  const char* operation = directory ? "rmdir" : "unlink";
  TRY(check_name(parent, name, directory, operation, caller));
  TRY(hold(parent));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Target target = TRY(target_at(parent, name));
    if (!target.exists()) return fail_errno(ENOENT);
    if (directory && !S_ISDIR(target.mode)) return fail_errno(ENOTDIR);
    if (!directory && S_ISDIR(target.mode)) return fail_errno(EISDIR);
    NodeId id = TRY(peek(parent, name));
    Counted counted{*this, id};
    TRY(check_change(id, operation, &caller));
    if (directory && !TRY(lower_is_empty(id))) return fail_errno(ENOTEMPTY);
    // A file with several links must know that it lost one, and a directory
    // that somebody is in lives on.
    if (target.lower && (directory || target.lower->nlink > 1)) {
      TRY(hold(id));
      continue;
    }
    std::unique_lock lock(mutex_);
    const Live* dir = get(parent);
    const Held* held = dir ? state_.find(dir->serial) : nullptr;
    if (held == nullptr) return fail_errno(ESTALE);
    if (!TRY(still_so(*held, name, target))) continue;
    const Held* node = target.held != 0 ? state_.find(target.held) : nullptr;
    if (node != nullptr && directory && !is_empty(*node))
      return fail_errno(ENOTEMPTY);
    TRY(append({UnlinkRecord{.parent = dir->serial,
                             .name = name,
                             .time = sys::coarse_now(),
                             .lower = target.lower,
                             .lower_target = target.lower_target}}));
    if (target.lower) forget_lower_name(static_cast<Slot>(parent), name);
    return {};
  }
  return fail_errno(EBUSY);
}

Status Tree::unlink(NodeId parent, std::string_view name,
                    const Caller& caller) {
  return impl_->remove_name(parent, name, false, caller);
}

Status Tree::rmdir(NodeId parent, std::string_view name, const Caller& caller) {
  return impl_->remove_name(parent, name, true, caller);
}

// A directory must not bring what is in it under a rule for its new path: made
// elsewhere, it would get where nothing may be made. Nor may it take along what
// is read-only where it stands.
Status Tree::Impl::check_beneath(const At& from, const At& to,
                                 const Caller& caller) {
  if (options_.rules == nullptr || options_.rules->empty()) return {};
  auto path_of = [this](const At& at) {
    const Live* dir = get(at.dir);
    return join_path(dir ? draft_path(*dir).value_or("") : "", at.name);
  };
  std::string path;
  Rule rule;
  {
    std::shared_lock lock(mutex_);
    path = path_of(to);
    rule = options_.rules->evaded(path_of(from), path);
  }
  if (rule == Rule::kNone) return {};
  return std::unexpected(deny(std::move(path), rule, "rename", caller.pid));
}

// May what stands at the new name be replaced by `mode`?
Status Tree::Impl::check_replace(NodeId new_parent, const std::string& name,
                                 mode_t mode, const Target& target,
                                 const Caller& caller) {
  NodeId id = TRY(peek(new_parent, name));
  Counted counted{*this, id};
  TRY(check_change(id, "rename", &caller));
  if (S_ISDIR(mode) && !S_ISDIR(target.mode)) return fail_errno(ENOTDIR);
  if (!S_ISDIR(mode) && S_ISDIR(target.mode)) return fail_errno(EISDIR);
  if (S_ISDIR(target.mode) && !TRY(lower_is_empty(id)))
    return fail_errno(ENOTEMPTY);
  if (!target.lower) return {};
  if (S_ISDIR(target.mode) || target.lower->nlink > 1) TRY(hold(id));
  // Programs save by renaming over: what was there is the base of a merge, and
  // the real file may change. Replacing it needs no room: kept where there is.
  bool keep = S_ISREG(target.mode) && target.lower->size <= options_.take_whole;
  if (keep) {
    std::shared_lock lock(mutex_);
    keep = has_room(target.lower->size, true) &&
           state_.nodes().size() < quota_.inodes;
  }
  if (keep) (void)take(id);
  return {};
}

Status Tree::rename(NodeId parent, std::string_view old_view, NodeId new_parent,
                    std::string_view new_view, unsigned flags,
                    const Caller& caller) {
  Impl& t = *impl_;
  std::string name(old_view), new_name(new_view);
  bool exchange = flags == RENAME_EXCHANGE;
  if (flags != 0 && flags != RENAME_NOREPLACE && !exchange)
    return fail_errno(EINVAL);
  if (!is_valid_name(name)) return fail_errno(EINVAL);
  NodeId id = TRY(t.peek(parent, name));
  Impl::Counted counted{t, id};
  mode_t mode;
  {
    std::shared_lock lock(t.mutex_);
    const Live* live = t.get(id);
    if (live == nullptr) return fail_errno(ESTALE);
    mode = live->type;
    if (live->rule == Rule::kHide) return fail_errno(ENOENT);
  }
  TRY(t.check_change(id, "rename", &caller));
  TRY(t.check_name(parent, name, S_ISDIR(mode), "rename", caller));
  TRY(t.check_name(new_parent, new_name, S_ISDIR(mode), "rename", caller));
  if (S_ISDIR(mode))
    TRY(t.check_beneath({parent, name}, {new_parent, new_name}, caller));
  TRY(t.hold(parent));
  TRY(t.hold(new_parent));
  TRY(t.hold(id));
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Impl::Target target = TRY(t.target_at(new_parent, new_name));
    if (target.exists() && flags == RENAME_NOREPLACE) return fail_errno(EEXIST);
    if (!target.exists() && exchange) return fail_errno(ENOENT);
    if (exchange && S_ISDIR(target.mode))
      TRY(t.check_beneath({new_parent, new_name}, {parent, name}, caller));
    if (exchange && target.lower) {
      NodeId other = TRY(t.peek(new_parent, new_name));
      Impl::Counted held{t, other};
      TRY(t.check_change(other, "rename", &caller));
      TRY(t.hold(other));
      continue;
    }
    if (target.exists() && !exchange) {
      TRY(t.check_replace(new_parent, new_name, mode, target, caller));
      target = TRY(t.target_at(new_parent, new_name));
    }
    if (target.gone && S_ISREG(mode)) (void)t.take_hidden(new_parent, new_name);
    auto done = t.rename_locked(
        {parent, name, new_parent, new_name, id, exchange}, target);
    if (!done || *done) {
      if (!done) return std::unexpected(std::move(done).error());
      return {};
    }
  }
  return fail_errno(EBUSY);
}

// False: the world moved, look again.
Result<bool> Tree::Impl::rename_locked(const Move& move, const Target& target) {
  std::unique_lock lock(mutex_);
  const Live* live = get(move.id);
  const Live* dir = get(move.parent);
  const Live* new_dir = get(move.new_parent);
  if (live == nullptr || dir == nullptr || new_dir == nullptr)
    return fail_errno(ESTALE);
  const Held* from = state_.find(dir->serial);
  const Held* to = state_.find(new_dir->serial);
  const Held* node = state_.find(live->serial);
  if (from == nullptr || to == nullptr || node == nullptr)
    return fail_errno(ESTALE);
  if (State::child(*from, move.name).value_or(0) != node->serial)
    return fail_errno(ENOENT);
  if (!TRY(still_so(*to, move.new_name, target))) return false;
  if (target.held == node->serial) return true;  // two names of one file
  if (node->is_dir() && state_.is_within(*to, *node)) return fail_errno(EINVAL);
  if (const Held* old = target.held ? state_.find(target.held) : nullptr) {
    if (move.exchange && old->is_dir() && state_.is_within(*from, *old))
      return fail_errno(EINVAL);
    if (!move.exchange && old->is_dir() && !is_empty(*old))
      return fail_errno(ENOTEMPTY);
  }
  TRY(append({RenameRecord{.parent = dir->serial,
                           .name = move.name,
                           .new_parent = new_dir->serial,
                           .new_name = move.new_name,
                           .exchange = move.exchange,
                           .time = sys::coarse_now(),
                           .lower = target.lower,
                           .lower_target = target.lower_target}}));
  if (target.lower)
    forget_lower_name(static_cast<Slot>(move.new_parent), move.new_name);
  // The lower side is reached by another path than before only in the draft;
  // cached directory fds stay right.
  return true;
}

}  // namespace stoplog::fs
