// SPDX-License-Identifier: Apache-2.0
// What `doctor` says of what it found beside the jail: a verdict, what follows
// from it, what to do. No function here asks the machine, so that every answer
// can be had on any machine; cli/doctor_checks asks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/sys_kernel.h"
#include "jail/probe.h"

namespace stoplog::cli {

jail::Check judge_kernel(const sys::KernelVersion& version);

struct FuseFacts {
  int error = 0;  // of opening /dev/fuse
};
jail::Check judge_fuse(const FuseFacts& facts);

struct FusermountFacts {
  bool root = false;
  bool there = false;
  bool setuid = false;  // or with a capability: it may mount
  int root_error = 0;   // what root's own mounting said
};
jail::Check judge_fusermount(const FusermountFacts& facts);

struct WatchFacts {
  uint64_t watches = 0;    // fs.inotify.max_user_watches
  uint64_t instances = 0;  // fs.inotify.max_user_instances
};
jail::Check judge_watches(const WatchFacts& facts);

// Whether a file of the workspace can be had in the state without copying.
jail::Check judge_reflink(bool clones);

struct RingFacts {
  bool there = false;      // the kernel has FUSE over io_uring
  bool on = false;         // and root has turned it on
  bool can_abort = false;  // a dead connection of this user's
};
jail::Check judge_rings(const RingFacts& facts);

struct SpaceFacts {
  std::string place;
  int error = 0;  // it could not be told
  uint64_t bytes = 0;
  // Files that can still be made; none where the file system has no such bound.
  std::optional<uint64_t> files;
};
jail::Check judge_space(const SpaceFacts& facts);

struct StateFacts {
  std::string place;
  std::string error, hint;  // it cannot be used
  uint64_t drafts = 0;
  std::vector<std::string> damaged;      // directories without a draft.json
  uint64_t unfinished = 0;               // drafts that were being made
  std::vector<std::string> dead_mounts;  // of daemons that were killed
};
jail::Check judge_state(const StateFacts& facts);

struct WorkspaceFacts {
  std::string path;
  int error = 0;       // of opening it
  uint64_t magic = 0;  // statfs
};
jail::Check judge_workspace(const WorkspaceFacts& facts);
// What `run` says of it when it starts a draft there; "" when there is nothing.
std::string workspace_note(const WorkspaceFacts& facts);

}  // namespace stoplog::cli
