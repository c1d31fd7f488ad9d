// SPDX-License-Identifier: Apache-2.0
// IdMap: between the ids that the mount shows and the true ones of the host.
//
//   IdMap::identity()                    fusermount3: all ids pass
//   IdMap::swap(owner, jail)             root: the jail's user stands for the
//                                        workspace's owner
//   IdMap::restricted(uids, gids, self)  a mount in a user namespace: foreign
//                                        owners cannot be expressed
//
// shown = what goes to the kernel; truth = what the tree holds and journals.
// POSIX ACL xattrs carry ids too and go through the same map. Immutable, any
// thread. A value that is no well-formed ACL is EINVAL.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoplog::fs {

struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
  bool operator==(const Owner&) const = default;
};

// Ids [first, first + count) exist in the namespace.
struct IdRange {
  uint32_t first = 0;
  uint64_t count = 0;
};

class IdMap {
 public:
  static IdMap identity() { return IdMap(); }
  static IdMap swap(Owner owner, Owner jail);
  static IdMap restricted(std::vector<IdRange> uids, std::vector<IdRange> gids,
                          Owner self);

  uid_t shown_uid(uid_t truth) const;
  gid_t shown_gid(gid_t truth) const;
  uid_t true_uid(uid_t shown) const;
  gid_t true_gid(gid_t shown) const;
  // chown of a node whose true owner is `now`: an id that only stands for the
  // true one because that cannot be expressed keeps the true one.
  uid_t chown_uid(uid_t shown, uid_t now) const;
  gid_t chown_gid(gid_t shown, gid_t now) const;

  Result<std::string> shown_acl(std::string_view value) const;
  Result<std::string> true_acl(std::string_view value) const;

  bool is_identity() const { return kind_ == Kind::kIdentity; }

 private:
  enum class Kind { kIdentity, kSwap, kRestricted };
  Kind kind_ = Kind::kIdentity;
  Owner owner_{};  // kSwap
  Owner self_{};   // kSwap: the jail's user; kRestricted: the stand-in
  std::vector<IdRange> uids_;
  std::vector<IdRange> gids_;
};

// True for the two xattrs that hold an ACL.
bool is_acl_name(std::string_view name);
// The ranges of /proc/PID/uid_map or gid_map, as ids inside of the namespace.
std::vector<IdRange> parse_id_map(std::string_view text);

}  // namespace stoplog::fs
