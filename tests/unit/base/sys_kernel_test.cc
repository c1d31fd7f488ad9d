// SPDX-License-Identifier: Apache-2.0
#include "base/sys_kernel.h"

#include "catch_shim.h"

namespace stoplog::sys {
namespace {

TEST_CASE("a kernel release is read up to its second number") {
  CHECK(parse_kernel_release("6.1.0-18-amd64") == KernelVersion{6, 1});
  CHECK(parse_kernel_release("5.19-rc1") == KernelVersion{5, 19});
  CHECK(parse_kernel_release("6.18") == KernelVersion{6, 18});
  for (const char* bad : {"", "6", "6.", "six.one", ".1", "6-1"})
    CHECK(parse_kernel_release(bad) == KernelVersion{0, 0});
}

TEST_CASE("the kernel beneath the tests is new enough") {
  CHECK(kernel_version() >= kOldestKernel);
  CHECK(need_kernel());
  CHECK(KernelVersion{5, 18} < kOldestKernel);
  CHECK(KernelVersion{6, 0} > kOldestKernel);
}

}  // namespace
}  // namespace stoplog::sys
