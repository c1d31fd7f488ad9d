// SPDX-License-Identifier: Apache-2.0
// A loop over independent items on a few threads. The calling thread works
// too; returns when all are done, with the error of the smallest index that
// failed, so that the outcome does not depend on timing.
//
//   TRY(parallel_for(items.size(), threads, [&](size_t i) { ... }));
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace stoplog {

// 0 becomes the machine's number of cores, at most 4.
unsigned thread_count(unsigned asked);

// `tell`, when set, is called on the calling thread after each of its items
// with how many items were begun.
Status parallel_for(size_t count, unsigned threads,
                    const std::function<Status(size_t)>& work,
                    const std::function<void(size_t)>& tell = {});

}  // namespace stoplog
