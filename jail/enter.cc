// SPDX-License-Identifier: Apache-2.0
#include "jail/enter.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys_file.h"
#include "base/sys_landlock.h"
#include "base/sys_privilege.h"
#include "base/sys_process.h"
#include "jail/user_counts.h"

namespace stoplog::jail {
namespace {

Status set_limit(__rlimit_resource resource, uint64_t soft, uint64_t hard) {
  const rlimit limit{.rlim_cur = soft, .rlim_max = hard};
  if (::setrlimit(resource, &limit) < 0) return fail_errno(errno);
  return {};
}

// The filter keeps it as it is, and says why it is not 0. Where the caller's
// own hard limit is, nobody without privilege can raise it.
Status forbid_core_files() {
  rlimit core{};
  if (::getrlimit(RLIMIT_CORE, &core) < 0) return fail_errno(errno);
  const uint64_t most = std::min<uint64_t>(core.rlim_max, 1);
  return set_limit(RLIMIT_CORE, most, most);
}

// Last of all: the walls themselves open more files than a command may.
Status limit_open_files(const RunRequest& request) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) < 0) return fail_errno(errno);
  if (request.max_files != 0)
    files.rlim_max = std::min<uint64_t>(files.rlim_max, request.max_files);
  // 1024 is what programs that still use select(2) can live with; those that
  // want more raise it themselves.
  const uint64_t soft = request.max_files != 0
                            ? files.rlim_max
                            : std::min<uint64_t>(files.rlim_max, 1024);
  return set_limit(RLIMIT_NOFILE, soft, files.rlim_max);
}

Status set_limits(const RunRequest& request) {
  // Members of "audio" or "realtime" may have them: the jail's loops would then
  // go before all else on the machine.
  TRY(set_limit(RLIMIT_RTPRIO, 0, 0));
  TRY(set_limit(RLIMIT_NICE, 0, 0));
  if (request.max_processes != 0) {
    rlimit processes{};
    if (::getrlimit(RLIMIT_NPROC, &processes) < 0) return fail_errno(errno);
    const uint64_t most =
        std::min<uint64_t>(processes.rlim_max, request.max_processes);
    TRY(set_limit(RLIMIT_NPROC, most, most));
  }
  return limit_shares();
}

Status restrict_files(const Prepared& prepared, int landlock) {
  TRY(simulated(prepared.fail, Wall::kLandlock));
  return sys::landlock_restrict_self(landlock);
}

// The streams, at 0 to 2. All three came in above 2, so none overwrites
// another.
Status place_streams(const std::array<int, 3>& stdio) {
  for (int i = 0; i < 3; ++i)
    if (::dup2(stdio[static_cast<size_t>(i)], i) < 0) return fail_errno(errno);
  return {};
}

// The zygote has reset all handlers; here only the mask is init's.
void unblock_signals() {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void take_foreground() {
  // From a background group tcsetpgrp raises SIGTTOU; it is blocked here still.
  ::setpgid(0, 0);
  for (int fd = 0; fd < 3; ++fd)
    if (::isatty(fd) == 1 && ::tcsetpgrp(fd, ::getpid()) == 0) return;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (const std::string& text : strings)
    out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

std::string path_of(const std::vector<std::string>& env) {
  for (const std::string& entry : env)
    if (entry.starts_with("PATH=")) return entry.substr(5);
  return "/usr/local/bin:/usr/bin:/bin";
}

// execvpe(3) without its surprise: no shell is tried for a file without a
// magic number.
int exec_found(const RunRequest& request) {
  auto argv = pointers(request.argv);
  auto env = pointers(request.env);
  const std::string& name = request.argv[0];
  if (name.empty()) return ENOENT;
  if (name.find('/') != std::string::npos) {
    ::execve(name.c_str(), argv.data(), env.data());
    return errno;
  }
  int err = ENOENT;
  const std::string path = path_of(request.env);
  for (size_t at = 0; at <= path.size();) {
    size_t end = std::min(path.find(':', at), path.size());
    const std::string dir = path.substr(at, end - at);
    at = end + 1;
    if (dir.empty()) continue;
    ::execve((dir + "/" + name).c_str(), argv.data(), env.data());
    if (errno == EACCES)
      err = EACCES;  // found, not executable: said if nothing better comes
    else if (errno != ENOENT && errno != ENOTDIR)
      return errno;
  }
  return err;
}

EnterFailure wall_failed(const char* name, const Error& error) {
  return {.what = EnterFailure::What::kWall,
          .err = error.err(),
          .text = fmt::format("cannot {}: {}", name, error.text())};
}

}  // namespace

Status simulated(const WallSet& fail, Wall wall) {
  if (fail.has(wall)) return fail_errno(EPERM);
  return {};
}

Status filter_calls(const Prepared& prepared) {
  TRY(simulated(prepared.fail, Wall::kSeccomp));
  if (!prepared.leave_out.has(Wall::kRlimits)) TRY(forbid_core_files());
  TRY(sys::install_seccomp(prepared.seccomp.arguments));
  return sys::install_seccomp(prepared.seccomp.numbers);
}

Result<Fd> landlock_rules(const Prepared& prepared) {
  if (prepared.leave_out.has(Wall::kLandlock)) return Fd();
  const LandlockPlan& plan = prepared.landlock;
  Fd ruleset = TRY(sys::landlock_create(plan.handled));
  for (size_t i = 0; i < plan.rules.size(); ++i) {
    const LandlockRule& rule = plan.rules[i];
    Fd own;
    int at = prepared.landlock_paths[i].get();
    if (rule.per_command) {
      own = TRY(sys::openat(AT_FDCWD, rule.path, O_PATH));
      at = own.get();
    }
    TRY(sys::landlock_allow_path(ruleset.get(), at, rule.rights));
  }
  return ruleset;
}

EnterFailure enter_command(const Prepared& prepared, const RunRequest& request,
                           const std::array<int, 3>& stdio, int landlock) {
  const WallSet& without = prepared.leave_out;
  if (auto s = place_streams(stdio); !s)
    return wall_failed("place the streams", s.error());
  if (!without.has(Wall::kFds))
    if (auto s = sys::close_range(3, ~0U, sys::CloseRange::kMarkOnExec); !s)
      return wall_failed("close inherited descriptors", s.error());
  take_foreground();
  if (!without.has(Wall::kRlimits))
    if (auto s = set_limits(request); !s)
      return wall_failed("set the resource limits", s.error());
  // Without capabilities from here on: the working directory must be reachable
  // for the user himself.
  if (!without.has(Wall::kCaps)) {
    Status s = simulated(prepared.fail, Wall::kCaps);
    if (s) s = sys::set_capabilities(0);
    if (!s) return wall_failed("drop capabilities", s.error());
  }
  if (::chdir(request.cwd.c_str()) < 0)
    return {.what = EnterFailure::What::kCwd,
            .err = errno,
            .text = request.cwd.substr(0, 1000)};
  ::umask(request.umask);
  unblock_signals();
  if (!without.has(Wall::kLandlock))
    if (auto s = restrict_files(prepared, landlock); !s)
      return wall_failed("restrict file access with Landlock", s.error());
  if (!without.has(Wall::kRlimits))
    if (auto s = limit_open_files(request); !s)
      return wall_failed("limit open files", s.error());
  const int err = exec_found(request);
  return {
      .what = EnterFailure::What::kExec, .err = err, .text = request.argv[0]};
}

}  // namespace stoplog::jail
