// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "catch_shim.h"
#include "jail/environment.h"
#include "jail/etc_files.h"
#include "jail/landlock_plan.h"
#include "jail/mount_plan.h"

using namespace stoplog;
using namespace stoplog::jail;

namespace {

JailSpec sample() {
  JailSpec spec;
  spec.identity = {.host_uid = 65533,
                   .host_gid = 65533,
                   .uid = 1000,
                   .gid = 1000,
                   .user = "ann",
                   .group = "ann"};
  spec.workspace = "/home/ann/proj";
  spec.workspace_tree.path = "/run/mnt";
  spec.home = "/home/ann";
  return spec;
}

HostFacts sample_facts() {
  HostFacts facts;
  facts.paths["/usr"] = {.kind = PathKind::kDir};
  facts.paths["/bin"] = {.kind = PathKind::kLink, .link = "usr/bin"};
  facts.paths["/etc/ssl/certs"] = {.kind = PathKind::kDir};
  facts.paths["/etc/services"] = {.kind = PathKind::kFile};
  facts.paths["/etc/localtime"] = {.kind = PathKind::kLink,
                                   .link = "/usr/share/zoneinfo/UTC"};
  facts.paths["/proc/sys"] = {.kind = PathKind::kDir};
  facts.paths["/proc/kcore"] = {.kind = PathKind::kFile};
  facts.paths["/proc/acpi"] = {.kind = PathKind::kDir};
  return facts;
}

std::vector<std::string> lines(const std::vector<MountOp>& plan) {
  std::vector<std::string> out;
  for (const MountOp& op : plan) out.push_back(describe(op));
  return out;
}

}  // namespace

TEST_CASE("the root is exactly what the plan lists") {
  const auto plan = lines(plan_root(sample(), sample_facts()).value());
  const std::vector<std::string> expected = {
      "bind /usr at /usr ro,nosuid,nodev",
      "link /bin -> usr/bin",
      "file /etc/group (39 bytes)",
      "file /etc/hostname (8 bytes)",
      "file /etc/hosts (66 bytes)",
      "file /etc/machine-id (33 bytes)",
      "file /etc/nsswitch.conf (132 bytes)",
      "file /etc/passwd (141 bytes)",
      "file /etc/resolv.conf (21 bytes)",
      "link /etc/mtab -> ../proc/self/mounts",
      "link /etc/localtime -> /usr/share/zoneinfo/UTC",
      "copy /etc/services",
      "bind /etc/ssl/certs at /etc/ssl/certs ro,nosuid,nodev",
      "dir /dev 755",
      "bind /dev/full at /dev/full ro,nosuid,noexec",
      "bind /dev/null at /dev/null ro,nosuid,noexec",
      "bind /dev/random at /dev/random ro,nosuid,noexec",
      "bind /dev/tty at /dev/tty ro,nosuid,noexec",
      "bind /dev/urandom at /dev/urandom ro,nosuid,noexec",
      "bind /dev/zero at /dev/zero ro,nosuid,noexec",
      "devpts /dev/pts nosuid,noexec",
      "tmpfs /dev/shm size=1073741824 mode=1777 nosuid,nodev,noexec",
      "link /dev/ptmx -> pts/ptmx",
      "link /dev/fd -> /proc/self/fd",
      "link /dev/stdin -> /proc/self/fd/0",
      "link /dev/stdout -> /proc/self/fd/1",
      "link /dev/stderr -> /proc/self/fd/2",
      "proc /proc nosuid,nodev,noexec",
      "tmpfs /tmp size=2147483648 mode=1777 nosuid,nodev",
      "tmpfs /var/tmp size=1073741824 mode=1777 nosuid,nodev",
      "tmpfs /run size=67108864 mode=755 nosuid,nodev,noexec",
      "link /var/run -> ../run",
      "dir /run/lock 1777",
      "dir /run/user/1000 700",
      "notes /run/stoplog ro,nosuid,nodev,noexec",
      "tmpfs /home/ann size=1073741824 mode=700 nosuid,nodev",
      "workspace at /home/ann/proj nosuid,nodev",
  };
  CHECK(plan == expected);
}

TEST_CASE("nothing of the host enters the root writable") {
  JailSpec spec = sample();
  spec.binds = {{"/opt/tool", "/opt/tool", false}};
  spec.notes_dir = "/state/notes";
  const auto plan = plan_root(spec, gather_facts(spec)).value();
  for (const MountOp& op : plan) {
    INFO(describe(op));
    if (op.kind == MountKind::kBind) CHECK((op.flags & kReadOnlyMount) != 0);
    if (op.kind == MountKind::kBind || op.kind == MountKind::kTree ||
        op.kind == MountKind::kTmpfs)
      CHECK((op.flags & kNoSuidMount) != 0);
  }
  CHECK(plan.back().kind == MountKind::kTree);
  CHECK(plan.back().source == "workspace");
}

