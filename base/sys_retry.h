// SPDX-License-Identifier: Apache-2.0
// Helpers for the syscall wrappers of base/sys_*.cc and of nothing else:
// retry() repeats a call that a signal interrupted, done() turns a negative
// result into an Error from errno, sized() reads a value of unknown size.
//
//   return done(retry([&] { return ::fsync(fd); }));
#pragma once

#include <cerrno>
#include <string>

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

// The size of an xattr can change between two calls: ask until it fits.
template <typename Call>
Result<std::string> sized(Call call) {
  std::string value(256, '\0');
  for (;;) {
    ssize_t n = call(value.data(), value.size());
    if (n >= 0) {
      value.resize(static_cast<size_t>(n));
      return value;
    }
    if (errno != ERANGE) return fail_errno(errno);
    n = call(nullptr, size_t{0});
    if (n < 0) return fail_errno(errno);
    value.resize(static_cast<size_t>(n) + 64);
  }
}

}  // namespace stoplog::sys
