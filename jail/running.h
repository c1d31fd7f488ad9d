// SPDX-License-Identifier: Apache-2.0
// Running: one command in the jail, from spawn() until supervise() has told
// its outcome. Shared by the thread that supervises it and by whoever may end
// it; kill() and signal() may come from any thread, the rest is supervise()'s.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "jail/cgroup.h"
#include "jail/outcome.h"
#include "jail/spec.h"

namespace stoplog::jail {

class Running {
 public:
  Running() = default;
  // Whatever still lives inside is killed, and its control groups go.
  ~Running();
  // Ends everything inside, now. The first reason given is the one reported.
  void kill(KillReason reason, uint64_t limit = 0, uint64_t measured = 0);
  // A signal for the command, as from a keyboard or kill(1).
  Status signal(int number);

  const std::vector<std::string>& argv() const { return argv_; }
  // init's, as the host sees it.
  pid_t pid() const { return pid_; }
  // init's too; and its control group of version 2, -1 where there is none.
  // Both are valid as long as this is.
  int pidfd() const { return pidfd_.get(); }
  int group() const { return group_.get(); }
  std::chrono::steady_clock::time_point started() const { return started_; }

 private:
  friend class Zygote;
  friend class Supervisor;
  struct Ended {
    KillReason reason = KillReason::kNone;
    uint64_t limit = 0;
    uint64_t measured = 0;
  };
  Ended ended() const;
  // Sets the limits, sends the command to init and waits for exec.
  Status start(const CommandSpec& command, const std::array<int, 3>& stdio);
  Status apply_limits(const CommandSpec& command, uint64_t& max_processes);
  Status read_start(bool sent);
  // Waits for init's end; then the control groups can go.
  void clear_up();

  std::vector<std::string> argv_;
  Limits limits_;
  Held held_;
  CgroupSet cgroup_;
  std::vector<std::shared_ptr<const Fd>> memory_;  // tmpfs mounts
  Fd control_;
  Fd pidfd_;
  Fd group_;  // survives the group's removal by the supervising thread
  pid_t pid_ = -1;
  std::chrono::steady_clock::time_point started_;
  mutable std::mutex mutex_;
  Ended ended_;  // under mutex_
  std::optional<std::string> not_run_;
  int not_run_code_ = 0;
};

}  // namespace stoplog::jail
