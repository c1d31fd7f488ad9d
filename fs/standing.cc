// SPDX-License-Identifier: Apache-2.0
#include "fs/standing.h"

#include <algorithm>

#include "base/sys_lock.h"

namespace stoplog::fs {

Fd stand_on(int draft_dir, uint32_t generation, Position at) {
  auto fd = open_generation(draft_dir, generation, O_RDONLY);
  if (!fd || !sys::lock_byte(fd->get(), at)) return {};
  return std::move(*fd);
}

Result<std::set<Position>> stood_on(Generations& generations) {
  std::set<Position> found;
  for (const Generation& each : TRY(generations.all())) {
    auto fd = open_generation(generations.draft_dir(), each.number, O_RDONLY);
    if (!fd && fd.error().err() == ENOENT) continue;  // dropped meanwhile
    if (!fd) return std::unexpected(std::move(fd).error().context("journal"));
    found.merge(TRY(sys::locked_bytes(
        fd->get(),
        {each.head.first, std::min<Position>(each.last, INT64_MAX - 1)})));
  }
  return found;
}

}  // namespace stoplog::fs
