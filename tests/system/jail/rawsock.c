// SPDX-License-Identifier: Apache-2.0
// Given the file capability CAP_NET_RAW, opens what only that may open.
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

int main(void) {
  if (socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) >= 0) puts("SUCCESS");
  return 0;
}
