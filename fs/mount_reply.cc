// SPDX-License-Identifier: Apache-2.0
// What an Entry of the tree becomes for the kernel: shown ids and how long the
// answer may be kept.
#include "fs/mount_impl.h"

namespace stoplog::fs {
namespace {

// The kernel caps it at about 2^62 jiffies; for ever in all but name.
constexpr double kForEver = 1e9;
constexpr double kShort = 1.0;

// The watch of its directory does not see all that happens to it: it has other
// names (perhaps since a moment ago), or the draft moved it elsewhere.
bool needs_own_watch(const Entry& entry) {
  return entry.lower_links || entry.attr.nlink > 1 ||
         entry.name_source == Source::kHeld;
}

}  // namespace

struct stat MountServer::Impl::shown(const Attr& attr) const {
  struct stat out{};
  out.st_ino = attr.ino;
  out.st_mode = attr.mode;
  out.st_nlink = attr.nlink;
  out.st_uid = options.ids.shown_uid(attr.uid);
  out.st_gid = options.ids.shown_gid(attr.gid);
  out.st_rdev = attr.rdev;
  out.st_size = static_cast<off_t>(attr.size);
  out.st_blksize = 4096;
  out.st_blocks = static_cast<blkcnt_t>(attr.blocks);
  out.st_atim = attr.atime;
  out.st_mtim = attr.mtime;
  out.st_ctim = attr.ctime;
  return out;
}

bool MountServer::Impl::cover_directory(NodeId dir) {
  return watch && watch->cover_directory(dir);
}

void MountServer::Impl::settle_entry(Entry& entry) {
  if (!watch || entry.attr_source != Source::kLower) return;
  bool fresh = false;
  if (S_ISDIR(entry.attr.mode)) {
    // Names made in it change its times, which its parent's watch never sees.
    watch->cover_directory(entry.id, &fresh);
  } else if (needs_own_watch(entry)) {
    watch->cover_file(entry.id, &fresh);
  }
  if (!fresh) return;
  auto again = tree.getattr(entry.id);
  if (again) entry.attr = again->attr;
}

double MountServer::Impl::attr_timeout(const Entry& entry, bool covered) {
  if (entry.attr_source == Source::kHeld) return kForEver;
  bool kept = covered && watch != nullptr;
  if (kept && S_ISDIR(entry.attr.mode))
    kept = watch->cover_directory(entry.id);
  else if (kept && needs_own_watch(entry))
    kept = watch->cover_file(entry.id);
  if (kept) {
    leave_short_lived(entry.id);
    return kForEver;
  }
  note_short_lived(entry);
  return kShort;
}

// No event will tell of a change here: what is shown is compared with what was
// shown before, and when it differs the kernel must drop the pages it has.
void MountServer::Impl::note_short_lived(const Entry& entry) {
  if (!watch) return;  // AUTO_INVAL_DATA does it
  Shown now{entry.attr.mtime, entry.attr.ctime, entry.attr.size};
  auto same = [](const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
  };
  bool changed = false;
  {
    std::lock_guard lock(short_lived_mutex);
    auto [it, added] = short_lived.try_emplace(entry.id, now);
    changed = !added && !(same(it->second.mtime, now.mtime) &&
                          same(it->second.ctime, now.ctime) &&
                          it->second.size == now.size);
    it->second = now;
    any_short_lived = true;
  }
  if (!changed || !notifier) return;
  Invalidation what{.kind = Invalidation::Kind::kNode, .node = entry.id};
  notifier->push(std::span(&what, 1));
}

// Watched from now on; what was read before that may be old.
void MountServer::Impl::leave_short_lived(NodeId node) {
  if (!any_short_lived) return;
  {
    std::lock_guard lock(short_lived_mutex);
    if (short_lived.erase(node) == 0) return;
    any_short_lived = !short_lived.empty();
  }
  Invalidation what{.kind = Invalidation::Kind::kNode, .node = node};
  if (notifier) notifier->push(std::span(&what, 1));
}

double MountServer::Impl::attr_timeout_alone(const Entry& entry) {
  if (entry.attr_source == Source::kHeld) return kForEver;
  if (!watch) return kShort;
  if (!S_ISDIR(entry.attr.mode) && entry.attr.nlink > 1) {
    if (watch->cover_file(entry.id)) {
      leave_short_lived(entry.id);
      return kForEver;
    }
    note_short_lived(entry);
    return kShort;
  }
  if (!any_short_lived) return kForEver;
  {
    std::lock_guard lock(short_lived_mutex);
    if (!short_lived.contains(entry.id)) return kForEver;
  }
  note_short_lived(entry);
  return kShort;
}

fuse_entry_param MountServer::Impl::shown_entry(const Entry& entry,
                                                bool covered) {
  fuse_entry_param out{};
  out.ino = entry.id;
  out.attr = shown(entry.attr);
  out.attr_timeout = attr_timeout(entry, covered);
  out.entry_timeout =
      entry.name_source == Source::kHeld || covered ? kForEver : kShort;
  return out;
}

Caller MountServer::Impl::caller(const fuse_ctx& ctx) const {
  // fsetid: the kernel has cleared setgid already where the caller may not
  // keep it (setattr_prepare), and knows all of its groups; we do not.
  return Caller{.uid = options.ids.true_uid(ctx.uid),
                .gid = options.ids.true_gid(ctx.gid),
                .umask = ctx.umask,
                .pid = ctx.pid,
                .fsetid = true};
}

void MountServer::Impl::forget(NodeId node, uint64_t count) {
  tree.forget(node, count);
  if (watch) watch->forget(node);
  if (any_short_lived) {
    std::lock_guard lock(short_lived_mutex);
    short_lived.erase(node);
    any_short_lived = !short_lived.empty();
  }
}

}  // namespace stoplog::fs
