// SPDX-License-Identifier: Apache-2.0
// Extended attributes. The first change takes over all that the lower has.
#include <sys/xattr.h>

#include "base/sys_node.h"
#include "fs/acl.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

constexpr size_t kMostValue = 65536;   // XATTR_SIZE_MAX
constexpr size_t kMostTotal = 131072;  // names and values of one node

// "user." alone: the kernel refuses it for other file systems, and a commit
// could not put it there.
bool is_empty_name(std::string_view name) {
  return name == "user." || name == "security.";
}

struct NewXattr {
  std::string_view name, value;
  int flags;
  const Acl* acl;  // null: none
};

// An access ACL changes the mode along, in a record of its own.
Status put_xattr(Attributes& now, const NewXattr& set,
                 std::vector<Record>& records) {
  const std::string key(set.name);
  if ((set.flags & XATTR_CREATE) != 0 && now.xattrs.contains(key))
    return fail_errno(EEXIST);
  if ((set.flags & XATTR_REPLACE) != 0 && !now.xattrs.contains(key))
    return fail_errno(ENODATA);
  now.attr.ctime = sys::coarse_now();
  bool keep = true;
  if (set.acl != nullptr && set.name == kAclAccess) {
    AclMode mode = mode_of_acl(*set.acl);
    keep = !mode.minimal;  // then the mode bits say it all
    records.push_back(SetAttrRecord{.serial = now.serial,
                                    .own = kOwnAll,
                                    .by_user = true,
                                    .mode = (now.attr.mode & 07000) | mode.mode,
                                    .uid = now.attr.uid,
                                    .gid = now.attr.gid,
                                    .atime = now.attr.atime,
                                    .mtime = now.attr.mtime,
                                    .ctime = now.attr.ctime});
  }
  if (keep)
    now.xattrs[key] = set.value;
  else
    now.xattrs.erase(key);
  return size_of(now.xattrs) > kMostTotal ? fail_errno(ENOSPC) : Status();
}

}  // namespace

size_t size_of(const Xattrs& xattrs) {
  size_t sum = 0;
  for (const auto& [name, value] : xattrs) sum += name.size() + value.size();
  return sum;
}

Result<Xattrs> Tree::Impl::xattrs_of(const NodeView& view) {
  if ((view.flags & kXattrsOwn) != 0) {
    std::shared_lock lock(mutex_);
    const Held* node = state_.find(view.serial);
    return node != nullptr ? node->xattrs : Xattrs();
  }
  auto fd = lower_open(view.id, O_PATH);
  if (!fd && (fd.error().err() == ENOENT || fd.error().err() == ENOTDIR))
    return Xattrs();
  if (!fd) return std::unexpected(std::move(fd).error());
  // Those of another file that has taken the name are not its own.
  sys::Stat st = TRY(sys::fstat(fd->get()));
  if (view.serial == 0 && !(identity_of(st) == view.identity)) return Xattrs();
  return read_xattrs(fd->get());
}

Result<std::string> Tree::getxattr(NodeId node, std::string_view name) {
  Impl& t = *impl_;
  if (is_empty_name(name)) return fail_errno(EINVAL);
  NodeView view;
  {
    std::shared_lock lock(t.mutex_);
    view = TRY(t.view_of(node));
    if ((view.flags & kXattrsOwn) != 0) {
      const Held* held = t.state_.find(view.serial);
      auto it = held->xattrs.find(std::string(name));
      if (it == held->xattrs.end()) return fail_errno(ENODATA);
      return it->second;
    }
  }
  if (view.rule >= Rule::kMask) return fail_errno(ENODATA);
  if (!is_kept_xattr(name)) return fail_errno(EOPNOTSUPP);
  auto fd = t.lower_open(node, O_PATH);
  if (!fd && (fd.error().err() == ENOENT || fd.error().err() == ENOTDIR))
    return fail_errno(ENODATA);
  if (!fd) return std::unexpected(std::move(fd).error());
  return sys::path_getxattr(fd->get(), std::string(name));
}

Result<std::vector<std::string>> Tree::listxattr(NodeId node) {
  Impl& t = *impl_;
  NodeView view;
  {
    std::shared_lock lock(t.mutex_);
    view = TRY(t.view_of(node));
  }
  std::vector<std::string> names;
  if (view.rule >= Rule::kMask) return names;
  for (auto& [name, value] : TRY(t.xattrs_of(view))) names.push_back(name);
  return names;
}

Status Tree::setxattr(NodeId node, std::string_view name,
                      std::string_view value, int flags, const Caller& caller) {
  Impl& t = *impl_;
  if (is_empty_name(name)) return fail_errno(EINVAL);
  if (!is_kept_xattr(name)) return fail_errno(EOPNOTSUPP);
  if (name.size() > 255) return fail_errno(ERANGE);
  if (value.size() > kMostValue) return fail_errno(E2BIG);
  TRY(t.ask_links(node));
  TRY(t.check_change(node, "setxattr", &caller));
  std::optional<Acl> acl;
  if (name == kAclAccess || name == kAclDefault) {
    acl = TRY(parse_acl(value));
    if (acl->empty()) return removexattr(node, name);
  }
  {
    std::shared_lock lock(t.mutex_);
    const mode_t mode = TRY(t.view_of(node)).mode;
    if (name == kAclDefault && !S_ISDIR(mode)) return fail_errno(EACCES);
    if (acl && S_ISLNK(mode)) return fail_errno(EOPNOTSUPP);
  }
  return t.change_attributes(
      node, Impl::With::kXattrs,
      [&](Attributes& now) -> Result<std::vector<Record>> {
        std::vector<Record> records;
        TRY(put_xattr(now, {name, value, flags, acl ? &*acl : nullptr},
                      records));
        const Held* held = t.state_.find(now.serial);
        TRY(t.charge_beside(size_of(held->xattrs), size_of(now.xattrs)));
        records.push_back(XattrRecord{.serial = now.serial,
                                      .xattrs = std::move(now.xattrs),
                                      .ctime = now.attr.ctime});
        return records;
      });
}

Status Tree::removexattr(NodeId node, std::string_view name) {
  Impl& t = *impl_;
  TRY(t.ask_links(node));
  TRY(t.check_change(node, "removexattr", nullptr));
  NodeView view;
  {
    std::shared_lock lock(t.mutex_);
    view = TRY(t.view_of(node));
  }
  const std::string key(name);
  // Removing an ACL that is not there is no error, as on ext4.
  const bool may_lack = name == kAclAccess || name == kAclDefault;
  // What is not there makes the node no held one.
  if (!TRY(t.xattrs_of(view)).contains(key))
    return may_lack ? Status() : fail_errno(ENODATA);
  return t.change_attributes(
      node, Impl::With::kXattrs,
      [&](Attributes& now) -> Result<std::vector<Record>> {
        if (now.xattrs.erase(key) == 0 && !may_lack) return fail_errno(ENODATA);
        return std::vector<Record>{XattrRecord{.serial = now.serial,
                                               .xattrs = std::move(now.xattrs),
                                               .ctime = sys::coarse_now()}};
      });
}

}  // namespace stoplog::fs
