// SPDX-License-Identifier: Apache-2.0
#include "fs/ids.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace stoplog::fs {
namespace {

// linux/posix_acl_xattr.h: a version, then entries; little-endian on disk and
// at the system call alike.
constexpr uint32_t kAclVersion = 2;
constexpr uint16_t kAclUser = 0x02;
constexpr uint16_t kAclGroup = 0x08;
struct AclEntry {
  uint16_t tag;
  uint16_t perm;
  uint32_t id;
};

bool contains(const std::vector<IdRange>& ranges, uint32_t id) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const IdRange& r) {
    return id >= r.first && id - r.first < r.count;
  });
}

template <typename User, typename Group>
Result<std::string> map_acl(std::string_view value, User user, Group group) {
  uint32_t version = 0;
  if (value.size() < sizeof version) return fail_errno(EINVAL);
  std::memcpy(&version, value.data(), sizeof version);
  if (version != kAclVersion ||
      (value.size() - sizeof version) % sizeof(AclEntry) != 0)
    return fail_errno(EINVAL);
  std::string out(value);
  for (size_t at = sizeof version; at < out.size(); at += sizeof(AclEntry)) {
    AclEntry entry{};
    std::memcpy(&entry, out.data() + at, sizeof entry);
    if (entry.tag == kAclUser) entry.id = user(entry.id);
    if (entry.tag == kAclGroup) entry.id = group(entry.id);
    std::memcpy(out.data() + at, &entry, sizeof entry);
  }
  return out;
}

}  // namespace

IdMap IdMap::swap(Owner owner, Owner jail) {
  IdMap map;
  if (owner == jail) return map;
  map.kind_ = Kind::kSwap;
  map.owner_ = owner;
  map.self_ = jail;
  return map;
}

IdMap IdMap::restricted(std::vector<IdRange> uids, std::vector<IdRange> gids,
                        Owner self) {
  IdMap map;
  map.kind_ = Kind::kRestricted;
  map.uids_ = std::move(uids);
  map.gids_ = std::move(gids);
  map.self_ = self;
  return map;
}

uid_t IdMap::shown_uid(uid_t truth) const {
  if (kind_ == Kind::kSwap && truth == owner_.uid) return self_.uid;
  if (kind_ == Kind::kRestricted && !contains(uids_, truth)) return self_.uid;
  return truth;
}

gid_t IdMap::shown_gid(gid_t truth) const {
  if (kind_ == Kind::kSwap && truth == owner_.gid) return self_.gid;
  if (kind_ == Kind::kRestricted && !contains(gids_, truth)) return self_.gid;
  return truth;
}

uid_t IdMap::true_uid(uid_t shown) const {
  return kind_ == Kind::kSwap && shown == self_.uid ? owner_.uid : shown;
}

gid_t IdMap::true_gid(gid_t shown) const {
  return kind_ == Kind::kSwap && shown == self_.gid ? owner_.gid : shown;
}

uid_t IdMap::chown_uid(uid_t shown, uid_t now) const {
  return shown_uid(now) == shown ? now : true_uid(shown);
}

gid_t IdMap::chown_gid(gid_t shown, gid_t now) const {
  return shown_gid(now) == shown ? now : true_gid(shown);
}

Result<std::string> IdMap::shown_acl(std::string_view value) const {
  return map_acl(
      value, [&](uint32_t id) { return shown_uid(id); },
      [&](uint32_t id) { return shown_gid(id); });
}

Result<std::string> IdMap::true_acl(std::string_view value) const {
  return map_acl(
      value, [&](uint32_t id) { return true_uid(id); },
      [&](uint32_t id) { return true_gid(id); });
}

bool is_acl_name(std::string_view name) {
  return name == "system.posix_acl_access" ||
         name == "system.posix_acl_default";
}

std::vector<IdRange> parse_id_map(std::string_view text) {
  std::vector<IdRange> out;
  std::istringstream in{std::string(text)};
  uint64_t inside = 0;
  uint64_t outside = 0;
  uint64_t count = 0;
  while (in >> inside >> outside >> count)
    out.push_back({static_cast<uint32_t>(inside), count});
  return out;
}

}  // namespace stoplog::fs
