// SPDX-License-Identifier: Apache-2.0
// libgit2, started at the first call that needs it and left running to the end
// of the process. What of it speaks to a network is not in the program.
//
//   TRY(start_libgit2());
//   if (git_diff_buffers(...) != 0) return fail(..., libgit2_error());
#pragma once

#include <git2.h>

#include <string>

#include "base/result.h"

namespace stoplog::diff {

// Code::kUnsupported when it does not start. Thread-safe.
Result<void> start_libgit2();
// What libgit2 says of its last failure in this thread.
std::string libgit2_error();

}  // namespace stoplog::diff
