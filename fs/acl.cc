// SPDX-License-Identifier: Apache-2.0
#include "fs/acl.h"

#include <algorithm>
#include <cstring>

namespace stoplog::fs {
namespace {

// acl(5) and linux/posix_acl.h
constexpr uint32_t kVersion = 2;
constexpr uint16_t kUserObj = 0x01, kUser = 0x02, kGroupObj = 0x04,
                   kGroup = 0x08, kMask = 0x10, kOther = 0x20;
constexpr size_t kHead = 4, kEntry = 8;

AclEntry* find(Acl& acl, uint16_t tag) {
  auto it = std::ranges::find(acl, tag, &AclEntry::tag);
  return it == acl.end() ? nullptr : &*it;
}

}  // namespace

Result<Acl> parse_acl(std::string_view bytes) {
  uint32_t version = 0;
  if (bytes.size() < kHead || (bytes.size() - kHead) % kEntry != 0)
    return fail_errno(EINVAL);
  std::memcpy(&version, bytes.data(), 4);
  if (version != kVersion) return fail_errno(EINVAL);
  Acl acl((bytes.size() - kHead) / kEntry);
  int users = 0, groups = 0, others = 0, masks = 0, named = 0;
  for (size_t i = 0; i < acl.size(); ++i) {
    const char* at = bytes.data() + kHead + i * kEntry;
    std::memcpy(&acl[i].tag, at, 2);
    std::memcpy(&acl[i].perm, at + 2, 2);
    std::memcpy(&acl[i].id, at + 4, 4);
    if (acl[i].perm > 7) return fail_errno(EINVAL);
    if (i > 0 && acl[i].tag < acl[i - 1].tag) return fail_errno(EINVAL);
    switch (acl[i].tag) {
      case kUserObj:
        ++users;
        break;
      case kGroupObj:
        ++groups;
        break;
      case kOther:
        ++others;
        break;
      case kMask:
        ++masks;
        break;
      case kUser:
      case kGroup:
        ++named;
        break;
      default:
        return fail_errno(EINVAL);
    }
  }
  if (acl.empty()) return acl;  // means: remove it
  if (users != 1 || groups != 1 || others != 1 || masks > 1 ||
      (named > 0 && masks == 0))
    return fail_errno(EINVAL);
  return acl;
}

std::string encode_acl(const Acl& acl) {
  std::string bytes(kHead + acl.size() * kEntry, '\0');
  std::memcpy(bytes.data(), &kVersion, 4);
  for (size_t i = 0; i < acl.size(); ++i) {
    char* at = bytes.data() + kHead + i * kEntry;
    std::memcpy(at, &acl[i].tag, 2);
    std::memcpy(at + 2, &acl[i].perm, 2);
    std::memcpy(at + 4, &acl[i].id, 4);
  }
  return bytes;
}

AclMode mode_of_acl(const Acl& acl) {
  AclMode result{.mode = 0, .minimal = true};
  mode_t mask = 8;
  for (const AclEntry& e : acl) {
    mode_t perm = e.perm;
    switch (e.tag) {
      case kUserObj:
        result.mode |= perm << 6;
        break;
      case kGroupObj:
        result.mode |= perm << 3;
        break;
      case kOther:
        result.mode |= perm;
        break;
      case kMask:
        mask = perm;
        result.minimal = false;
        break;
      default:
        result.minimal = false;
    }
  }
  if (mask != 8) result.mode = (result.mode & ~070u) | mask << 3;
  return result;
}

void chmod_acl(Acl& acl, mode_t mode) {
  if (AclEntry* e = find(acl, kUserObj))
    e->perm = static_cast<uint16_t>(mode >> 6 & 7);
  if (AclEntry* e = find(acl, kOther))
    e->perm = static_cast<uint16_t>(mode & 7);
  AclEntry* group = find(acl, kMask);
  if (group == nullptr) group = find(acl, kGroupObj);
  if (group != nullptr) group->perm = static_cast<uint16_t>(mode >> 3 & 7);
}

std::optional<Acl> inherit_acl(const Acl& parent_default, mode_t& mode) {
  Acl acl = parent_default;
  auto restrict = [&](uint16_t tag, int shift) {
    AclEntry* e = find(acl, tag);
    if (e == nullptr) return;
    e->perm = static_cast<uint16_t>(e->perm & (mode >> shift & 7));
    mode = (mode & ~(7u << shift)) | static_cast<mode_t>(e->perm) << shift;
  };
  restrict(kUserObj, 6);
  restrict(kOther, 0);
  restrict(find(acl, kMask) != nullptr ? kMask : kGroupObj, 3);
  if (mode_of_acl(acl).minimal) return std::nullopt;
  return acl;
}

}  // namespace stoplog::fs
