// SPDX-License-Identifier: Apache-2.0
// What a killed daemon leaves in the host's mount namespace: an ordinary user's
// mounts (root's vanish with the daemon). The next daemon of the same draft
// clears its own; of a draft that never gets one again, whoever comes next.
// Forks (fusermount3): call these while the process has one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "draft/layout.h"

namespace stoplog::draft {

// The mounts in the run directory of a draft whose lock the caller holds.
Status clear_dead_mounts(const Layout& layout, std::string_view id);
Status clear_dead_mounts_in(const std::string& run);

// Those of all drafts but `mine` that have no daemon. Best effort.
void sweep_dead_mounts(const Layout& layout, std::string_view mine);

// Where they are; nothing is changed.
Result<std::vector<std::string>> list_dead_mounts(const Layout& layout);

}  // namespace stoplog::draft
