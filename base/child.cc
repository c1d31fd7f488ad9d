// SPDX-License-Identifier: Apache-2.0
#include "base/child.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "base/sys_file.h"

namespace stoplog {
namespace {

// Everything that the child needs, made before the clone: with other threads
// alive the child may not allocate.
struct Prepared {
  std::vector<std::string> programs;  // candidates, tried in order
  std::vector<char*> argv;
  std::vector<char*> env;
  std::vector<FdMove> fds;
  std::vector<Fd> holders;  // keep raised copies open until the clone
  int cwd = -1;
  int error_pipe = -1;
  bool new_session = false;
  bool new_group = false;
  bool die_with_parent = false;
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& s : strings)
    out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> candidates(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  std::vector<std::string> out;
  for (;;) {
    size_t colon = std::min(rest.find(':'), rest.size());
    // An empty element means the current directory: never ours.
    if (colon > 0)
      out.push_back(fmt::format("{}/{}", rest.substr(0, colon), program));
    if (colon == rest.size()) return out;
    rest.remove_prefix(colon + 1);
  }
}

// Copies every source above all targets, so that the dup2s of the child cannot
// overwrite a source that is still needed.
Status raise_fds(const std::vector<FdMove>& moves, Prepared& prepared) {
  int above = 3;
  for (const FdMove& move : moves) above = std::max(above, move.to + 1);
  for (const FdMove& move : moves) {
    int copy = ::fcntl(move.from, F_DUPFD_CLOEXEC, above);
    if (copy < 0) return fail_errno(errno);
    prepared.holders.emplace_back(copy);
    prepared.fds.push_back({copy, move.to});
  }
  return {};
}

void reset_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal)
    ::sigaction(signal, &standard, nullptr);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void give_up(int pipe, int error) {
  (void)!::write(pipe, &error, sizeof error);
  ::_exit(127);
}

// In the child: async-signal-safe calls alone.
[[noreturn]] void become(const Prepared& p, pid_t parent) {
  reset_signals();
  if (p.die_with_parent) {
    if (!sys::set_parent_death_signal(SIGKILL)) give_up(p.error_pipe, EPERM);
    if (::getppid() != parent) ::_exit(127);
  }
  if (p.new_session && ::setsid() < 0) give_up(p.error_pipe, errno);
  if (p.new_group && ::setpgid(0, 0) < 0) give_up(p.error_pipe, errno);
  // Before the dup2s: those clear the mark on their targets again.
  if (!sys::close_range(3, UINT_MAX, sys::CloseRange::kMarkOnExec))
    give_up(p.error_pipe, ENOSYS);
  for (const FdMove& move : p.fds)
    if (::dup2(move.from, move.to) < 0) give_up(p.error_pipe, errno);
  if (p.cwd >= 0 && ::fchdir(p.cwd) < 0) give_up(p.error_pipe, errno);
  int error = ENOENT;
  for (const std::string& program : p.programs) {
    ::execve(program.c_str(), p.argv.data(), p.env.data());
    if (errno != ENOENT && errno != ENOTDIR) error = errno;
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) break;
  }
  give_up(p.error_pipe, error);
}

}  // namespace

Result<Child> Child::spawn(const SpawnSpec& spec) {
  if (spec.argv.empty() && !spec.program) return fail_errno(EINVAL);
  Prepared p;
  p.programs = candidates(spec.program ? *spec.program : spec.argv[0]);
  p.argv = pointers(spec.argv);
  if (spec.env) p.env = pointers(*spec.env);
  if (!spec.env)
    for (char** e = environ; *e != nullptr; ++e) p.env.push_back(*e);
  if (!spec.env) p.env.push_back(nullptr);
  TRY(raise_fds(spec.fds, p));
  p.cwd = spec.cwd;
  p.new_session = spec.new_session;
  p.new_group = spec.new_group;
  p.die_with_parent = spec.die_with_parent;
  sys::Pipe errors = TRY(sys::pipe());
  // Above every target, as the sources are.
  int above = 3;
  for (const FdMove& move : p.fds) above = std::max(above, move.to + 1);
  Fd report(::fcntl(errors.write.get(), F_DUPFD_CLOEXEC, above));
  if (!report) return fail_errno(errno);
  p.error_pipe = report.get();
  errors.write.reset();

  pid_t self = ::getpid();
  Fd pidfd;
  clone_args args{};
  args.exit_signal = SIGCHLD;
  pid_t pid = TRY(sys::clone3(args, &pidfd));
  if (pid == 0) become(p, self);
  report.reset();
  Child child(pid, std::move(pidfd));
  int error = 0;
  auto got = sys::read_all(errors.read.get(), sizeof error);
  if (got && got->size() == sizeof error) {
    got->copy(reinterpret_cast<char*>(&error), sizeof error);
    TRY(child.wait());
    return fail_errno(error, "cannot run {}",
                      p.programs.empty()
                          ? std::string("a program")
                          : (spec.program ? *spec.program : spec.argv[0]));
  }
  return child;
}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = other.pid_;
    pidfd_ = std::move(other.pidfd_);
  }
  return *this;
}

Child::~Child() { end(); }

void Child::end() {
  if (!pidfd_) return;
  (void)kill(SIGKILL);
  (void)wait();
}

Result<sys::ExitStatus> Child::wait() {
  auto exited = TRY(sys::wait_pidfd(pidfd_.get(), sys::Wait::kBlock));
  pidfd_.reset();
  return exited ? exited->status : sys::ExitStatus{};
}

Result<std::optional<sys::ExitStatus>> Child::try_wait() {
  auto exited = TRY(sys::wait_pidfd(pidfd_.get(), sys::Wait::kNow));
  if (!exited) return std::nullopt;
  pidfd_.reset();
  return exited->status;
}

Status Child::kill(int signal) {
  return sys::pidfd_send_signal(pidfd_.get(), signal);
}

}  // namespace stoplog
