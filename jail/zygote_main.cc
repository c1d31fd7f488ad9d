// SPDX-License-Identifier: Apache-2.0
#include "jail/zygote_main.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys_file.h"
#include "base/sys_landlock.h"
#include "base/sys_mount.h"
#include "base/sys_namespace.h"
#include "base/sys_privilege.h"
#include "base/sys_process.h"
#include "base/unix_socket.h"
#include "jail/enter.h"
#include "jail/init.h"
#include "jail/rootfs.h"
#include "jail/wire.h"

namespace stoplog::jail {
namespace {

constexpr int kControl = 3;

// Nothing of the daemon's may stay open: above all not /dev/fuse, whose mount
// would outlive a killed daemon. `keep` is sorted.
Status close_others(std::vector<int> keep) {
  std::sort(keep.begin(), keep.end());
  unsigned first = 0;
  for (int fd : keep) {
    auto number = static_cast<unsigned>(fd);
    if (number > first)
      TRY(sys::close_range(first, number - 1, sys::CloseRange::kNow));
    first = number + 1;
  }
  return sys::close_range(first, ~0U, sys::CloseRange::kNow);
}

// The control socket at 3, /dev/null at 0 to 2: what is received later then
// lies above 2, and enter.cc relies on that.
Status tidy_descriptors(const JailSpec& spec, Fd& control) {
  Fd moved(::fcntl(control.get(), F_DUPFD_CLOEXEC, 100));
  if (!moved) return fail_errno(errno);
  std::vector<int> keep = {moved.get()};
  for (int fd : {spec.workspace_tree.mount_fd, spec.home_tree.mount_fd})
    if (fd > kControl) keep.push_back(fd);
  if (!spec.test_leave_out.has(Wall::kFds)) {
    (void)control.release();
    TRY(close_others(keep));
  }
  Fd null = TRY(sys::openat(AT_FDCWD, "/dev/null", O_RDWR));
  for (int fd = 0; fd < 3; ++fd)
    if (null.get() != fd && ::dup2(null.get(), fd) < 0)
      return fail_errno(errno);
  if (null.get() < 3) (void)null.release();
  if (spec.test_leave_out.has(Wall::kFds)) {
    control = std::move(moved);
    return {};
  }
  if (::dup3(moved.get(), kControl, O_CLOEXEC) < 0) return fail_errno(errno);
  control = Fd(kControl);
  return {};
}

// Handlers are gone by CLONE_CLEAR_SIGHAND; what was ignored still is.
void reset_signals() {
  for (int number = 1; number < SIGRTMIN; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

class ZygoteProcess {
 public:
  ZygoteProcess(ZygotePlan plan, Fd control)
      : plan_(std::move(plan)),
        spec_(plan_.spec),
        control_(std::move(control)) {}
  Status set_up();
  [[noreturn]] void serve();
  void say(const std::string& data, std::span<const int> fds = {}) {
    (void)send_message(control_.get(), data, fds);
  }

 private:
  Status wait_for_maps();
  Status set_up_namespaces();
  Status give_up_privilege();
  Status prepare_walls();
  void handle(Packet& packet);
  Status make_init(std::vector<Fd>& fds, bool into_group);
  Status open_pty();
  bool without(Wall wall) const { return spec_.test_leave_out.has(wall); }
  Status simulate(Wall wall) { return simulated(spec_.test_fail, wall); }

  ZygotePlan plan_;
  const JailSpec& spec_;
  Fd control_;
  Fd children_;
  Fd notes_;
  Prepared prepared_;
};

Status ZygoteProcess::wait_for_maps() {
  // The daemon writes the maps through our /proc entry, which belongs to root
  // while a process is not dumpable.
  TRY(sys::set_dumpable(true));
  TRY(send_message(control_.get(), Writer(Message::kHello).data()));
  const Packet packet = TRY(receive(control_.get()));
  if (packet.data.empty() || Reader(packet.data).kind() != Message::kGo)
    return fail(Code::kInternal, "the daemon went away");
  return {};
}

Status ZygoteProcess::set_up_namespaces() {
  TRY_CTX(sys::make_mounts_private(), "cannot own the mount namespace");
  if (spec_.net == Net::kNone && !without(Wall::kNetNs)) {
    TRY_CTX(simulate(Wall::kNetNs), "cannot own the network namespace");
    TRY_CTX(sys::loopback_up(), "cannot bring the loopback device up");
  }
  TRY_CTX(sys::set_host_name(spec_.hostname), "cannot set the host name");
  return {};
}

Status ZygoteProcess::give_up_privilege() {
  if (!without(Wall::kUserNsLimit)) {
    TRY_CTX(simulate(Wall::kUserNsLimit), "cannot forbid user namespaces");
    for (const UserCount& count : plan_.counts)
      TRY_CTX(set_user_count(count),
              fmt::format("cannot set user.{} in the jail", count.name));
  }
  if (!without(Wall::kKeyring))
    TRY_CTX(sys::detach_keyring(), "cannot leave the session's keyring");
  if (!without(Wall::kCaps)) {
    TRY_CTX(sys::drop_bounding_set(), "cannot drop capabilities");
    TRY_CTX(sys::lock_securebits(), "cannot lock the securebits");
    TRY_CTX(sys::set_capabilities(sys::kCapSysAdmin),
            "cannot drop capabilities");
  }
  if (!without(Wall::kNoNewPrivs)) {
    TRY_CTX(simulate(Wall::kNoNewPrivs), "cannot forbid new privileges");
    TRY_CTX(sys::set_no_new_privs(), "cannot forbid new privileges");
  }
  TRY(sys::set_dumpable(without(Wall::kUndumpable)));
  // Changes of identity clear it, so it comes last. The socket's end is the
  // other half: it covers the moment before this line.
  if (!without(Wall::kDeath)) TRY(sys::set_parent_death_signal(SIGKILL));
  return {};
}

Status ZygoteProcess::prepare_walls() {
  prepared_.leave_out = spec_.test_leave_out;
  prepared_.fail = spec_.test_fail;
  prepared_.proc_plan = plan_.proc;
  prepared_.seccomp = built_seccomp();
  if (without(Wall::kLandlock)) return {};
  prepared_.landlock = TRY(plan_landlock(spec_, sys::landlock_abi()));
  for (const LandlockRule& rule : prepared_.landlock.rules)
    prepared_.landlock_paths.push_back(
        TRY_CTX(sys::openat(AT_FDCWD, rule.path, O_PATH),
                fmt::format("cannot open {} for Landlock", rule.path)));
  return {};
}

Status ZygoteProcess::set_up() {
  reset_signals();
  TRY(tidy_descriptors(spec_, control_));
  TRY(wait_for_maps());
  TRY_CTX(sys::scrub_arguments(), "cannot clear the arguments");
  TRY(sys::set_process_name("stoplog-jail"));
  TRY(set_up_namespaces());
  OpenedPlan opened;
  if (!without(Wall::kRoot)) {
    TRY_CTX(simulate(Wall::kRoot), "cannot mount");
    opened = TRY(open_sources(spec_, std::move(plan_.root)));
  }
  const Identity& id = spec_.identity;
  if (!without(Wall::kIdentity))
    TRY_CTX(sys::become(id.uid, id.gid, plan_.privileged),
            "cannot become the jail's user");
  ::umask(0);
  BuiltRoot built;
  std::vector<std::string> left_out = std::move(opened.left_out);
  if (!without(Wall::kRoot)) built = TRY(build_root(std::move(opened)));
  TRY(prepare_walls());
  TRY(give_up_privilege());
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &mask, nullptr);
  children_ = Fd(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!children_) return fail_errno(errno, "cannot watch children");
  std::vector<int> fds;
  notes_ = std::move(built.notes);
  for (const Fd& fd : built.memory) fds.push_back(fd.get());
  return send_message(control_.get(),
                      Writer(Message::kReady).list(left_out).data(), fds);
}

void ZygoteProcess::serve() {
  for (;;) {
    pollfd fds[2] = {{control_.get(), POLLIN, 0}, {children_.get(), POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) ::_exit(70);
    if (fds[1].revents != 0) {
      signalfd_siginfo drained;
      while (::read(children_.get(), &drained, sizeof drained) > 0) {
      }
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
    }
    if (fds[0].revents == 0) continue;
    auto packet = receive(control_.get());
    if (!packet || packet->data.empty()) {
      while (without(Wall::kDeath)) ::pause();
      ::_exit(0);
    }
    handle(*packet);
  }
}

void ZygoteProcess::handle(Packet& packet) {
  Status done;
  Reader reader(packet.data);
  switch (reader.kind()) {
    case Message::kMakeInit:
      done = make_init(packet.fds, reader.number() == 2);
      break;
    case Message::kNote: {
      const std::string name = reader.text();
      // Nobody waits for an answer: a note is a courtesy.
      (void)write_note(notes_.get(), name, reader.text());
      return;
    }
    case Message::kOpenPty:
      done = open_pty();
      break;
    default:
      ::_exit(70);
  }
  if (!done) say(encode(done.error()));
}

Status ZygoteProcess::make_init(std::vector<Fd>& fds, bool into_group) {
  TRY_CTX(simulate(Wall::kPidNs), "cannot make a pid namespace");
  SocketPair pair = TRY(socket_pair(SOCK_SEQPACKET));
  clone_args args{};
  args.exit_signal = SIGCHLD;
  args.flags = CLONE_NEWNS;
  if (!without(Wall::kPidNs)) args.flags |= CLONE_NEWPID;
  // Shared memory, semaphores and queues have no owner who ends: with the
  // command goes their namespace, and they with it.
  if (!without(Wall::kIpcNs)) args.flags |= CLONE_NEWIPC;
  if (into_group && !fds.empty()) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(fds[0].get());
  }
  Fd pidfd;
  const pid_t pid =
      TRY_CTX(sys::clone3(args, &pidfd), "cannot make a pid namespace");
  if (pid == 0) {
    // What is listening at the zygote's socket must be the zygote alone.
    control_.reset();
    children_.reset();
    notes_.reset();
    pair.first.reset();
    if (into_group) fds.clear();
    run_init(prepared_, std::move(pair.second), fds);
  }
  const std::array<int, 2> out = {pair.first.get(), pidfd.get()};
  return send_message(control_.get(), Writer(Message::kMakeInit).data(), out);
}

Status ZygoteProcess::open_pty() {
  // From the jail's own devpts, so that the terminal has a name inside.
  Fd master(::open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!master) return fail_errno(errno, "cannot open a terminal");
  int unlock = 0;
  if (::ioctl(master.get(), TIOCSPTLCK, &unlock) < 0) return fail_errno(errno);
  Fd slave(::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!slave) return fail_errno(errno, "cannot open a terminal");
  const std::array<int, 2> out = {master.get(), slave.get()};
  return send_message(control_.get(), Writer(Message::kOpenPty).data(), out);
}

}  // namespace

void run_zygote(ZygotePlan plan, Fd control) {
  ZygoteProcess process(std::move(plan), std::move(control));
  if (auto ready = process.set_up(); !ready) {
    Error error = std::move(ready).error();
    // Changed in place: assigning its own result to it would empty it.
    if (error.code() == Code::kErrno) std::move(error).as(Code::kUnsupported);
    if (error.hint().empty())
      std::move(error).with_hint(
          "'stoplog doctor' tells what this machine lacks");
    process.say(encode(error));
    ::_exit(70);
  }
  process.serve();
}

}  // namespace stoplog::jail
