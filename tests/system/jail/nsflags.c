// SPDX-License-Identifier: Apache-2.0
// Tries every namespace flag through clone, clone3 and unshare.
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void tell(const char *what, long result, unsigned long flag) {
  if (result == 0) _exit(0);
  if (result > 0) printf("OPEN %s %lx\n", what, flag);
}

int main(void) {
  const unsigned long flags[] = {0x10000000, 0x20000,   0x20000000, 0x40000000,
                                 0x8000000,  0x4000000, 0x2000000,  0x80};
  const unsigned long user = 0x10000000;
  for (int i = 0; i < 8; i++) {
    unsigned long f = flags[i] | user;
    fflush(stdout);
    tell("clone", syscall(SYS_clone, f | 17, 0, 0, 0, 0), f);
    tell("clone with a high bit",
         syscall(SYS_clone, f | 17 | (1ul << 40), 0, 0, 0, 0), f);
    uint64_t args[11] = {f, 0, 0, 0, 17};
    tell("clone3", syscall(SYS_clone3, args, sizeof args), f);
    if (syscall(SYS_unshare, f) == 0) printf("OPEN unshare %lx\n", f);
  }
  uint64_t plain[11] = {0, 0, 0, 0, 17};
  long r = syscall(SYS_clone3, plain, sizeof plain);
  if (r == 0) _exit(0);
  printf("clone3 %s\n", r < 0 && errno == ENOSYS ? "absent" : "OPEN");
  return 0;
}
