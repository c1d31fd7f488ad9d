// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_guard.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/sys_fuse.h"
#include "base/sys_process.h"

namespace stoplog::fs {
namespace {

// Requests are refused by the kernel's own rule when the buffer is smaller than
// the largest write. Untouched, it costs nothing.
alignas(4096) std::array<std::byte, (1u << 20) + (64u << 10)> g_request;

bool wants_no_reply(uint32_t opcode) {
  return opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET;
}

// False: the connection is gone.
bool refuse_one(int device) {
  ssize_t n = ::read(device, g_request.data(), g_request.size());
  if (n < 0) return errno == EAGAIN || errno == EINTR || errno == ENOENT;
  fuse_in_header in{};
  if (static_cast<size_t>(n) < sizeof in) return true;
  std::memcpy(&in, g_request.data(), sizeof in);
  if (wants_no_reply(in.opcode)) return true;
  fuse_out_header out{};
  out.len = sizeof out;
  out.error = -ENOTCONN;
  out.unique = in.unique;
  static_cast<void>(!::write(device, &out, sizeof out));
  return true;
}

struct Inherited {
  int device;
  int life;
  int daemon;  // pidfd
  int abort;   // of fusectl, or -1
};

bool is_ours_to_force(const Mounted& mounted) {
  return mounted.way == Way::kUserNamespace && mounted.minor != 0;
}

// Nothing else that may be mounted there by now is touched.
void force(const Mounted& mounted) {
  auto mounts = sys::list_mounts();
  if (!mounts) return;
  auto ours = our_mounts(*mounts, mounted.path);
  if (!ours.empty() && ours.front().minor == mounted.minor)
    static_cast<void>(sys::umount(mounted.path, MNT_FORCE));
}

// The process had one thread when it forked this one. Descriptors move to 0-3,
// so that all others can be closed: a lock of the daemon's must not live on in
// here.
[[noreturn]] void guard(Inherited fds, const Mounted* forced) {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  constexpr int kHigh = 500;  // above whatever is in use in 0-3
  int device = ::fcntl(fds.device, F_DUPFD, kHigh);
  int life = ::fcntl(fds.life, F_DUPFD, kHigh);
  int daemon = ::fcntl(fds.daemon, F_DUPFD, kHigh);
  int abort = fds.abort < 0 ? -1 : ::fcntl(fds.abort, F_DUPFD, kHigh);
  ::dup2(device, 0);
  ::dup2(life, 1);
  ::dup2(daemon, 2);
  if (abort >= 0) ::dup2(abort, 3);
  static_cast<void>(
      sys::close_range(abort < 0 ? 3 : 4, ~0u, sys::CloseRange::kNow));
  static_cast<void>(sys::set_process_name("stoplog-guard"));
  static_cast<void>(!::chdir("/"));
  char byte = 0;
  ssize_t n = 0;
  do {
    n = ::read(1, &byte, 1);
  } while (n < 0 && errno == EINTR);
  if (n != 0) ::_exit(0);
  if (abort >= 0)
    static_cast<void>(!::write(3, "1", 1));
  else if (forced != nullptr)
    force(*forced);
  static_cast<void>(sys::set_nonblocking(0, true));
  std::array<pollfd, 2> waiting{pollfd{0, POLLIN, 0}, pollfd{2, POLLIN, 0}};
  for (;;) {
    if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
    if (waiting[1].revents != 0) ::_exit(0);
    if ((waiting[0].revents & (POLLERR | POLLHUP)) != 0) ::_exit(0);
    if (waiting[0].revents != 0 && !refuse_one(0)) ::_exit(0);
  }
}

}  // namespace

Result<MountGuard> MountGuard::start(const Mounted& mounted, Abort abort) {
  auto clone = sys::clone_fuse_device(mounted.device.get());
  if (!clone) return MountGuard();
  sys::Pipe life = TRY(sys::pipe());
  Fd self = TRY(sys::pidfd_open(::getpid()));
  Fd control;
  const Mounted* forced = nullptr;
  if (abort == Abort::kIfPossible) {
    if (auto opened = sys::open_fuse_abort(mounted.minor))
      control = std::move(*opened);
    else if (is_ours_to_force(mounted))
      forced = &mounted;
  }
  MountGuard out;
  out.can_abort_ = control || forced != nullptr;
  // No exit signal: the daemon's own waiting for children must not find it.
  pid_t pid = TRY(sys::clone3(clone_args{}, &out.pidfd_));
  if (pid == 0)
    guard({clone->get(), life.read.get(), self.get(), control.get()}, forced);
  out.life_ = std::move(life.write);
  return out;
}

void MountGuard::end() {
  if (!pidfd_) return;
  static_cast<void>(!::write(life_.get(), "q", 1));
  static_cast<void>(sys::wait_pidfd(pidfd_.get(), sys::Wait::kBlock));
  pidfd_.reset();
  life_.reset();
}

}  // namespace stoplog::fs
