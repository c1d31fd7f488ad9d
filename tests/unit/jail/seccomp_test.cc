// SPDX-License-Identifier: Apache-2.0
// The compiled programs are run here by a small interpreter: what a filter
// says is checked without installing it.
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/syscall.h>

#include <cstring>

#include "catch_shim.h"
#include "jail/seccomp_policy.h"

using namespace stoplog;
using namespace stoplog::jail;

namespace {

uint32_t interpret(const std::vector<sock_filter>& program,
                   const seccomp_data& data) {
  uint32_t a = 0;
  for (size_t pc = 0; pc < program.size();) {
    const sock_filter& op = program[pc++];
    auto jump = [&](bool taken) { pc += taken ? op.jt : op.jf; };
    switch (op.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&a, reinterpret_cast<const char*>(&data) + op.k, 4);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= op.k;
        break;
      case BPF_JMP | BPF_JA:
        pc += op.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        jump(a == op.k);
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        jump(a > op.k);
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        jump(a >= op.k);
        break;
      case BPF_RET | BPF_K:
        return op.k;
      default:
        FAIL("unknown instruction " << op.code);
    }
  }
  return 0;
}

struct Filter {
  SeccompPrograms programs = compile_seccomp(seccomp_policy()).value();
  uint32_t arch = seccomp_arch_native();

