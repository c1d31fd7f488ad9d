// SPDX-License-Identifier: Apache-2.0
// One line on stderr that says how far long work is; gone when it ends.
//
//   ProgressLine line("comparing");
//   options.progress = line.callback();
//
// Nothing is drawn when stderr is no terminal, and for work of less than half a
// second. Not thread-safe: called by the thread that made it.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/clock.h"

namespace stoplog::cli {

int terminal_for_errors();  // 2, or -1 when stderr is none to draw on

class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  // For tests: draws on `fd` as if it were a terminal.
  ProgressLine(std::string what, int fd, const Clock& clock);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void update(size_t done, size_t total);
  void clear();  // before anything else is written to the terminal
  // Always true: goes on. The line must outlive it.
  std::function<bool(size_t, size_t)> callback();

 private:
  std::string what_;
  int fd_;  // -1: nowhere
  const Clock& clock_;
  std::chrono::nanoseconds next_;  // not before
  bool drawn_ = false;
};

}  // namespace stoplog::cli
