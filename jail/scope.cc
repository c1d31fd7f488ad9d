// SPDX-License-Identifier: Apache-2.0
#include "jail/scope.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/child.h"
#include "base/sys_file.h"
#include "jail/cgroup.h"

namespace stoplog::jail {
namespace {

using Clock = std::chrono::steady_clock;

int left_ms(Clock::time_point end) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

// Silent: what it says to a daemon's streams would reach nobody, or a client.
bool call_systemd(const ScopeMeans& means, const std::string& name,
                  Clock::time_point end) {
  auto null = sys::openat(AT_FDCWD, "/dev/null", O_RDWR);
  if (!null) return false;
  SpawnSpec spec;
  spec.argv = scope_call(name, ::getpid());
  spec.program = means.busctl;
  spec.env = {{"DBUS_SESSION_BUS_ADDRESS=unix:path=" + means.bus,
               "PATH=/usr/bin:/bin"}};
  for (int fd = 0; fd < 3; ++fd) spec.fds.push_back({null->get(), fd});
  spec.die_with_parent = true;
  auto child = Child::spawn(spec);
  if (!child) return false;
  pollfd ended{child->pidfd(), POLLIN, 0};
  while (::poll(&ended, 1, left_ms(end)) < 0 && errno == EINTR) {
  }
  if ((ended.revents & POLLIN) == 0) return false;  // killed with `child`
  auto status = child->wait();
  return status && status->ok();
}

// The reply says that a job was queued, not that it is done.
bool wait_inside(const std::string& name, Clock::time_point end) {
  for (;;) {
    auto own = sys::read_file(AT_FDCWD, "/proc/self/cgroup", 1 << 16);
    if (own && own->find("/" + name + "\n") != std::string::npos) return true;
    if (Clock::now() >= end) return false;
    ::poll(nullptr, 0, 1);
  }
}

}  // namespace

ScopeMeans find_scope_means() {
  ScopeMeans means;
  if (::geteuid() == 0) return means;
  if (::access("/usr/bin/busctl", X_OK) == 0) means.busctl = "/usr/bin/busctl";
  // Not by the environment: `su` keeps another user's.
  const std::string bus = fmt::format("/run/user/{}/bus", ::geteuid());
  struct stat st{};
  if (::stat(bus.c_str(), &st) == 0 && S_ISSOCK(st.st_mode) &&
      st.st_uid == ::geteuid())
    means.bus = bus;
  return means;
}

std::vector<std::string> scope_call(const std::string& name, pid_t pid) {
  return {"busctl",
          "--user",
          "--quiet",
          "call",
          "org.freedesktop.systemd1",
          "/org/freedesktop/systemd1",
          "org.freedesktop.systemd1.Manager",
          "StartTransientUnit",
          "ssa(sv)a(sa(sv))",
          name,
          "fail",
          "4",
          "PIDs",
          "au",
          "1",
          std::to_string(pid),
          "Delegate",
          "b",
          "true",
          "Description",
          "s",
          "stoplog: commands of one draft",
          "CollectMode",
          "s",
          "inactive-or-failed",
          "0"};
}

bool enter_scope(const ScopeMeans& means, std::chrono::milliseconds patience) {
  if (means.empty()) return false;
  const Clock::time_point end = Clock::now() + patience;
  // systemd's own form of such names, and none that a sweep takes for a dead
  // daemon's group while it is still empty.
  const std::string name = fmt::format("app-stoplog-{}.scope", ::getpid());
  if (!call_systemd(means, name, end) || !wait_inside(name, end)) return false;
  const CgroupPlaces places = find_cgroups();
  if (places.v2.empty()) return false;
  const std::string own = places.v2.back() + "/daemon";
  if (!sys::mkdirat(AT_FDCWD, own, 0755)) return false;
  auto procs = sys::openat(AT_FDCWD, own + "/cgroup.procs", O_WRONLY);
  return procs && sys::write_full(procs->get(), "0");
}

}  // namespace stoplog::jail
