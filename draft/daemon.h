// SPDX-License-Identifier: Apache-2.0
// The daemon of one draft, from its start to its end.
//
//   return run_daemon({.layout = layout, .draft = id, .ready_fd = 3},
//                     make_core);
//
// Takes the draft's lock (the proof that it is the only one), makes the core
// while single-threaded, listens, tells the starter through the ready pipe and
// serves until idle, told to end or SIGTERM/SIGINT. SIGTERM, SIGINT, SIGHUP
// and SIGPIPE are blocked or ignored before the core is made: whatever the
// core forks must reset them.
//
// The ready pipe carries "ok\n", or one encoded ErrorReply and then the daemon
// ends. A daemon that dies before saying either is an EOF.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "draft/daemon_core.h"
#include "draft/layout.h"

namespace stoplog::draft {

using CoreFactory =
    std::function<Result<std::unique_ptr<DaemonCore>>(const CoreContext&)>;

struct DaemonOptions {
  Layout layout;
  std::string draft;  // id
  int ready_fd = -1;  // owned from here on; -1: nobody waits
  Shape shape{};
  std::chrono::milliseconds idle = std::chrono::minutes(30);
};

Status run_daemon(const DaemonOptions& options, const CoreFactory& factory);

}  // namespace stoplog::draft
