// SPDX-License-Identifier: Apache-2.0
// Tries the mount calls that take file descriptors.
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void) {
  char attr[64] = {0};
  if (syscall(428, -100, "/", 1) >= 0) puts("OPEN open_tree");
  if (syscall(430, "tmpfs", 0) >= 0) puts("OPEN fsopen");
  if (syscall(433, -100, "/", 0) >= 0) puts("OPEN fspick");
  if (syscall(429, -100, "/tmp", -100, "/mnt", 0) == 0) puts("OPEN move_mount");
  if (syscall(442, -100, "/", 0, attr, 32) == 0) puts("OPEN mount_setattr");
  return 0;
}
