// SPDX-License-Identifier: Apache-2.0
// inotify(7): watches by descriptor instead of by path, events as records.
//
//   Fd queue = TRY(inotify_open());
//   int watch = TRY(inotify_watch(queue.get(), dir, IN_CREATE | IN_DELETE));
//   for (InotifyEvent& e : TRY(inotify_read(queue.get()))) ...  // poll first
//
// A full queue gives one event of IN_Q_OVERFLOW: anything may have happened.
#pragma once

#include <sys/inotify.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog::sys {

struct InotifyEvent {
  int watch = -1;  // -1 with IN_Q_OVERFLOW
  uint32_t mask = 0;
  std::string name;  // empty: the watched file itself
};

Result<Fd> inotify_open();  // non-blocking
// Watches what `target` is open on (O_PATH is enough); the watch's number. The
// same file gives the same number.
Result<int> inotify_watch(int inotify, int target, uint32_t mask);
Status inotify_unwatch(int inotify, int watch);
// What is queued now, at most about 4,000 events; empty when nothing is.
Result<std::vector<InotifyEvent>> inotify_read(int inotify);
// fs.inotify.max_user_watches.
Result<uint64_t> inotify_max_watches();

}  // namespace stoplog::sys
