// SPDX-License-Identifier: Apache-2.0
#include "gate/node.h"

namespace stoplog::gate {

Node node_of(const fs::NodeState& state,
             const std::optional<Sha256Digest>& sha256) {
  Node node{.type = state.type,
            .mode = state.mode,
            .uid = state.uid,
            .gid = state.gid,
            .mtime = state.mtime,
            .rdev = 0,
            .size = state.size,
            .target = state.target,
            .xattrs = state.xattrs,
            .sha256 = {}};
  if (state.type == fs::Type::kChar || state.type == fs::Type::kBlock)
    node.rdev = state.rdev;
  // A symlink's mode is 0777 everywhere and cannot be set.
  if (state.type == fs::Type::kSymlink) node.mode = 0777;
  if (state.type == fs::Type::kFile) node.sha256 = sha256;
  return node;
}

bool same_content(const Node& a, const Node& b) {
  return a.type == b.type && a.target == b.target && a.rdev == b.rdev &&
         (a.type != fs::Type::kFile ||
          (a.sha256 && b.sha256 && *a.sha256 == *b.sha256));
}

bool same_attributes(const Node& a, const Node& b) {
  return a.mode == b.mode && a.uid == b.uid && a.gid == b.gid &&
         a.xattrs == b.xattrs;
}

std::string difference(const Node& base, const Node& now) {
  if (base.type != now.type)
    return fmt::format("is a {} now", fs::name_of(now.type));
  // Removed unread, and then replaced: whether by the same, nobody can tell.
  if (base.type == fs::Type::kFile && !base.sha256)
    return "is another file now, and what it was is not known";
  if (!same_content(base, now))
    return now.type == fs::Type::kSymlink ? "points elsewhere now"
                                          : "has other content now";
  if (base.mode != now.mode)
    return fmt::format("has mode {:04o} now, had {:04o}", now.mode, base.mode);
  if (base.uid != now.uid || base.gid != now.gid)
    return fmt::format("belongs to {}:{} now", now.uid, now.gid);
  if (base.xattrs != now.xattrs) return "has other extended attributes now";
  return {};
}

}  // namespace stoplog::gate
