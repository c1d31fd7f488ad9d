// SPDX-License-Identifier: Apache-2.0
// Anonymous files that cannot change any more, for handing large messages to
// another process. The receiver checks the seals: without them the sender
// could change the content between check and use, or pass a FIFO to hang on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog {

Result<Fd> sealed_memfd(const char* name, std::string_view content);
// EPERM when it is not such a file, EFBIG when larger than `limit`.
Result<std::string> read_sealed_memfd(int fd, size_t limit);

}  // namespace stoplog
