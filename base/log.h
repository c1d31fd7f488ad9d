// SPDX-License-Identifier: Apache-2.0
// Log lines for the daemon and for trouble, not for results.
//
//   log::set_level(log::Level::kDebug); log::to_fd(file.get());
//   log::warn("cannot watch {}: {}", path, error.text());
//
// One line is one write(2), so that lines of several threads and processes do
// not mix: "2026-11-16T07:00:00.123Z 4711 warn: text". Control characters and
// invisible ones are escaped: names in it are hostile. Goes to stderr unless
// told otherwise; the fd is borrowed. Any thread; not for signal handlers
// (fmt allocates). Never fails: a lost log line is no reason to stop.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace stoplog::log {

enum class Level { kError, kWarn, kInfo, kDebug };

void set_level(Level level);  // default: kWarn
Level level();
void to_fd(int fd);
void write_line(Level level, std::string_view text);

template <typename... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write_line(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (level() >= Level::kWarn)
    write_line(Level::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (level() >= Level::kInfo)
    write_line(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (level() >= Level::kDebug)
    write_line(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace stoplog::log
