// SPDX-License-Identifier: Apache-2.0
// Carries a mount plan out, in the zygote. In two steps, because the zygote
// changes its identity between them: open_sources() while it can still reach
// what the caller can reach, build_root() as the jail's own user.
//
//   OpenedPlan opened = TRY(open_sources(spec, plan));
//   ... become the jail's user ...
//   TRY(build_root(opened));          // pivot_root included
//
// Any failure leaves a half-built root in a namespace that is about to vanish:
// the zygote reports it and exits.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "jail/mount_plan.h"
#include "jail/spec.h"

namespace stoplog::jail {

struct OpenedPlan {
  std::vector<MountOp> ops;  // kCopy has become kFile
  std::vector<Fd> sources;   // detached mounts, parallel to ops
  std::vector<std::string> left_out;
  std::vector<HomeFile> notes;  // name and content
};

struct BuiltRoot {
  std::vector<Fd> memory;  // the tmpfs mounts, whose use counts as memory
  Fd notes;                // the notes' tmpfs, writable here alone
};

Result<OpenedPlan> open_sources(const JailSpec& spec,
                                std::vector<MountOp> plan);
Result<BuiltRoot> build_root(OpenedPlan plan);
Status write_note(int notes, const std::string& name,
                  const std::string& content);
// plan_proc(), in a command's own mount namespace.
Status build_proc(const std::vector<MountOp>& plan);

}  // namespace stoplog::jail
