// SPDX-License-Identifier: Apache-2.0
// libgit2's doors to a network and to the name service, shut: with these the
// linker takes neither its HTTP, SSH and TLS code nor the libraries beneath.
// Nobody here fetches, and HOME says where the user's configuration is.
// Definitions: for one source of a program (diff/git_library.cc), and for the
// trial whether the installed libgit2 can be linked so (cmake/git2_try.cc).
#pragma once

#include <git2.h>
#include <pwd.h>

#include <cerrno>

extern "C" {
int git_smart_subtransport_http() { return GIT_ERROR; }
int git_smart_subtransport_ssh() { return GIT_ERROR; }
int git_transport_ssh_with_paths() { return GIT_ERROR; }
int git_transport_ssh_global_init() { return 0; }
int git_mbedtls_stream_global_init() { return 0; }
int git_mbedtls_stream_new() { return GIT_ERROR; }
int git_mbedtls_stream_wrap() { return GIT_ERROR; }
int git_mbedtls__set_cert_location() { return GIT_ERROR; }
int git_socket_stream_new() { return GIT_ERROR; }
bool git_http__expect_continue = false;
int getpwuid_r(unsigned, passwd*, char*, size_t, passwd** found) {
  *found = nullptr;
  return ENOENT;
}
}
