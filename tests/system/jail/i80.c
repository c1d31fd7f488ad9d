// SPDX-License-Identifier: Apache-2.0
// The 32-bit system call table, from a 64-bit program.
#include <stdio.h>

int main(void) {
#ifdef __x86_64__
  long r;
  fflush(stdout);
  __asm__ volatile("int $0x80" : "=a"(r) : "a"(20) : "memory");
  printf("OPEN int80 getpid=%ld\n", r);
  __asm__ volatile("int $0x80"
                   : "=a"(r)
                   : "a"(310), "b"(0x10000000L)
                   : "memory");
  if (r == 0) puts("OPEN int80 unshare");
#endif
  return 0;
}
