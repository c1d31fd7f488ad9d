// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <atomic>

#include "base/clock.h"
#include "base/escape.h"
#include "base/sys_file.h"

namespace stoplog::log {
namespace {

std::atomic<Level> g_level{Level::kWarn};
std::atomic<int> g_fd{STDERR_FILENO};

std::string_view name(Level level) {
  switch (level) {
    case Level::kError:
      return "error";
    case Level::kWarn:
      return "warn";
    case Level::kInfo:
      return "info";
    case Level::kDebug:
      return "debug";
  }
  return "?";
}

}  // namespace

void set_level(Level level) { g_level = level; }
Level level() { return g_level.load(std::memory_order_relaxed); }
void to_fd(int fd) { g_fd = fd; }

void write_line(Level level, std::string_view text) {
  if (level > g_level.load()) return;
  std::string line =
      fmt::format("{} {} {}: {}\n", rfc3339(Clock::real().now()), ::getpid(),
                  name(level), escape(text, Escape::kLine));
  (void)sys::write_full(g_fd.load(), line);
}

}  // namespace stoplog::log
