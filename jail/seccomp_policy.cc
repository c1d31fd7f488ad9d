// SPDX-License-Identifier: Apache-2.0
#include "jail/seccomp_policy.h"

#include <fcntl.h>
#include <linux/in.h>
#include <linux/seccomp.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>

#include <array>

namespace stoplog::jail {
namespace {

constexpr std::array kAllowed = {
    "accept", "accept4", "access", "adjtimex", "alarm", "arch_prctl", "bind",
    "brk", "capget", "capset", "chdir", "chmod", "chown", "clock_adjtime",
    "clock_getres", "clock_gettime", "clock_nanosleep", "clone", "close",
    "close_range", "connect", "copy_file_range", "creat", "dup", "dup2", "dup3",
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2",
    "epoll_wait", "eventfd", "eventfd2", "execve", "execveat", "exit",
    "exit_group", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir",
    "fchmod", "fchmodat", "fchown", "fchownat", "fcntl", "fdatasync",
    "fgetxattr", "flistxattr", "flock", "fork", "fremovexattr", "fsetxattr",
    "fstat", "fstatfs", "fsync", "ftruncate", "futex", "futex_waitv",
    "futimesat", "get_mempolicy", "get_robust_list", "get_thread_area",
    "getcpu", "getcwd", "getdents", "getdents64", "getegid", "geteuid",
    "getgid", "getgroups", "getitimer", "getpeername", "getpgid", "getpgrp",
    "getpid", "getppid", "getpriority", "getrandom", "getresgid", "getresuid",
    "getrlimit", "getrusage", "getsid", "getsockname", "getsockopt", "gettid",
    "gettimeofday", "getuid", "getxattr", "inotify_add_watch", "inotify_init",
    "inotify_init1", "inotify_rm_watch", "ioctl", "ioprio_get", "ioprio_set",
    "kill", "landlock_add_rule", "landlock_create_ruleset",
    "landlock_restrict_self", "lchown", "lgetxattr", "link", "linkat", "listen",
    "listxattr", "llistxattr", "lremovexattr", "lseek", "lsetxattr", "lstat",
    "madvise", "mbind", "membarrier", "memfd_create", "mincore", "mkdir",
    "mkdirat", "mknod", "mknodat", "mlock", "mlock2", "mlockall", "mmap",
    "mprotect", "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive",
    "mq_timedsend", "mq_unlink", "mremap", "msgctl", "msgget", "msgrcv",
    "msgsnd", "msync", "munlock", "munlockall", "munmap", "name_to_handle_at",
    "nanosleep", "newfstatat", "open", "openat", "openat2", "pause",
    "personality", "pidfd_open", "pidfd_send_signal", "pipe", "pipe2",
    "pkey_alloc", "pkey_free", "pkey_mprotect", "poll", "ppoll", "prctl",
    "pread64", "preadv", "preadv2", "prlimit64", "process_madvise",
    "process_vm_readv", "process_vm_writev", "pselect6", "ptrace", "pwrite64",
    "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat",
    "readv", "recvfrom", "recvmmsg", "recvmsg", "remap_file_pages",
    "removexattr", "rename", "renameat", "renameat2", "restart_syscall",
    "rmdir", "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
    "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
    "rt_tgsigqueueinfo", "sched_get_priority_max", "sched_get_priority_min",
    "sched_getaffinity", "sched_getattr", "sched_getparam",
    "sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity",
    "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield",
    "seccomp", "select", "semctl", "semget", "semop", "semtimedop", "sendfile",
    "sendmmsg", "sendmsg", "sendto", "set_mempolicy", "set_mempolicy_home_node",
    "set_robust_list", "set_thread_area", "set_tid_address", "setfsgid",
    "setfsuid", "setgid", "setgroups", "setitimer", "setpgid", "setpriority",
    "setregid", "setresgid", "setresuid", "setreuid", "setrlimit", "setsid",
    "setsockopt", "setuid", "setxattr", "shmat", "shmctl", "shmdt", "shmget",
    "shutdown", "sigaltstack", "signalfd", "signalfd4", "socket", "socketpair",
    "splice", "stat", "statfs", "statx", "symlink", "symlinkat", "sync",
    "sync_file_range", "syncfs", "sysinfo", "tee", "tgkill", "time",
    "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime",
    "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime",
    "times", "tkill", "truncate", "umask", "uname", "unlink", "unlinkat",
    "unshare", "utime", "utimensat", "utimes", "vfork", "vmsplice", "wait4",
    "waitid", "write", "writev",
    // Not on every architecture, or newer than some headers:
    "fchmodat2", "cachestat", "mseal", "futex_waitv", "arm_fadvise64_64",
    "sync_file_range2", "riscv_flush_icache", "riscv_hwprobe"};

// Reaches into the kernel, other namespaces, mounts, the clock, other people's
// keys, or speculation aids; none works without privilege, all have a history.
constexpr std::array kDenied = {"acct",
                                "add_key",
                                "bpf",
                                "chroot",
                                "clock_settime",
                                "delete_module",
                                "fanotify_init",
                                "fanotify_mark",
                                "finit_module",
                                "fsconfig",
                                "fsmount",
                                "fsopen",
                                "fspick",
                                "init_module",
                                "ioperm",
                                "iopl",
                                "kcmp",
                                "kexec_file_load",
                                "kexec_load",
                                "keyctl",
                                "lookup_dcookie",
                                "memfd_secret",
                                "migrate_pages",
                                "mount",
                                "mount_setattr",
                                "move_mount",
                                "move_pages",
                                "nfsservctl",
                                "open_by_handle_at",
                                "open_tree",
                                "perf_event_open",
                                "pidfd_getfd",
                                "pivot_root",
                                "process_mrelease",
                                "quotactl",
                                "quotactl_fd",
                                "reboot",
                                "request_key",
                                "setdomainname",
                                "sethostname",
                                "setns",
                                "settimeofday",
                                "swapoff",
                                "swapon",
                                "syslog",
                                "umount2",
                                "userfaultfd",
                                "vhangup"};

// Contexts of asynchronous I/O come from one store of the whole machine
// (fs.aio-max-nr), which nothing divides.
constexpr std::array kAbsent = {
    "clone3",         "io_cancel",      "io_destroy",
    "io_getevents",   "io_pgetevents",  "io_setup",
    "io_submit",      "io_uring_enter", "io_uring_register",
    "io_uring_setup", "modify_ldt"};

using Op = CallTest::Op;

// All namespace flags of clone(2); CLONE_NEWTIME shares its bit with the exit
// signal there and exists for unshare(2) only.
constexpr uint64_t kCloneNewTime = 0x80;
constexpr uint64_t kProtocolSmc = 256;  // Linux 6.11
constexpr uint64_t kSocketKinds = 0xf;  // the rest are flags
constexpr std::array<uint64_t, 7> kNamespaceFlags = {
    CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
    CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

CallTest has_bit(unsigned argument, uint64_t bit) {
  return {
      .argument = argument, .op = Op::kMaskedEqual, .value = bit, .mask = bit};
}

// The kernel looks at the low 32 bits alone, so the test must too.
CallTest low_word(unsigned argument, uint64_t value) {
  return {.argument = argument,
          .op = Op::kMaskedEqual,
          .value = value,
          .mask = 0xffffffff};
}

void add_namespaces(std::vector<CallRule>& rules) {
#if defined(__s390__)
  constexpr unsigned kFlags = 1;
#else
  constexpr unsigned kFlags = 0;
#endif
  for (uint64_t flag : kNamespaceFlags) {
    rules.push_back({"clone", CallAction::kEperm, {has_bit(kFlags, flag)}});
    rules.push_back({"unshare", CallAction::kEperm, {has_bit(0, flag)}});
  }
  rules.push_back({"unshare", CallAction::kEperm, {has_bit(0, kCloneNewTime)}});
}

void add_sockets(std::vector<CallRule>& rules) {
  // UNIX, INET, INET6 and NETLINK_ROUTE. vsock and Bluetooth know nothing of
  // network namespaces. Everything above NETLINK at once, 64-bit compares.
  static_assert(AF_UNIX == 1 && AF_INET == 2 && AF_INET6 == 10 &&
                AF_NETLINK == 16);
  auto deny = [&](const char* call, CallTest test) {
    rules.push_back({call, CallAction::kEafnosupport, {test}});
  };
  for (uint64_t family : {0, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15})
    deny("socket", {.argument = 0, .op = Op::kEqual, .value = family});
  deny("socket", {.argument = 0, .op = Op::kGreater, .value = AF_NETLINK});
  rules.push_back({"socket",
                   CallAction::kEafnosupport,
                   {{.argument = 0, .op = Op::kEqual, .value = AF_NETLINK},
                    {.argument = 2, .op = Op::kNotEqual, .value = 0}}});
  // What refuses AF_SMC must refuse SMC beneath AF_INET, too; the kernel loads
  // modules for whoever asks for one of these.
  for (uint64_t protocol :
       {uint64_t{IPPROTO_DCCP}, uint64_t{IPPROTO_L2TP}, uint64_t{IPPROTO_SCTP},
        uint64_t{IPPROTO_UDPLITE}, kProtocolSmc})
    rules.push_back(
        {"socket", CallAction::kEprotonosupport, {low_word(2, protocol)}});
  // A kind of socket is another door: SOCK_DCCP and SOCK_SEQPACKET name their
  // protocol themselves, SOCK_PACKET beneath INET is the family PACKET.
  auto of_kind = [](uint64_t kind) {
    return CallTest{.argument = 1,
                    .op = Op::kMaskedEqual,
                    .value = kind,
                    .mask = kSocketKinds};
  };
  for (uint64_t kind : {0, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
    rules.push_back({"socket", CallAction::kEprotonosupport, {of_kind(kind)}});
  for (uint64_t family : {AF_INET, AF_INET6})
    rules.push_back({"socket",
                     CallAction::kEprotonosupport,
                     {low_word(0, family), of_kind(SOCK_SEQPACKET)}});
  deny("socketpair", {.argument = 0, .op = Op::kEqual, .value = 0});
  deny("socketpair", {.argument = 0, .op = Op::kGreater, .value = AF_UNIX});
}

// A core file that goes to a program (systemd-coredump, apport) is made by root
// outside of the jail, with no limit of ours; a hard limit of 0 does not forbid
// it, only 1 does (core(5)), and whoever has 1 may lower it to 0.
// Programs forbid core files for their secrets' sake and end when they cannot:
// they hear that it is done, which it is.
void add_core_files(std::vector<CallRule>& rules) {
  const CallTest core = low_word(1, RLIMIT_CORE);
  const CallTest sets{.argument = 2, .op = Op::kNotEqual, .value = 0};
  const CallTest asks{.argument = 3, .op = Op::kNotEqual, .value = 0};
  const CallTest asks_not{.argument = 3, .op = Op::kEqual, .value = 0};
  rules.push_back(
      {"setrlimit", CallAction::kIgnore, {low_word(0, RLIMIT_CORE)}});
  rules.push_back({"prlimit64", CallAction::kIgnore, {core, sets, asks_not}});
  rules.push_back({"prlimit64", CallAction::kEperm, {core, sets, asks}});
}

void add_arguments(std::vector<CallRule>& rules) {
  add_namespaces(rules);
  add_sockets(rules);
  add_core_files(rules);
  constexpr uint64_t kTioclinux = 0x541c;
  for (uint64_t request : {uint64_t{TIOCSTI}, kTioclinux, uint64_t{TIOCSETD}})
    rules.push_back({"ioctl", CallAction::kEperm, {low_word(1, request)}});
  // Its not being dumpable refuses it, too, but not where nothing is copied.
  for (const char* call : {"process_vm_readv", "process_vm_writev"})
    rules.push_back({call, CallAction::kEperm, {low_word(0, 1)}});
  // A listener would let one process answer for the system calls of another.
  rules.push_back({"seccomp",
                   CallAction::kEperm,
                   {has_bit(1, SECCOMP_FILTER_FLAG_NEW_LISTENER)}});
  // Compiled filters of all unprivileged programs share one store
  // (bpf_jit_limit); full, browsers and services could not lock themselves in.
  for (uint64_t option :
       {uint64_t{SO_ATTACH_FILTER}, uint64_t{SO_ATTACH_BPF},
        uint64_t{SO_ATTACH_REUSEPORT_CBPF}, uint64_t{SO_ATTACH_REUSEPORT_EBPF}})
    rules.push_back({"setsockopt",
                     CallAction::kEperm,
                     {low_word(1, SOL_SOCKET), low_word(2, option)}});
  // Kernel TLS, ESP and SMC over a stream of TCP.
  rules.push_back({"setsockopt",
                   CallAction::kEperm,
                   {low_word(1, IPPROTO_TCP), low_word(2, TCP_ULP)}});
  // Whoever opens a leased file for writing, outside, waits for its holder.
  rules.push_back({"fcntl", CallAction::kEperm, {low_word(1, F_SETLEASE)}});
  // 0:0 is an overlay whiteout and needs no privilege.
  for (uint64_t type : {uint64_t{S_IFCHR}, uint64_t{S_IFBLK}}) {
    CallTest test{.op = Op::kMaskedEqual, .value = type, .mask = S_IFMT};
    test.argument = 1;
    rules.push_back({"mknod", CallAction::kEperm, {test}});
    test.argument = 2;
    rules.push_back({"mknodat", CallAction::kEperm, {test}});
  }
}

}  // namespace

std::vector<CallRule> seccomp_policy() {
  std::vector<CallRule> rules;
  for (const char* call : kAllowed)
    rules.push_back({call, CallAction::kAllow, {}});
  for (const char* call : kDenied)
    rules.push_back({call, CallAction::kEperm, {}});
  for (const char* call : kAbsent)
    rules.push_back({call, CallAction::kEnosys, {}});
  add_arguments(rules);
  return rules;
}

std::string describe(const CallRule& rule) {
  static constexpr std::array kActions = {
      "allow", "EPERM", "ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ignore"};
  std::string text = fmt::format(
      "{} {}", kActions[static_cast<size_t>(rule.action)], rule.call);
  const char* join = " when";
  for (const CallTest& test : rule.tests) {
    text += fmt::format("{} arg{}", join, test.argument);
    join = " and";
    switch (test.op) {
      case Op::kEqual:
        text += fmt::format(" == {:#x}", test.value);
        break;
      case Op::kNotEqual:
        text += fmt::format(" != {:#x}", test.value);
        break;
      case Op::kGreater:
        text += fmt::format(" > {:#x}", test.value);
        break;
      case Op::kMaskedEqual:
        text += fmt::format(" & {:#x} == {:#x}", test.mask, test.value);
        break;
    }
  }
  return text;
}

}  // namespace stoplog::jail
