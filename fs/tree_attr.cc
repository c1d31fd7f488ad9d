// SPDX-License-Identifier: Apache-2.0
// Attributes: the draft's own over the lower's live ones.
#include <algorithm>

#include "base/sys_node.h"
#include "fs/acl.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

Attr from_stat(const sys::Stat& st) {
  return {.ino = st.ino,
          .mode = st.mode,
          .nlink = st.nlink,
          .uid = st.uid,
          .gid = st.gid,
          .rdev = st.rdev,
          .size = st.size,
          .blocks = st.blocks,
          .atime = st.atime,
          .mtime = st.mtime,
          .ctime = st.ctime};
}

uint32_t shown_nlink(const NodeView& v, uint32_t lower) {
  // Some file systems (btrfs) count no subdirectories: they say 1.
  if (S_ISDIR(v.mode) && v.has_base && lower == 1) return 1;
  int64_t n = int64_t{v.has_base ? lower : 0} + v.nlink_delta;
  return static_cast<uint32_t>(std::max<int64_t>(n, 0));
}

mode_t without_privileges(mode_t mode) {
  mode &= ~static_cast<mode_t>(S_ISUID);
  if ((mode & S_IXGRP) != 0) mode &= ~static_cast<mode_t>(S_ISGID);
  return mode;
}

// All attributes, as ones that the draft set itself.
Record set_all(const Attributes& now) {
  return SetAttrRecord{.serial = now.serial,
                       .own = kOwnAll,
                       .by_user = true,
                       .mode = now.attr.mode & 07777,
                       .uid = now.attr.uid,
                       .gid = now.attr.gid,
                       .atime = now.attr.atime,
                       .mtime = now.attr.mtime,
                       .ctime = now.attr.ctime};
}

Record xattrs_now(Attributes& now) {
  return XattrRecord{.serial = now.serial,
                     .xattrs = std::move(now.xattrs),
                     .ctime = now.attr.ctime};
}

void set_in(Attr& attr, const SetAttr& set) {
  const timespec now = sys::coarse_now();
  if ((set.set & kSetMode) != 0) attr.mode = set.mode & 07777;
  if ((set.set & kSetUid) != 0) attr.uid = set.uid;
  if ((set.set & kSetGid) != 0) attr.gid = set.gid;
  if ((set.set & kSetAtime) != 0) attr.atime = set.atime;
  if ((set.set & kSetMtime) != 0) attr.mtime = set.mtime;
  if ((set.set & kSetAtimeNow) != 0) attr.atime = now;
  if ((set.set & kSetMtimeNow) != 0) attr.mtime = now;
  attr.ctime = (set.set & kSetCtime) != 0 ? set.ctime : now;
}

// False: there is no access ACL that a new mode would change.
bool keep_acl(Xattrs& xattrs, mode_t mode) {
  auto it = xattrs.find(std::string(kAclAccess));
  if (it == xattrs.end()) return false;
  auto acl = parse_acl(it->second);
  if (!acl) return false;
  chmod_acl(*acl, mode);
  it->second = encode_acl(*acl);
  return true;
}

}  // namespace

