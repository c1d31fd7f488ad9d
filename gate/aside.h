// SPDX-License-Identifier: Apache-2.0
// A commit that was interrupted on a directory which does not stand at the
// workspace's path any more (it was moved, or removed and made anew). Nothing
// of it may be done to the one that stands there now, and nothing of it may be
// lost: state/pending becomes state/aside/INO-ID, stage and all, and comes
// back when that directory does.
//
// All under the lock of the workspace's root, but find_aside().
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "gate/disk.h"
#include "gate/node.h"

namespace stoplog::gate {

inline constexpr const char* kPendingDir = "pending";

// Moves state/pending away; the name that it has now, for a person.
Result<std::string> set_aside(int state, const Disk& disk, Identity root,
                              const std::string& id);
// The name of one that began on this root; one failing open when there is none.
Result<std::optional<std::string>> find_aside(int state, int root);
// Makes it the pending one again, when nothing is pending.
Status bring_back(int state, const Disk& disk, int root);

}  // namespace stoplog::gate
