// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
int main() {
  std::puts("stoplog " STOPLOG_VERSION);
  return 0;
}
