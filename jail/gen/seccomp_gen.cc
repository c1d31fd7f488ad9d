// SPDX-License-Identifier: Apache-2.0
// Writes the compiled system call filters as C++ initialisers, at build time:
// libseccomp takes 2 ms for them, more than the rest of a cold start.
#include <cstdio>

#include "jail/seccomp_policy.h"

namespace {

void print(const char* name, const std::vector<sock_filter>& program) {
  std::printf("constexpr sock_filter %s[] = {\n", name);
  for (const sock_filter& op : program)
    std::printf("    {0x%02x, %u, %u, 0x%08x},\n", op.code, op.jt, op.jf, op.k);
  std::printf("};\n");
}

}  // namespace

int main() {
  using namespace stoplog::jail;
  auto programs = compile_seccomp(seccomp_policy());
  if (!programs) {
    std::fprintf(stderr, "seccomp_gen: %s\n", programs.error().text().c_str());
    return 1;
  }
  print("kNumbers", programs->numbers);
  print("kArguments", programs->arguments);
  return 0;
}
