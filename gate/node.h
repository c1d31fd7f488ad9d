// SPDX-License-Identifier: Apache-2.0
// Node: one side of a change as plain data (type, attributes, digest of the
// content), without the content itself: what a commit expects to find, what it
// leaves behind, what its record keeps.
//
// two nodes are compared with difference(), which says in words what differs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/hash.h"
#include "base/result.h"
#include "base/sys_file.h"
#include "fs/view.h"

namespace stoplog::gate {

struct Node {
  fs::Type type = fs::Type::kFile;
  mode_t mode = 0;  // 07777
  uid_t uid = 0;
  gid_t gid = 0;
  timespec mtime{};
  dev_t rdev = 0;
  uint64_t size = 0;
  std::string target;  // symlinks
  std::map<std::string, std::string> xattrs;
  // Files: of the content (snapshot/content_digest.h).
  std::optional<Sha256Digest> sha256;

  bool is_dir() const { return type == fs::Type::kDir; }
  bool is_file() const { return type == fs::Type::kFile; }
};

Node node_of(const fs::NodeState& state,
             const std::optional<Sha256Digest>& sha256);

// Empty when `now` is what `base` was: type, content, mode, owner, extended
// attributes. Times do not count: a touch is no edit.
std::string difference(const Node& base, const Node& now);
// Content, target or device alone.
bool same_content(const Node& a, const Node& b);
// Mode, owner, extended attributes.
bool same_attributes(const Node& a, const Node& b);

struct Identity {
  dev_t dev = 0;
  uint64_t ino = 0;
  bool operator==(const Identity&) const = default;
  bool known() const { return ino != 0; }
};
inline Identity identity_of(const sys::Stat& stat) {
  return {stat.dev, stat.ino};
}

}  // namespace stoplog::gate
