// SPDX-License-Identifier: Apache-2.0
// The user's systemd is played by a script: there is none where tests run.
#include "jail/scope.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys_file.h"
#include "base/temp_file.h"
#include "catch_shim.h"
#include "jail/cgroup.h"
#include "scratch.h"

using namespace stoplog;
using namespace stoplog::jail;
using std::chrono::milliseconds;

namespace {

std::string script(const Scratch& scratch, const std::string& text) {
  REQUIRE(write_file(scratch.fd(), "busctl", "#!/bin/sh\n" + text, 0755,
                     Sync::kNo));
  return scratch.path() + "/busctl";
}

// Where groups of version 2 may be made; "" where they may not.
std::string unified() {
  for (const std::string top : {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"})
    if (::access((top + "/cgroup.procs").c_str(), W_OK) == 0) return top;
  return "";
}

}  // namespace

TEST_CASE("a scope is asked for by one call that names it and its process") {
  const auto call = scope_call("stoplog-7.scope", 7);
  CHECK(call[7] == "StartTransientUnit");
  // What the signature says follows: name, mode, four properties, no others.
  CHECK(call[8] == "ssa(sv)a(sa(sv))");
  CHECK(call[9] == "stoplog-7.scope");
  CHECK(std::vector<std::string>(call.begin() + 11, call.begin() + 19) ==
        std::vector<std::string>{"4", "PIDs", "au", "1", "7", "Delegate", "b",
                                 "true"});
  CHECK(call.size() == 26);
  CHECK(call.back() == "0");
}

TEST_CASE("without a systemd or a bus no scope is entered") {
  Scratch scratch;
  CHECK_FALSE(enter_scope({}));
  CHECK_FALSE(enter_scope({.busctl = "/bin/true", .bus = ""}));
  // Root needs none.
  if (::geteuid() == 0) CHECK(find_scope_means().empty());
  CHECK_FALSE(enter_scope({.busctl = "/no/such/busctl", .bus = "/run/bus"}));
  // Refused, silent, or done without effect: not for ever.
  CHECK_FALSE(
      enter_scope({.busctl = script(scratch, "exit 1\n"), .bus = "/run/bus"}));
  CHECK_FALSE(enter_scope(
      {.busctl = script(scratch, "exec sleep 1000\n"), .bus = "/run/bus"},
      milliseconds(50)));
  CHECK_FALSE(
      enter_scope({.busctl = script(scratch, "exit 0\n"), .bus = "/run/bus"},
                  milliseconds(50)));
}

TEST_CASE("in a scope the process makes room for the groups of its commands") {
  const std::string top = unified();
  if (top.empty()) {
    WARN("no group of version 2 may be made here");
    return;
  }
  Scratch scratch;
  // As systemd does it, a moment after it has answered.
  const std::string fake = script(
      scratch, "echo \"$DBUS_SESSION_BUS_ADDRESS $*\" >" + scratch.path() +
                   "/call\nmkdir " + top + "/${9}\n(sleep 0.1; echo ${15} >" +
                   top + "/${9}/cgroup.procs) >/dev/null 2>&1 &\n");
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (!enter_scope({.busctl = fake, .bus = "/run/user/9/bus"},
                     std::chrono::minutes(1)))
      ::_exit(1);
    const CgroupPlaces places = find_cgroups();
    const std::string name = fmt::format("app-stoplog-{}.scope", ::getpid());
    // Beside our own group is the scope: the commands' groups go there.
    if (places.v2.empty() || !places.v2.front().ends_with("/" + name))
      ::_exit(2);
    ::_exit(places.v2.back().ends_with("/" + name + "/daemon") ? 0 : 3);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(status == 0);
  auto call = sys::read_file(scratch.fd(), "call", 4096);
  REQUIRE(call);
  CHECK(call->starts_with("unix:path=/run/user/9/bus --user"));
  const std::string scope = fmt::format("{}/app-stoplog-{}.scope", top, pid);
  CHECK(::rmdir((scope + "/daemon").c_str()) == 0);
  CHECK(::rmdir(scope.c_str()) == 0);
}
