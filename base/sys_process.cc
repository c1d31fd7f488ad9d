// SPDX-License-Identifier: Apache-2.0
#include "base/sys_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/sys_retry.h"

// From linux/close_range.h, which newer glibc's unistd.h collides with.
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

namespace stoplog::sys {

Result<Fd> pidfd_open(pid_t pid) {
  long fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) return fail_errno(errno);
  return Fd(static_cast<int>(fd));
}

Status pidfd_send_signal(int pidfd, int signal) {
  return done(::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

Result<std::optional<Exited>> wait_pidfd(int pidfd, Wait wait) {
  siginfo_t info{};
  Exited exited;
  // __WALL: also children that were made without an exit signal.
  int options = WEXITED | __WALL | (wait == Wait::kNow ? WNOHANG : 0);
  // glibc's waitid() has no rusage; the system call does.
  long result = retry([&] {
    return ::syscall(SYS_waitid, P_PIDFD, pidfd, &info, options, &exited.usage);
  });
  if (result < 0) return fail_errno(errno);
  if (info.si_pid == 0) return std::nullopt;
  if (info.si_code == CLD_EXITED)
    exited.status.code = info.si_status;
  else
    exited.status.signal = info.si_status;
  return exited;
}

Result<pid_t> clone3(clone_args args, Fd* pidfd) {
  int fd = -1;
  if (pidfd != nullptr) {
    args.flags |= CLONE_PIDFD;
    args.pidfd = reinterpret_cast<uint64_t>(&fd);
  }
  long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return fail_errno(errno);
  if (pid > 0 && pidfd != nullptr) *pidfd = Fd(fd);
  return static_cast<pid_t>(pid);
}

Status close_range(unsigned first, unsigned last, CloseRange how) {
  unsigned flags = how == CloseRange::kMarkOnExec ? CLOSE_RANGE_CLOEXEC : 0;
  return done(::syscall(SYS_close_range, first, last, flags));
}

Status set_parent_death_signal(int signal) {
  return done(::prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0));
}

Status set_no_new_privs() {
  return done(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

Status set_dumpable(bool dumpable) {
  return done(::prctl(PR_SET_DUMPABLE, dumpable ? 1 : 0, 0, 0, 0));
}

Status set_child_subreaper() {
  return done(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0));
}

Status set_process_name(const char* name) {
  return done(::prctl(PR_SET_NAME, name, 0, 0, 0));
}

Result<Pipe> pipe(int flags) {
  int fds[2];
  if (::pipe2(fds, flags | O_CLOEXEC) < 0) return fail_errno(errno);
  return Pipe{.read = Fd(fds[0]), .write = Fd(fds[1])};
}

bool hold_standard_streams() {
  for (int fd : {0, 1, 2}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest number that is free, as open() promises.
    if (::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) return false;
  }
  return true;
}

Status set_nonblocking(int fd, bool on) {
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return fail_errno(errno);
  int wanted = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
  if (wanted != flags && ::fcntl(fd, F_SETFL, wanted) < 0)
    return fail_errno(errno);
  return {};
}

Status getrandom(std::span<std::byte> out) {
  while (!out.empty()) {
    ssize_t n = retry([&] { return ::getrandom(out.data(), out.size(), 0); });
    if (n < 0) return fail_errno(errno);
    out = out.subspan(static_cast<size_t>(n));
  }
  return {};
}

Result<bool> wait_ready(int fd, short events, int timeout_ms) {
  pollfd p{.fd = fd, .events = events, .revents = 0};
  int n = retry([&] { return ::poll(&p, 1, timeout_ms); });
  if (n < 0) return fail_errno(errno);
  return n > 0;
}

}  // namespace stoplog::sys
