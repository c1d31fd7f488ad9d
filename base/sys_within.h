// SPDX-License-Identifier: Apache-2.0
// Opening what lies beneath a directory and on the same mount: what is mounted
// there is not looked at, for it may hang.
#pragma once

#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog::sys {

// As open_beneath(); EXDEV where another mount begins. O_NOATIME where the
// kernel allows it.
Result<Fd> open_within(int dir, std::string_view path, int flags);

}  // namespace stoplog::sys
