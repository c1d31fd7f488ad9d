// SPDX-License-Identifier: Apache-2.0
// Warmer: the process that walks a draft's mount in the background (fs/warm.h).
//
//   warmer.start(mount_path);  ...  warmer.stop();
//
// Half a second after the mount, at the lowest priority: a draft that lives
// for one short command has none, and a command that wants the processors has
// them. It is a help, so nothing here fails. It ends with the daemon.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"

namespace stoplog::draft {

class Warmer {
 public:
  Warmer() = default;
  ~Warmer() { stop(); }
  Warmer(const Warmer&) = delete;
  Warmer& operator=(const Warmer&) = delete;

  // Contents too, or names alone? `told` is given the process before it reads.
  void start(const std::string& mount, bool contents,
             std::function<void(pid_t)> told);
  // Before the mount ends. Waits until the process is gone.
  void stop();

 private:
  void run(const std::string& mount, bool contents,
           const std::function<void(pid_t)>& told);

  std::thread thread_;
  std::mutex mutex_;  // protects stopping_ and process_
  std::condition_variable wake_;
  bool stopping_ = false;
  int process_ = -1;  // pidfd, while it runs
};

// In that process.
Status warm_here(const std::string& mount, bool contents);

}  // namespace stoplog::draft
