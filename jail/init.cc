// SPDX-License-Identifier: Apache-2.0
#include "jail/init.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <memory>

#include "base/sys_file.h"
#include "base/sys_privilege.h"
#include "base/sys_process.h"
#include "base/unix_socket.h"
#include "jail/proc_memory.h"
#include "jail/rootfs.h"

namespace stoplog::jail {
namespace {

constexpr size_t kStackSize = 256 << 10;

class Init {
 public:
  Init(const Prepared& prepared, Fd control)
      : prepared_(prepared), control_(std::move(control)) {}
  Status prepare();
  [[noreturn]] void serve();
  void fail_with(const Error& error);

 private:
  void handle_message();
  void start(const RunRequest& request, std::vector<Fd> stdio);
  void reap();
  [[noreturn]] void finish(int status);
  void pass_signal(int number);
  void say(const std::string& data) {
    // A daemon that is gone is noticed by the poll.
    (void)send_message(control_.get(), data);
  }

  const Prepared& prepared_;
  Fd control_;
  Fd children_;  // signalfd
  Fd terminal_;
  Fd landlock_;
  std::unique_ptr<std::byte[]> stack_;  // the command's, until it execs
  pid_t command_ = -1;
};

// The command is started as vfork(2) does it, in our own memory and on a stack
// of its own while we wait: copying our page tables took as long as the rest.
struct Launch {
  const Prepared& prepared;
  const RunRequest& request;
  const std::array<int, 3>& stdio;
  int landlock;
  bool failed = false;
  EnterFailure failure{};
};

int launch(void* argument) {
  auto* self = static_cast<Launch*>(argument);
  self->failure =
      enter_command(self->prepared, self->request, self->stdio, self->landlock);
  self->failed = true;
  ::_exit(127);
}

Status Init::prepare() {
  TRY(sys::set_process_name("init"));
  if (!prepared_.leave_out.has(Wall::kDeath))
    TRY(sys::set_parent_death_signal(SIGKILL));
  if (!prepared_.leave_out.has(Wall::kRoot)) {
    TRY(simulated(prepared_.fail, Wall::kProc));
    TRY(build_proc(prepared_.proc_plan));
  }
  // A left-out wall must be left out for the command, which is our child.
  if (!prepared_.leave_out.has(Wall::kCaps)) TRY(sys::set_capabilities(0));
  if (!prepared_.leave_out.has(Wall::kSession) && ::setsid() < 0)
    return fail_errno(errno, "cannot lead a session");
  sigset_t mask;
  sigfillset(&mask);
  if (::sigprocmask(SIG_SETMASK, &mask, nullptr) < 0) return fail_errno(errno);
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  children_ = Fd(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!children_) return fail_errno(errno, "cannot watch children");
  stack_ = std::make_unique_for_overwrite<std::byte[]>(kStackSize);
  landlock_ = TRY_CTX(landlock_rules(prepared_),
                      "cannot restrict file access with Landlock");
  if (!prepared_.leave_out.has(Wall::kSeccomp))
    TRY_CTX(filter_calls(prepared_), "cannot install the system call filter");
  return {};
}

void Init::fail_with(const Error& error) { say(encode(error)); }

void Init::serve() {
  for (;;) {
    pollfd fds[2] = {{control_.get(), POLLIN, 0}, {children_.get(), POLLIN, 0}};
    if (::poll(fds, 2, -1) < 0 && errno != EINTR) ::_exit(70);
    if (fds[1].revents != 0) {
      signalfd_siginfo drained;
      while (::read(children_.get(), &drained, sizeof drained) > 0) {
      }
      reap();
    }
    if (fds[0].revents != 0) handle_message();
  }
}

void Init::handle_message() {
  auto packet = receive(control_.get());
  // Whoever held the other end is gone; leaving takes everything along.
  if (!packet || packet->data.empty()) {
    while (prepared_.leave_out.has(Wall::kDeath)) ::pause();
    ::_exit(0);
  }
  Reader reader(packet->data);
  switch (reader.kind()) {
    case Message::kRun: {
      auto request = decode_run(packet->data);
      if (!request || packet->fds.size() != 3 || command_ > 0) ::_exit(70);
      start(*request, std::move(packet->fds));
      return;
    }
    case Message::kSignal:
      pass_signal(static_cast<int>(reader.number()));
      return;
    case Message::kSegments:
      say(Writer(Message::kSegments).number(segment_memory()).data());
      return;
    default:
      ::_exit(70);
  }
}

void Init::start(const RunRequest& request, std::vector<Fd> stdio) {
  const std::array<int, 3> fds = {stdio[0].get(), stdio[1].get(),
                                  stdio[2].get()};
  if (request.controlling_terminal)
    for (Fd& fd : stdio)
      if (!terminal_ && ::isatty(fd.get()) == 1 &&
          ::ioctl(fd.get(), TIOCSCTTY, 0) == 0)
        if (auto copy = sys::dup(fd.get())) terminal_ = std::move(*copy);
  Launch it{.prepared = prepared_,
            .request = request,
            .stdio = fds,
            .landlock = landlock_.get()};
  command_ = ::clone(launch, stack_.get() + kStackSize,
                     CLONE_VM | CLONE_VFORK | SIGCHLD, &it);
  if (command_ < 0) {
    fail_with(
        Error(Code::kUnsupported, "cannot start a process in the jail", errno));
    ::_exit(70);
  }
  // Ours must not keep the command's readers waiting.
  stdio.clear();
  if (!it.failed) {
    say(Writer(Message::kStarted).data());
    return;
  }
  say(Writer(Message::kNotRun)
          .number(static_cast<uint64_t>(it.failure.what))
          .number(static_cast<uint64_t>(it.failure.err))
          .text(it.failure.text)
          .data());
  ::waitpid(command_, nullptr, 0);
  ::_exit(0);
}

void Init::reap() {
  for (;;) {
    int status = 0;
    pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
    if (pid <= 0) return;
    if (pid != command_) continue;
    if (WIFSTOPPED(status))
      say(Writer(Message::kStopped)
              .number(static_cast<uint64_t>(WSTOPSIG(status)))
              .data());
    else if (WIFCONTINUED(status))
      say(Writer(Message::kResumed).data());
    else
      finish(status);
  }
}

void Init::finish(int status) {
  // Background processes end with their command. -1 is everyone but us. Only
  // then is it said, so that nothing changes the workspace afterwards.
  const pid_t left = ::waitpid(-1, nullptr, WNOHANG);
  if (left >= 0 && !prepared_.leave_out.has(Wall::kPidNs)) {
    ::kill(-1, SIGKILL);
    while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
    }
  }
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  auto micros = [](const timeval& t) {
    return static_cast<uint64_t>(t.tv_sec) * 1000000 +
           static_cast<uint64_t>(t.tv_usec);
  };
  say(encode(
      EndReport{.status = status,
                .user_us = micros(usage.ru_utime),
                .system_us = micros(usage.ru_stime),
                .max_rss = static_cast<uint64_t>(usage.ru_maxrss) * 1024}));
  ::_exit(0);
}

void Init::pass_signal(int number) {
  if (command_ <= 0 || number <= 0 || number >= NSIG) return;
  pid_t group = command_;
  // What a keyboard or a resize would send goes to the foreground group, which
  // is a job of the shell inside when there is one.
  if (terminal_ && (number == SIGINT || number == SIGQUIT ||
                    number == SIGTSTP || number == SIGCONT)) {
    pid_t foreground = ::tcgetpgrp(terminal_.get());
    if (foreground > 1) group = foreground;
  }
  ::kill(-group, number);
}

}  // namespace

void run_init(const Prepared& prepared, Fd control,
              const std::vector<Fd>& joins) {
  Init init(prepared, std::move(control));
  Status ready;
  for (const Fd& join : joins)
    if (ready) ready = sys::write_full(join.get(), "0");
  if (ready) ready = init.prepare();
  if (!ready) {
    init.fail_with(std::move(ready.error())
                       .context("cannot prepare the jail")
                       .as(Code::kUnsupported));
    ::_exit(70);
  }
  init.serve();
}

}  // namespace stoplog::jail
