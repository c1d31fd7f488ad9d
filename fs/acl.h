// SPDX-License-Identifier: Apache-2.0
// POSIX ACLs as the kernel stores them in xattrs (version 2, entries of tag,
// permissions and id), and the three things a file system does with them:
// mode bits that follow an ACL, an ACL that follows chmod, and inheritance.
// Pure functions over bytes that an agent wrote.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoplog::fs {

inline constexpr std::string_view kAclAccess = "system.posix_acl_access";
inline constexpr std::string_view kAclDefault = "system.posix_acl_default";

struct AclEntry {
  uint16_t tag = 0;
  uint16_t perm = 0;
  uint32_t id = 0;
};
using Acl = std::vector<AclEntry>;

// EINVAL for what is no valid ACL.
Result<Acl> parse_acl(std::string_view bytes);
std::string encode_acl(const Acl& acl);
// The nine mode bits that `acl` stands for; `minimal` when they say all of it
// and no xattr is needed.
struct AclMode {
  mode_t mode = 0;
  bool minimal = false;
};
AclMode mode_of_acl(const Acl& acl);
// The ACL after chmod to `mode`.
void chmod_acl(Acl& acl, mode_t mode);
// What a new node gets from its directory's default ACL: `mode` is changed to
// what the ACL leaves of it. Absent: the mode says it all.
std::optional<Acl> inherit_acl(const Acl& parent_default, mode_t& mode);

}  // namespace stoplog::fs
