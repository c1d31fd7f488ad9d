// SPDX-License-Identifier: Apache-2.0
#include "draft/reach.h"

namespace stoplog::draft {

Result<Reached> reach(const Layout& layout, const std::string& id,
                      LockMode mode, std::chrono::milliseconds patience,
                      Ahead ahead) {
  constexpr auto kTurn = std::chrono::milliseconds(10);
  auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    Reached reached;
    reached.daemon =
        TRY(Client::connect(layout, id, OtherVersion::kStays, ahead));
    if (reached.daemon) return reached;
    // A daemon that refuses the hello and closes over what came with it leaves
    // us its reset, not its reason.
    ahead = Ahead::kNothing;
    auto lock = DraftLock::take(layout, id, mode, kTurn);
    if (lock) {
      reached.lock = std::move(*lock);
      return reached;
    }
    if (lock.error().err() != EWOULDBLOCK ||
        std::chrono::steady_clock::now() >= deadline)
      return std::unexpected(std::move(lock).error());
  }
}

}  // namespace stoplog::draft
