// SPDX-License-Identifier: Apache-2.0
// Two helpers for the syscall wrappers of base/sys_*.cc and of nothing else:
// retry() repeats a call that a signal interrupted, done() turns a negative
// result into an Error from errno.
//
//   return done(retry([&] { return ::fsync(fd); }));
#pragma once

#include <cerrno>

#include "base/result.h"

namespace stoplog::sys {

template <typename Call>
auto retry(Call call) {
  decltype(call()) result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

template <typename Number>
Status done(Number result) {
  if (result < 0) return fail_errno(errno);
  return {};
}

}  // namespace stoplog::sys
