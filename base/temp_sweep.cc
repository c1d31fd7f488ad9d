// SPDX-License-Identifier: Apache-2.0
#include "base/temp_sweep.h"

#include "base/clock.h"
#include "base/dir.h"
#include "base/sys_file.h"

namespace stoplog {

bool is_temp_name(std::string_view name) {
  return name.starts_with(".stoplog-") && name.ends_with(".tmp");
}

Status sweep_temp_files(int dir, int64_t idle) {
  const int64_t now = Clock::real().now().tv_sec;
  for (const std::string& name : TRY(list_names(dir, "."))) {
    if (!is_temp_name(name)) continue;
    auto st = sys::statat(dir, name);
    if (!st || now - st->mtime.tv_sec < idle) continue;
    Status gone = sys::unlinkat(dir, name);
    if (!gone && gone.error().err() != ENOENT) return gone;
  }
  return {};
}

}  // namespace stoplog
