// SPDX-License-Identifier: Apache-2.0
// One line on stderr that says what is being waited for and how long already,
// where nobody tells how far it is; gone when it ends.
//
//   WaitLine line("rolling back");
//   ... a call that may take long ...
//   line.clear();
//
// Nothing is drawn when stderr is no terminal, and for work of less than a
// second. Drawn by a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace stoplog::cli {

class WaitLine {
 public:
  explicit WaitLine(std::string what);
  // For tests: draws on `fd` as if it were a terminal, every `step`.
  WaitLine(std::string what, int fd, std::chrono::milliseconds step);
  ~WaitLine() { clear(); }
  WaitLine(const WaitLine&) = delete;
  WaitLine& operator=(const WaitLine&) = delete;

  void clear();  // before anything else is written to the terminal

 private:
  void draw();

  const std::string what_;
  const int fd_;  // -1: nowhere
  const std::chrono::milliseconds step_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;  // by mutex_
  std::thread thread_;
};

}  // namespace stoplog::cli
