// SPDX-License-Identifier: Apache-2.0
// The screen until there is something to read on it, and the work that finds
// that.
//
//   auto work = TRY(Preparation::start([&](const auto& tell, const auto& early)
//   {
//     ...
//   }));
//   Waited waited = TRY(wait_on_screen(*work, options, signals));
//   if (waited.terminal) ...   // the screen, to go on with; null: it was quick
//   if (waited.early) ...      // what can be read while the work goes on
//
// The work runs on a thread of its own, which the destructor waits for. A
// reader who leaves does not wait: see Waited::left.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/result.h"
#include "base/sys_terminal.h"
#include "cli/review_early.h"
#include "cli/review_layout.h"
#include "cli/review_terminal.h"
#include "diff/change_set.h"

namespace stoplog::cli {

class Preparation {
 public:
  using Work = std::function<void(const diff::Progress&, const TellEarly&)>;
  static Result<std::unique_ptr<Preparation>> start(Work work);
  ~Preparation() { thread_.join(); }

  int fd() const { return ready_.get(); }  // readable when it is done
  size_t done() const { return done_; }
  size_t total() const { return total_; }
  // Readable when there is something to take early; once.
  int early_fd() const { return early_ready_.get(); }
  std::unique_ptr<EarlyList> take_early();

 private:
  Preparation(Work work, Fd ready, Fd early_ready);

  Fd ready_, early_ready_;
  std::atomic<size_t> done_ = 0, total_ = 0;
  std::mutex mutex_;
  std::unique_ptr<EarlyList> early_;  // by mutex_
  std::thread thread_;
};

struct Waited {
  std::unique_ptr<Terminal> terminal;
  std::unique_ptr<EarlyList> early;  // with a terminal; never empty
  bool left = false;  // before the work was done: leave the process
  int signal = 0;     // that it was left by
};

struct WaitOptions {
  std::string title;
  bool color = true;
};

Result<Waited> wait_on_screen(Preparation& work, const WaitOptions& options,
                              sys::SignalWatch& signals);

// What is shown meanwhile; total 0: not known yet.
Frame waiting_frame(const std::string& title, size_t done, size_t total,
                    int columns, int rows);

}  // namespace stoplog::cli
