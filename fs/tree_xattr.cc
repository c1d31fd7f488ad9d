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
  TRY(t.check_change(node, "setxattr", &caller));
  std::optional<Acl> acl;
  if (name == kAclAccess || name == kAclDefault) {
    acl = TRY(parse_acl(value));
    if (acl->empty()) return removexattr(node, name);
  }
  TRY(t.hold(node));
  NodeView view;
  {
    std::shared_lock lock(t.mutex_);
    view = TRY(t.view_of(node));
  }
  if (name == kAclDefault && !S_ISDIR(view.mode)) return fail_errno(EACCES);
  if (acl && S_ISLNK(view.mode)) return fail_errno(EOPNOTSUPP);
  Xattrs xattrs = TRY(t.xattrs_of(view));
  std::string key(name);
  if ((flags & XATTR_CREATE) != 0 && xattrs.contains(key))
    return fail_errno(EEXIST);
  if ((flags & XATTR_REPLACE) != 0 && !xattrs.contains(key))
    return fail_errno(ENODATA);
  Source source{};
  Attr attr = TRY(t.compose(view, source));
  timespec now = sys::coarse_now();
  std::vector<Record> records;
  bool keep = true;
  if (acl && name == kAclAccess) {
    AclMode mode = mode_of_acl(*acl);
    keep = !mode.minimal;  // then the mode bits say it all
    records.push_back(SetAttrRecord{.serial = view.serial,
                                    .own = kOwnAll,
                                    .by_user = true,
                                    .mode = (attr.mode & 07000) | mode.mode,
                                    .uid = attr.uid,
                                    .gid = attr.gid,
                                    .atime = attr.atime,
                                    .mtime = attr.mtime,
                                    .ctime = now});
  }
  if (keep)
    xattrs[key] = value;
  else
    xattrs.erase(key);
  const size_t bytes = size_of(xattrs);
  if (bytes > kMostTotal) return fail_errno(ENOSPC);
  records.push_back(XattrRecord{
      .serial = view.serial, .xattrs = std::move(xattrs), .ctime = now});
  std::unique_lock lock(t.mutex_);
  if (TRY(t.held_now(node))->serial != view.serial) return fail_errno(ESTALE);
  TRY(t.charge_beside(bytes));
  return t.append(std::move(records));
}

Status Tree::removexattr(NodeId node, std::string_view name) {
  Impl& t = *impl_;
  TRY(t.check_change(node, "removexattr", nullptr));
  NodeView view;
  {
    std::shared_lock lock(t.mutex_);
    view = TRY(t.view_of(node));
  }
  Xattrs xattrs = TRY(t.xattrs_of(view));
  if (xattrs.erase(std::string(name)) == 0) {
    // Removing an ACL that is not there is no error, as on ext4.
    if (name == kAclAccess || name == kAclDefault) return {};
    return fail_errno(ENODATA);
  }
  TRY(t.hold(node));
  std::unique_lock lock(t.mutex_);
  const Held* held = TRY(t.held_now(node));
  return t.append({XattrRecord{.serial = held->serial,
                               .xattrs = std::move(xattrs),
                               .ctime = sys::coarse_now()}});
}

}  // namespace stoplog::fs
