// SPDX-License-Identifier: Apache-2.0
// The version of the running kernel, and whether it is new enough for us.
#pragma once

#include <compare>
#include <string_view>

#include "base/result.h"

namespace stoplog::sys {

struct KernelVersion {
  int major = 0, minor = 0;
  auto operator<=>(const KernelVersion&) const = default;
};

// Landlock that knows renames across directories, the youngest part without
// which nothing may run.
inline constexpr KernelVersion kOldestKernel{5, 19};

// Of a release such as "6.1.0-18-amd64"; zeros when it is not one.
KernelVersion parse_kernel_release(std::string_view release);
KernelVersion kernel_version();

// Code::kUnsupported on a kernel older than kOldestKernel.
Status need_kernel(const KernelVersion& version = kernel_version());

}  // namespace stoplog::sys
