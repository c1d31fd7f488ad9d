// SPDX-License-Identifier: Apache-2.0
// Links only when fmt_impl.cc holds what the installed fmt declares.
#include <fmt/format.h>

#include <string>

int main(int argc, char** argv) {
  fmt::memory_buffer out;
  fmt::format_to(std::back_inserter(out), "{:>5} {:08x} {:.3f} {} {:L}",
                 argv[0], argc, argc * 1.5, argc * 2.5F, argc);
  return fmt::format("{}", std::string(out.data(), out.size())).empty() ? 1 : 0;
}