Result<Attr> Tree::Impl::compose(const NodeView& v, Source& source,
                                 const sys::Stat* lower) {
  source = Source::kHeld;
  if (v.serial == 0) {
    bool known = lower != nullptr && identity_of(*lower) == v.identity;
    sys::Stat st = known ? *lower : TRY(lower_stat(v));
    source = Source::kLower;
    Attr attr = from_stat(st);
    if (v.unlinked && attr.nlink > 0) --attr.nlink;
    attr.ino = v.ino;
    return attr;
  }
  Attr attr;
  if (v.has_base && (v.own != kOwnAll || !v.body)) {
    // What is not the draft's own is live; when the lower is gone, as it was
    // when the draft first saw it.
    auto st = lower_stat(v);
    if (!st && st.error().err() != ENOENT && st.error().err() != ESTALE &&
        st.error().err() != ENOTDIR && st.error().err() != ELOOP)
      return std::unexpected(std::move(st).error());
    if (st) source = Source::kLower;
    attr = from_stat(st ? *st : v.base);
  } else if (v.has_base) {
    attr = from_stat(v.base);
  }
  attr.ino = v.ino;
  attr.nlink = shown_nlink(v, attr.nlink);
  if ((v.own & kOwnMode) != 0) {
    attr.mode = v.mode;
    attr.uid = v.uid;
    attr.gid = v.gid;
  }
  attr.mode = (attr.mode & 07777) | (v.mode & S_IFMT);
  if ((v.own & kOwnTimes) != 0) {
    attr.atime = v.atime;
    attr.mtime = v.mtime;
  }
  if ((v.own & kOwnCtime) != 0) attr.ctime = v.ctime;
  if (!v.has_base) attr.rdev = v.rdev;
  if (v.body) {
    attr.size = v.size;
    attr.blocks = (v.allocated + 511) / 512;
  } else if (!v.has_base) {
    attr.size = S_ISLNK(v.mode) ? v.target.size() : S_ISDIR(v.mode) ? 4096 : 0;
    attr.blocks = S_ISDIR(v.mode) ? 8 : 0;
  }
  return attr;
}

Result<Entry> Tree::Impl::entry_of(NodeId id, const sys::Stat* lower) {
  NodeView view;
  {
    std::shared_lock lock(mutex_);
    view = TRY(view_of(id));
    if (view.serial == kRootSerial) view.ino = base_stat_.ino;
  }
  Entry entry{.id = id, .attr = {}};
  entry.attr = TRY(compose(view, entry.attr_source, lower));
  entry.name_source = view.name_held ? Source::kHeld : Source::kLower;
  entry.lower_links = view.links && entry.attr_source == Source::kLower;
  if (entry.attr_source == Source::kLower && S_ISREG(entry.attr.mode))
    note_seen(id, entry.attr);
  if (view.rule == Rule::kMask && S_ISREG(entry.attr.mode)) {
    std::shared_lock lock(mutex_);
    if (const Live* live = get(id)) {
      auto content =
          options_.rules->mask_content(lower_path(*live).value_or(""));
      entry.attr.size = content.size();
      entry.attr.blocks = (content.size() + 511) / 512;
    }
  }
  return entry;
}

// No event tells of a change that was made through a name which is gone when
// the event is read. Such a file shows its new times with the next answer, and
// then what the kernel has of its content must go as well.
void Tree::Impl::note_seen(NodeId id, const Attr& attr) {
  const uint16_t now = seen_of(attr.mtime, attr.ctime, attr.size);
  uint16_t before = 0;
  {
    std::shared_lock lock(mutex_);
    Live* live = get(id);
    // Without a name it is as it was, but for the link that it lost.
    if (live == nullptr || (live->serial == 0 && !live->named)) return;
    before = std::atomic_ref(live->seen).exchange(now);
  }
  if (before == 0 || before == now) return;
  Invalidation what{.kind = Invalidation::Kind::kNode, .node = id};
  if (Observer* observer = observer_) observer->invalidate({&what, 1});
}

Result<Entry> Tree::getattr(NodeId node) { return impl_->entry_of(node); }

// Drops setuid, setgid and file capabilities, as a write by another does.
Status Tree::Impl::clear_privileges(NodeId id) {
  NodeView view;
  {
    std::shared_lock lock(mutex_);
    view = TRY(view_of(id));
  }
  Source source{};
  Attr attr = TRY(compose(view, source));
  Xattrs xattrs = TRY(xattrs_of(view));
  bool had_caps = xattrs.erase("security.capability") > 0;
  if (without_privileges(attr.mode) == attr.mode && !had_caps) return {};
  return change_attributes(id, With::kXattrs, [](Attributes& now) {
    const mode_t before = now.attr.mode;
    now.attr.mode = without_privileges(before);
    now.attr.ctime = sys::coarse_now();
    std::vector<Record> records;
    if (now.attr.mode != before) records.push_back(set_all(now));
    if (now.xattrs.erase("security.capability") > 0)
      records.push_back(xattrs_now(now));
    return Result<std::vector<Record>>(std::move(records));
  });
}

