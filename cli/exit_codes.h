// SPDX-License-Identifier: Apache-2.0
// Every exit code of the program, and which error becomes which.
#pragma once

#include "base/result.h"

namespace stoplog::cli {

enum Exit : int {
  kDone = 0,
  kDifferent = 1,    // differences found, or the user declined
  kUsageError = 2,   // the command line
  kStale = 3,        // drift or stale; nothing was written
  kRefusedHere = 4,  // policy, or a danger not approved by name
  kCannotHold = 5,   // this machine cannot hold what was asked
  kFailed = 6,       // failed; names, contents and modes are as before
  kBug = 70,
  // `run`
  kLimit = 124,
  kRunFailed = 125,
  kNotExecutable = 126,
  kNotFound = 127,
  kSignalBase = 128,
  kInterrupted = 130,
};

inline int exit_code_of(const Error& error) {
  switch (error.code()) {
    case Code::kUsage:
    case Code::kInvalid:
      return kUsageError;
    case Code::kDrift:
      return kStale;
    case Code::kRefused:
      return kRefusedHere;
    case Code::kUnsupported:
      return kCannotHold;
    case Code::kErrno:
    case Code::kCorrupt:
    case Code::kRolledBack:
      return kFailed;
    case Code::kDeclined:
      return kDifferent;
    case Code::kInternal:
      return kBug;
  }
  return kBug;
}

// The same for `run`, where everything that went wrong before the command is
// 125, unless a more telling code exists.
inline int run_exit_code_of(const Error& error) {
  int code = exit_code_of(error);
  return code == kFailed || code == kBug ? kRunFailed : code;
}

}  // namespace stoplog::cli
