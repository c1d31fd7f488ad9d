// SPDX-License-Identifier: Apache-2.0
// What takes longer than a second says how far it is, on a terminal, and can be
// interrupted.
//
//   Progress progress(context.out, "exporting", total_bytes);
//   TRY(progress.at(done));    // fails once somebody pressed Ctrl-C
//
// See base/interrupt.h: without a Hold, Ctrl-C ends the process anyway.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "cli/output.h"

namespace stoplog::cli {

class Progress {
 public:
  // `total` 0: not known.
  Progress(Output& out, std::string what, uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  Status at(uint64_t done);
  // The same for what takes a function.
  std::function<Status(uint64_t)> sink() {
    return [this](uint64_t done) { return at(done); };
  }

 private:
  using Clock = std::chrono::steady_clock;
  Output& out_;
  const std::string what_;
  const uint64_t total_;
  const bool shown_;
  const Clock::time_point start_;
  Clock::time_point last_{};
  bool painted_ = false;
};

}  // namespace stoplog::cli