TEST_CASE("a root cannot be planned over the root directory itself") {
  JailSpec spec = sample();
  spec.workspace = "/";
  CHECK_FALSE(plan_root(spec, sample_facts()).has_value());
  spec.workspace = "relative";
  CHECK_FALSE(plan_root(spec, sample_facts()).has_value());
}

TEST_CASE("each command's proc is covered where it is writable or telling") {
  const auto plan = lines(plan_proc(sample(), sample_facts()));
  CHECK(plan ==
        std::vector<std::string>{"proc /proc nosuid,nodev,noexec",
                                 "protect /proc/sys ro,nosuid,nodev,noexec",
                                 "mask /proc/acpi", "mask /proc/kcore"});
}

TEST_CASE("etc names the jail's user and nobody of the host") {
  const auto ops = synthesised_etc(sample(), sample_facts());
  const auto passwd = std::find_if(
      ops.begin(), ops.end(),
      [](const MountOp& op) { return op.target == "/etc/passwd"; });
  REQUIRE(passwd != ops.end());
  CHECK(passwd->content.find("\nann:x:1000:1000::/home/ann:") !=
        std::string::npos);
  CHECK(std::count(passwd->content.begin(), passwd->content.end(), '\n') == 3);
  for (const char* name : etc_table()) {
    const std::string_view entry = name;
    for (const char* secret : {"shadow", "ssh", "ssl/private", "sudoers",
                               "krb5", "hosts", "passwd", "NetworkManager"})
      CHECK(entry != secret);
  }
}

TEST_CASE("resolv.conf is the host's only with the host's network") {
  JailSpec spec = sample();
  HostFacts facts = sample_facts();
  facts.resolv_conf = "nameserver 10.0.0.1\n";
  auto conf = [&] {
    for (const MountOp& op : synthesised_etc(spec, facts))
      if (op.target == "/etc/resolv.conf") return op.content;
    return std::string();
  };
  CHECK(conf() == "nameserver 127.0.0.1\n");
  spec.net = Net::kHost;
  CHECK(conf() == "nameserver 10.0.0.1\n");
}

TEST_CASE("landlock lets only the meant places be written") {
  const LandlockPlan plan = plan_landlock(sample(), 7).value();
  std::vector<std::string> all;
  for (const LandlockRule& rule : plan.rules) all.push_back(describe(rule));
  CHECK(all == std::vector<std::string>{
                   "landlock read /", "landlock use /dev",
                   "landlock write /dev/shm", "landlock write /tmp",
                   "landlock write /var/tmp", "landlock write /run",
                   "landlock write /home/ann", "landlock write /home/ann/proj",
                   "landlock use /proc"});
  CHECK(plan.handled.scoped != 0);
}

TEST_CASE("landlock uses no right that the kernel does not know") {
  const LandlockPlan two = plan_landlock(sample(), 2).value();
  CHECK((two.handled.fs & sys::kLandlockTruncate) == 0);
  CHECK(two.handled.scoped == 0);
  for (const LandlockRule& rule : two.rules)
    CHECK((rule.rights & ~two.handled.fs) == 0);
}

TEST_CASE("a landlock too old for the job refuses") {
  JailSpec spec = sample();
  CHECK(plan_landlock(spec, 0).error().code() == Code::kUnsupported);
  CHECK(plan_landlock(spec, 1).error().code() == Code::kUnsupported);
  spec.net = Net::kHost;
  CHECK(plan_landlock(spec, 5).error().code() == Code::kUnsupported);
  CHECK(plan_landlock(spec, 6).has_value());
}

TEST_CASE("only named variables of the caller enter the environment") {
  EnvironmentInput input;
  input.caller = {
      "TERM=xterm",       "LC_ALL=C",
      "SSH_AUTH_SOCK=/x", "AWS_SECRET=y",
      "DISPLAY=:0",       "LD_PRELOAD=/evil.so",
      "HOME=/real/home",  "GITHUB_TOKEN=z",
      "MINE=1",           "GOPROXY=https://ann:secret@proxy.example,direct"};
  input.extra = {"MINE", "GIVEN=2", "TERM=dumb"};
  input.path = {"/usr/bin", "/bin"};
  input.cwd = "/home/ann/proj";
  const auto env = build_environment(sample(), input);
  CHECK(env == std::vector<std::string>{
                   "GIVEN=2", "HOME=/home/ann", "LC_ALL=C", "LOGNAME=ann",
                   "MINE=1", "PATH=/usr/bin:/bin", "PWD=/home/ann/proj",
                   "SHELL=/bin/sh", "STOPLOG=1", "TERM=dumb", "TMPDIR=/tmp",
                   "USER=ann", "XDG_RUNTIME_DIR=/run/user/1000"});
  input.caller = {"GOPROXY=https://proxy.example/a@b,direct"};
  CHECK(build_environment(sample(), input)[1] == input.caller[0]);
}