  // The kernel's rule: the most restrictive answer wins.
  uint32_t ask(long number, std::initializer_list<uint64_t> args = {}) const {
    seccomp_data data{};
    data.nr = static_cast<int>(number);
    data.arch = arch;
    size_t i = 0;
    for (uint64_t arg : args) data.args[i++] = arg;
    const uint32_t first = interpret(programs.numbers, data);
    const uint32_t second = interpret(programs.arguments, data);
    auto rank = [](uint32_t action) {
      return static_cast<int32_t>(action & SECCOMP_RET_ACTION_FULL);
    };
    return rank(second) < rank(first) ? second : first;
  }
  // 0 allowed, else the errno; -1 killed.
  int verdict(long number, std::initializer_list<uint64_t> args = {}) const {
    const uint32_t action = ask(number, args);
    if (action == SECCOMP_RET_ALLOW) return 0;
    if ((action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
      return static_cast<int>(action & SECCOMP_RET_DATA);
    return -1;
  }
};

}  // namespace

TEST_CASE("ordinary calls pass and privileged families are refused") {
  const Filter filter;
  for (long number : {SYS_read, SYS_openat, SYS_execve, SYS_ptrace, SYS_futex,
                      SYS_process_vm_readv, SYS_memfd_create, SYS_prctl})
    CHECK(filter.verdict(number) == 0);
  for (long number : {SYS_mount,
                      SYS_umount2,
                      SYS_open_tree,
                      SYS_move_mount,
                      SYS_fsopen,
                      SYS_mount_setattr,
                      SYS_pivot_root,
                      SYS_setns,
                      SYS_bpf,
                      SYS_keyctl,
                      SYS_add_key,
                      SYS_request_key,
                      SYS_perf_event_open,
                      SYS_userfaultfd,
                      SYS_kcmp,
                      SYS_pidfd_getfd,
                      SYS_open_by_handle_at,
                      SYS_init_module,
                      SYS_kexec_load,
                      SYS_reboot,
                      SYS_swapon,
                      SYS_syslog})
    CHECK(filter.verdict(number) == EPERM);
}

TEST_CASE("unknown numbers and what filters cannot see look absent") {
  const Filter filter;
  for (long number : {425L, 426L, 427L, 435L, 480L, 5000L})
    CHECK(filter.verdict(number) == ENOSYS);
}

TEST_CASE("foreign ABIs are killed") {
  Filter filter;
  CHECK(filter.verdict(0x40000000 | 39) == -1);
  filter.arch = AUDIT_ARCH_I386;
  CHECK(filter.verdict(20) == -1);
}

TEST_CASE("no namespace flag passes whatever else is set") {
  const Filter filter;
  for (uint64_t flag : {0x00020000U, 0x02000000U, 0x04000000U, 0x08000000U,
                        0x10000000U, 0x20000000U, 0x40000000U}) {
    CHECK(filter.verdict(SYS_clone, {flag | 17}) == EPERM);
    CHECK(filter.verdict(SYS_clone, {flag | (uint64_t{1} << 40)}) == EPERM);
    CHECK(filter.verdict(SYS_unshare, {flag}) == EPERM);
  }
  CHECK(filter.verdict(SYS_unshare, {0x80}) == EPERM);
  CHECK(filter.verdict(SYS_clone, {0x01200011}) == 0);
  CHECK(filter.verdict(SYS_unshare, {0x200}) == 0);
}

TEST_CASE("the memory of pid 1 is not asked for, not even none of it") {
  const Filter filter;
  for (long number : {SYS_process_vm_readv, SYS_process_vm_writev}) {
    CHECK(filter.verdict(number, {1, 0, 0, 0, 0, 0}) == EPERM);
    CHECK(filter.verdict(number, {(uint64_t{3} << 32) | 1, 0, 0}) == EPERM);
    CHECK(filter.verdict(number, {2, 0, 0, 0, 0, 0}) == 0);
  }
}

TEST_CASE("only the plain socket families can be opened") {
  const Filter filter;
  for (uint64_t family = 0; family < 64; ++family) {
    const bool plain = family == 1 || family == 2 || family == 10;
    CHECK(filter.verdict(SYS_socket, {family, 1, 5}) ==
          (plain ? 0 : EAFNOSUPPORT));
  }
  CHECK(filter.verdict(SYS_socket, {16, 3, 0}) == 0);
  CHECK(filter.verdict(SYS_socket, {(uint64_t{1} << 40) | 40, 1, 0}) ==
        EAFNOSUPPORT);
  for (uint64_t protocol : {33, 115, 132, 136, 256})
    for (uint64_t family : {2, 10})
      for (uint64_t high : {uint64_t{0}, uint64_t{7} << 32})
        CHECK(filter.verdict(SYS_socket, {family, 1, high | protocol}) ==
              EPROTONOSUPPORT);
  for (uint64_t protocol : {0, 1, 6, 17, 58, 262})
    CHECK(filter.verdict(SYS_socket, {2, 1, protocol}) == 0);
  for (uint64_t flags : {uint64_t{0}, uint64_t{02004000}, uint64_t{1} << 33}) {
    for (uint64_t family : {1, 2, 10, 16})
      for (uint64_t kind : {0, 4, 6, 7, 9, 10, 15})
        CHECK(filter.verdict(SYS_socket, {family, flags | kind, 0}) ==
              EPROTONOSUPPORT);
    CHECK(filter.verdict(SYS_socket, {2, flags | 5, 0}) == EPROTONOSUPPORT);
    CHECK(filter.verdict(SYS_socket, {10, flags | 5, 0}) == EPROTONOSUPPORT);
    CHECK(filter.verdict(SYS_socket, {1, flags | 5, 0}) == 0);
    for (uint64_t kind : {1, 2, 3})
      CHECK(filter.verdict(SYS_socket, {2, flags | kind, 0}) == 0);
  }
  CHECK(filter.verdict(SYS_setsockopt, {3, 6, 31}) == EPERM);  // TCP_ULP
  CHECK(filter.verdict(SYS_setsockopt, {3, 6, 1}) == 0);
  CHECK(filter.verdict(SYS_socketpair, {1, 1, 0}) == 0);
  CHECK(filter.verdict(SYS_socketpair, {30, 1, 0}) == EAFNOSUPPORT);
}

TEST_CASE("the limit of core files cannot be changed") {
  const Filter filter;
  constexpr uint64_t kHigh = uint64_t{5} << 32;
  const uint32_t done = SECCOMP_RET_ERRNO;  // of 0
  CHECK(filter.ask(SYS_setrlimit, {4, 0x1000}) == done);
  CHECK(filter.ask(SYS_setrlimit, {kHigh | 4, 0x1000}) == done);
  CHECK(filter.ask(SYS_prlimit64, {0, 4, 0x1000, 0}) == done);
  CHECK(filter.ask(SYS_prlimit64, {7, kHigh | 4, 0x1000, 0}) == done);
  CHECK(filter.verdict(SYS_prlimit64, {0, 4, 0x1000, 0x2000}) == EPERM);
  for (uint64_t resource : {0, 3, 5, 7})
    CHECK(filter.ask(SYS_prlimit64, {0, resource, 0x1000, 0}) ==
          SECCOMP_RET_ALLOW);
  CHECK(filter.ask(SYS_prlimit64, {0, 4, 0, 0x2000}) == SECCOMP_RET_ALLOW);
}

TEST_CASE("terminal injection and devices are refused by argument") {
  const Filter filter;
  for (uint64_t request : {0x5412U, 0x541cU, 0x5423U}) {
    CHECK(filter.verdict(SYS_ioctl, {0, request}) == EPERM);
    CHECK(filter.verdict(SYS_ioctl, {0, request | (uint64_t{1} << 32)}) ==
          EPERM);
  }
  CHECK(filter.verdict(SYS_ioctl, {0, 0x5401}) == 0);
  CHECK(filter.verdict(SYS_mknodat, {0, 0, 0020644}) == EPERM);
  CHECK(filter.verdict(SYS_mknodat, {0, 0, 0060644}) == EPERM);
  CHECK(filter.verdict(SYS_mknodat, {0, 0, 0010644}) == 0);
  CHECK(filter.verdict(SYS_seccomp, {1, 8}) == EPERM);
  CHECK(filter.verdict(SYS_seccomp, {1, 0}) == 0);
}

TEST_CASE("the filters that were built in are those of the policy") {
  const SeccompPrograms fresh = compile_seccomp(seccomp_policy()).value();
  const BuiltSeccomp built = built_seccomp();
  auto same = [](const std::vector<sock_filter>& a,
                 std::span<const sock_filter> b) {
    return a.size() == b.size() &&
           std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
  };
  CHECK(same(fresh.numbers, built.numbers));
  CHECK(same(fresh.arguments, built.arguments));
}