Status Tree::Impl::change_attributes(NodeId id, With with,
                                     const AttrChange& change) {
  constexpr int kTries = 16;
  for (int left = kTries;; --left) {
    Status done = change_attributes_once(id, with, change);
    if (done || done.error().err() != ESTALE || left == 0) return done;
  }
}

Status Tree::Impl::change_attributes_once(NodeId id, With with,
                                          const AttrChange& change) {
  TRY(hold(id));
  NodeView view;
  {
    std::shared_lock lock(mutex_);
    view = TRY(view_of(id));
  }
  Attributes now;
  Source source{};
  now.attr = TRY(compose(view, source));
  if (with == With::kXattrs) now.xattrs = TRY(xattrs_of(view));
  std::unique_lock lock(mutex_);
  const Held* node = TRY(held_now(id));
  if (turns_ != view.turn || node->own != view.own ||
      (node->flags & kXattrsOwn) != (view.flags & kXattrsOwn))
    return fail_errno(ESTALE);
  // What is the draft's own may have moved since: a page is written back while
  // another program calls chmod.
  now.serial = node->serial;
  if ((node->own & kOwnMode) != 0) {
    now.attr.mode = node->mode;
    now.attr.uid = node->uid;
    now.attr.gid = node->gid;
  }
  if ((node->own & kOwnTimes) != 0) {
    now.attr.atime = node->atime;
    now.attr.mtime = node->mtime;
  }
  if (with == With::kXattrs && (node->flags & kXattrsOwn) != 0)
    now.xattrs = node->xattrs;
  std::vector<Record> records = TRY(change(now));
  return records.empty() ? Status() : append(std::move(records));
}

Result<Entry> Tree::setattr(NodeId node, const SetAttr& set,
                            const Caller& caller) {
  Impl& t = *impl_;
  TRY(t.ask_links(node));
  TRY(t.check_change(node, "setattr", &caller));
  if ((set.set & kKillSuidgid) != 0) TRY(t.clear_privileges(node));
  if ((set.set & kSetSize) != 0) TRY(t.resize(node, set.size));
  constexpr uint32_t kAttrs = kSetMode | kSetUid | kSetGid | kSetAtime |
                              kSetMtime | kSetCtime | kSetAtimeNow |
                              kSetMtimeNow;
  if ((set.set & kAttrs) == 0) return t.entry_of(node);
  // An access ACL must go on saying what the mode says.
  const bool is_mode = (set.set & kSetMode) != 0;
  TRY(t.change_attributes(node,
                          is_mode ? Impl::With::kXattrs : Impl::With::kAttr,
                          [&](Attributes& now) -> Result<std::vector<Record>> {
                            set_in(now.attr, set);
                            std::vector<Record> records{set_all(now)};
                            if (is_mode && keep_acl(now.xattrs, now.attr.mode))
                              records.push_back(xattrs_now(now));
                            return records;
                          }));
  return t.entry_of(node);
}

Result<std::string> Tree::readlink(NodeId node) {
  Impl& t = *impl_;
  NodeView view;
  {
    std::shared_lock lock(t.mutex_);
    view = TRY(t.view_of(node));
  }
  if (!S_ISLNK(view.mode)) return fail_errno(EINVAL);
  if (!view.has_base) return view.target;
  Fd fd = TRY(t.lower_open(node, O_PATH));
  sys::Stat st = TRY(sys::fstat(fd.get()));
  if (!S_ISLNK(st.mode) || !(identity_of(st) == view.identity))
    return fail_errno(ESTALE);
  return sys::path_readlink(fd.get());
}

}  // namespace stoplog::fs
