// SPDX-License-Identifier: Apache-2.0
// The jail's root file system as a list of records, built by a pure function
// from a JailSpec and what the host has (HostFacts), carried out in order by
// rootfs.h. `run --dry-run` prints it with describe().
//
//   std::vector<MountOp> plan = plan_root(spec, gather_facts(spec));
//
// Only what is listed exists inside: the root is an empty tmpfs at first.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "jail/spec.h"

namespace stoplog::jail {

enum class MountKind : uint8_t {
  kDir,      // make a directory
  kLink,     // make a symlink whose text is `source`
  kFile,     // write `content`
  kCopy,     // copy the host's file `source`
  kBind,     // the host's `source`, with all beneath it
  kTree,     // a TreeSource: `source` is "workspace" or "home"
  kTmpfs,    // a fresh tmpfs of `size` bytes
  kDevpts,   // an own instance
  kNotes,    // a tmpfs that only the zygote writes, with the files of `source`
  kProc,     // a fresh procfs of this pid namespace
  kProtect,  // what is at `target` already, made read-only
  kMask,     // what is at `target` already, covered by nothing
};

enum MountFlag : uint8_t {
  kReadOnlyMount = 1,
  kNoSuidMount = 2,
  kNoDevMount = 4,
  kNoExecMount = 8,
};

struct MountOp {
  MountKind kind{};
  std::string target = {};
  std::string source = {};
  uint8_t flags = 0;
  mode_t mode = 0755;
  uint64_t size = 0;
  std::string content = {};
  bool required = true;

  bool operator==(const MountOp&) const = default;
};

enum class PathKind : uint8_t { kNone, kFile, kDir, kLink, kDevice, kOther };
struct PathFact {
  PathKind kind = PathKind::kNone;
  std::string link = {};  // text of a symlink
  uint64_t size = 0;      // of a file
};
// What the host has at the paths that the tables name.
struct HostFacts {
  std::map<std::string, PathFact> paths;
  std::string resolv_conf;  // for a jail that shares the host's network
  const PathFact& at(const std::string& path) const;
};
HostFacts gather_facts(const JailSpec& spec);

// Refuses (kInvalid) a spec that cannot be built: a relative path, the
// workspace at "/".
Result<std::vector<MountOp>> plan_root(const JailSpec& spec,
                                       const HostFacts& facts);
// What each command's init puts over the zygote's root: its own /proc.
std::vector<MountOp> plan_proc(const JailSpec& spec, const HostFacts& facts);

// "bind /usr at /usr ro,nosuid,nodev"
std::string describe(const MountOp& op);

}  // namespace stoplog::jail
