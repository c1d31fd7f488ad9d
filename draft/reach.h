// SPDX-License-Identifier: Apache-2.0
// Whoever works on a draft does so through its daemon or, when none lives,
// under the draft's lock.
//
//   Reached r = TRY(reach(layout, id, LockMode::kShared));
//   if (r.daemon) ... else ...  // r.lock is held
//
// A daemon holds the lock before it listens and until it has ended, so looking
// for one and waiting for the other would wait in vain when it comes up in
// between: both are tried in turn. EWOULDBLOCK when neither was to be had.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/result.h"
#include "draft/client.h"
#include "draft/layout.h"
#include "draft/store.h"

namespace stoplog::draft {

struct Reached {
  std::optional<Client> daemon;
  std::optional<DraftLock> lock;
};

Result<Reached> reach(
    const Layout& layout, const std::string& id, LockMode mode,
    std::chrono::milliseconds patience = std::chrono::seconds(20),
    Ahead ahead = Ahead::kNothing);

}  // namespace stoplog::draft
