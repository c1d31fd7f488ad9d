// SPDX-License-Identifier: Apache-2.0
#include "base/proc_stat.h"

#include "base/sys_file.h"

namespace stoplog {

char proc_state(const std::string& stat_file) {
  auto text = sys::read_file(AT_FDCWD, stat_file, 4096);
  // The name in brackets may hold anything, brackets too.
  size_t at = text ? text->rfind(") ") : std::string::npos;
  return at == std::string::npos || at + 2 >= text->size() ? '\0'
                                                           : (*text)[at + 2];
}

}  // namespace stoplog
