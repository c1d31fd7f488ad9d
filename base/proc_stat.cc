// SPDX-License-Identifier: Apache-2.0
#include "base/proc_stat.h"

#include <fcntl.h>
#include <signal.h>

#include <charconv>

#include "base/sys_file.h"

namespace stoplog {

char proc_state(const std::string& stat_file) {
  auto text = sys::read_file(AT_FDCWD, stat_file, 4096);
  // The name in brackets may hold anything, brackets too.
  size_t at = text ? text->rfind(") ") : std::string::npos;
  return at == std::string::npos || at + 2 >= text->size() ? '\0'
                                                           : (*text)[at + 2];
}

// status(5) has the signals as masks in hexadecimal.
bool is_killed(pid_t thread) {
  auto text =
      sys::read_file(AT_FDCWD, fmt::format("/proc/{}/status", thread), 16384);
  if (!text) return false;
  constexpr uint64_t kKill = uint64_t{1} << (SIGKILL - 1);
  for (std::string_view key : {"\nSigPnd:\t", "\nShdPnd:\t"}) {
    size_t at = text->find(key);
    if (at == std::string::npos) continue;
    uint64_t mask = 0;
    const char* from = text->data() + at + key.size();
    std::from_chars(from, text->data() + text->size(), mask, 16);
    if ((mask & kKill) != 0) return true;
  }
  return false;
}

}  // namespace stoplog
