// SPDX-License-Identifier: Apache-2.0
#include "draft/freeze.h"

#include <poll.h>
#include <signal.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <climits>
#include <set>
#include <sstream>
#include <thread>

#include "base/child.h"
#include "base/proc_stat.h"
#include "base/sys_file.h"
#include "base/sys_process.h"
#include "jail/proc_tree.h"

namespace stoplog::draft {
namespace {

using std::chrono::milliseconds;

constexpr auto kPatience = std::chrono::seconds(5);
constexpr uint64_t kMaxMaps = 64u << 20;

Result<std::string> proc_text(pid_t pid, const char* name) {
  return sys::read_file(AT_FDCWD, fmt::format("/proc/{}/{}", pid, name),
                        kMaxMaps);
}

bool is_gone(char state) { return state == 0 || state == 'Z' || state == 'X'; }

template <typename Check>
Status wait_until(Check done) {
  auto end = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end)
      return fail_errno(ETIMEDOUT, "the command does not hold still");
    std::this_thread::sleep_for(milliseconds(1));
  }
  return {};
}

bool is_frozen(int group) {
  auto events = sys::read_file(group, "cgroup.events", 4096);
  return events && events->find("frozen 1") != std::string::npos;
}

struct Mapping {
  dev_t dev = 0;
  uint64_t ino = 0;
  std::string path;
};

// "7f00-7f10 rw-s 00000000 00:2d 12345      /path with spaces"
std::vector<Mapping> shared_mappings(const std::string& maps) {
  std::vector<Mapping> found;
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string range, mode, offset, device, path;
    Mapping m;
    fields >> range >> mode >> offset >> device >> m.ino >> std::ws;
    std::getline(fields, path);
    if (mode.size() < 4 || mode[1] != 'w' || mode[3] != 's' || path.empty())
      continue;
    unsigned major = 0, minor = 0;
    if (std::sscanf(device.c_str(), "%x:%x", &major, &minor) != 2) continue;
    m.dev = ::makedev(major, minor);
    m.path = path;
    found.push_back(std::move(m));
  }
  return found;
}

// By the program itself, in a process of its own.
Status write_back(std::vector<std::string> argv) {
  Child child = TRY(Child::spawn({.argv = std::move(argv),
                                  .program = "/proc/self/exe",
                                  .die_with_parent = true}));
  pollfd ended{child.pidfd(), POLLIN, 0};
  int ready = ::poll(&ended, 1, 10'000);
  if (ready <= 0) {
    (void)child.kill(SIGKILL);
    return fail_errno(ETIMEDOUT, "mapped files cannot be written back");
  }
  sys::ExitStatus status = TRY(child.wait());
  if (!status.ok())
    return fail_errno(EIO, "mapped files cannot be written back");
  return {};
}

}  // namespace

Frozen::Frozen(Frozen&& other) noexcept
    : cgroup_(std::move(other.cgroup_)),
      stopped_(std::move(other.stopped_)),
      pids_(std::move(other.pids_)) {}

Frozen::~Frozen() {
  if (cgroup_) (void)sys::write_full(cgroup_.get(), "0");
  // Children first: init then finds none of them stopped.
  for (auto fd = stopped_.rbegin(); fd != stopped_.rend(); ++fd)
    (void)sys::pidfd_send_signal(fd->get(), SIGCONT);
}

Result<Frozen> Frozen::stop(const FreezeTarget& target) {
  Frozen frozen;
  if (target.group >= 0) {
    auto freezer = sys::openat(target.group, "cgroup.freeze", O_WRONLY);
    if (freezer && sys::write_full(freezer->get(), "1")) {
      frozen.cgroup_ = std::move(*freezer);
      TRY(wait_until([&] { return is_frozen(target.group); }));
      frozen.pids_ = jail::descendants(target.init);
      return frozen;
    }
  }
  TRY(frozen.stop_all(target));
  return frozen;
}

// Until a look around finds nobody new: who is still running may fork.
Status Frozen::stop_all(const FreezeTarget& target) {
  stopped_.push_back(TRY(sys::dup(target.pidfd)));
  TRY(sys::pidfd_send_signal(target.pidfd, SIGSTOP));
  std::set<std::string> seen;  // numbers come again, with another start
  return wait_until([&] {
    bool still = true;
    pids_ = jail::descendants(target.init);
    for (pid_t pid : pids_) {
      char state = proc_state(fmt::format("/proc/{}/stat", pid));
      const std::string mark = jail::process_mark(pid);
      if (!seen.contains(mark)) {
        still = false;
        // Gone meanwhile, or not its number any more: the next look tells.
        auto fd = jail::open_descendant(pid, target.init);
        if (!fd) continue;
        seen.insert(mark);
        if (state == 'T' || is_gone(state)) continue;  // not ours to wake
        if (sys::pidfd_send_signal(fd->get(), SIGSTOP))
          stopped_.push_back(std::move(*fd));
      } else if (state != 'T' && state != 't' && !is_gone(state)) {
        still = false;
      }
    }
    return still;
  });
}

Status sync_mappings_here(const std::vector<pid_t>& pids,
                          const MappedAt& where) {
  Fd root = TRY(sys::openat(AT_FDCWD, where.mount, O_RDONLY | O_DIRECTORY));
  dev_t dev = TRY(sys::fstat(root.get())).dev;
  std::set<std::string> done;
  for (pid_t pid : pids) {
    auto maps = proc_text(pid, "maps");
    if (!maps) continue;  // it ended
    for (const Mapping& m : shared_mappings(*maps)) {
      if (m.dev != dev || !m.path.starts_with(where.workspace + "/")) continue;
      std::string path = m.path.substr(where.workspace.size() + 1);
      if (path.ends_with(" (deleted)") || !done.insert(path).second) continue;
      auto fd = sys::open_beneath(root.get(), path, O_RDONLY | O_NONBLOCK);
      if (!fd && fd.error().err() == ENOENT) continue;  // moved or removed
      TRY_CTX(sys::fsync(TRY_CTX(std::move(fd), path).get()), path);
    }
  }
  return {};
}

Status sync_mappings(const std::vector<pid_t>& pids, const MappedAt& where) {
  std::vector<std::string> argv = {"stoplog",         "daemon",
                                   "--sync-mappings", where.mount,
                                   "--mapped-at",     where.workspace};
  for (pid_t pid : pids) argv.push_back(std::to_string(pid));
  return write_back(std::move(argv));
}

Status sync_files(const std::string& mount,
                  const std::vector<std::string>& paths) {
  constexpr size_t kAtOnce = 100;  // names of 4 KiB: what an exec takes
  Status first;
  for (size_t at = 0; at < paths.size(); at += kAtOnce) {
    std::vector<std::string> argv = {"stoplog", "daemon", "--sync-files", mount,
                                     "--"};
    for (size_t i = at; i < std::min(at + kAtOnce, paths.size()); ++i)
      if (paths[i].size() < PATH_MAX) argv.push_back(paths[i]);
    // One that fails leaves the others to be done.
    if (Status done = write_back(std::move(argv)); !done && first)
      first = std::move(done);
  }
  return first;
}

Status sync_files_here(const std::string& mount,
                       const std::vector<std::string>& paths) {
  Fd root = TRY(sys::openat(AT_FDCWD, mount, O_RDONLY | O_DIRECTORY));
  for (const std::string& path : paths)
    if (auto fd = sys::open_beneath(root.get(), path, O_RDONLY | O_NONBLOCK))
      (void)sys::fsync(fd->get());  // its loss is known already
  return {};
}

}  // namespace stoplog::draft
