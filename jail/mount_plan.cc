// SPDX-License-Identifier: Apache-2.0
#include "jail/mount_plan.h"

#include <fcntl.h>

#include <array>

#include "base/sys_file.h"
#include "jail/etc_files.h"

namespace stoplog::jail {
namespace {

constexpr uint8_t kSystem = kReadOnlyMount | kNoSuidMount | kNoDevMount;
constexpr uint8_t kData = kNoSuidMount | kNoDevMount;

constexpr std::array kSystemDirs = {"/usr",   "/bin",   "/sbin",  "/lib",
                                    "/lib32", "/lib64", "/libx32"};
constexpr std::array kSysDirs = {"/sys/devices/system/cpu",
                                 "/sys/devices/system/node"};
// Built caches of programs in /usr that live in /var; nothing else of it.
constexpr std::array kVarDirs = {"/var/cache/fontconfig", "/var/lib/ghc",
                                 "/var/lib/texmf", "/var/lib/gems"};
constexpr std::array kDevices = {"full", "null",    "random",
                                 "tty",  "urandom", "zero"};
// Writable ways into the kernel, and what tells about the host. Those that do
// not exist are skipped.
constexpr std::array kProcProtected = {"/proc/sys", "/proc/sysrq-trigger",
                                       "/proc/irq", "/proc/bus",
                                       "/proc/fs",  "/proc/asound"};
constexpr std::array kProcMasked = {
    "/proc/acpi",       "/proc/cmdline",       "/proc/kallsyms",
    "/proc/kcore",      "/proc/key-users",     "/proc/keys",
    "/proc/kmsg",       "/proc/latency_stats", "/proc/modules",
    "/proc/partitions", "/proc/sched_debug",   "/proc/scsi",
    "/proc/timer_list", "/proc/timer_stats",   "/proc/vmallocinfo"};

PathFact examine(const std::string& path) {
  auto stat = sys::statat(AT_FDCWD, path);
  if (!stat) return {};
  if (S_ISREG(stat->mode)) return {.kind = PathKind::kFile, .size = stat->size};
  if (S_ISDIR(stat->mode)) return {.kind = PathKind::kDir};
  if (S_ISCHR(stat->mode)) return {.kind = PathKind::kDevice};
  if (!S_ISLNK(stat->mode)) return {.kind = PathKind::kOther};
  auto link = sys::readlinkat(AT_FDCWD, path);
  if (!link) return {};
  return {.kind = PathKind::kLink, .link = *link};
}

MountOp bind(const std::string& path, uint8_t flags, bool required) {
  return {.kind = MountKind::kBind,
          .target = path,
          .source = path,
          .flags = flags,
          .required = required};
}

MountOp dir(std::string path, mode_t mode) {
  return {.kind = MountKind::kDir, .target = std::move(path), .mode = mode};
}

MountOp tmpfs(std::string target, uint64_t size, mode_t mode, uint8_t flags) {
  return {.kind = MountKind::kTmpfs,
          .target = std::move(target),
          .flags = flags,
          .mode = mode,
          .size = size};
}

void plan_system(const HostFacts& facts, std::vector<MountOp>& plan) {
  for (const char* path : kSystemDirs) {
    const PathFact& fact = facts.at(path);
    if (fact.kind == PathKind::kDir)
      plan.push_back(bind(path, kSystem, true));
    else if (fact.kind == PathKind::kLink)
      plan.push_back(
          {.kind = MountKind::kLink, .target = path, .source = fact.link});
  }
  for (const char* path : kSysDirs)
    if (facts.at(path).kind == PathKind::kDir)
      plan.push_back(bind(path, kSystem | kNoExecMount, false));
  for (const char* path : kVarDirs)
    if (facts.at(path).kind == PathKind::kDir)
      plan.push_back(bind(path, kSystem, false));
}

void plan_dev(const JailSpec& spec, std::vector<MountOp>& plan) {
  plan.push_back(dir("/dev", 0755));
  for (const char* name : kDevices)
    plan.push_back(bind(std::string("/dev/") + name,
                        kReadOnlyMount | kNoSuidMount | kNoExecMount, true));
  plan.push_back({.kind = MountKind::kDevpts,
                  .target = "/dev/pts",
                  .flags = kNoSuidMount | kNoExecMount});
  plan.push_back(
      tmpfs("/dev/shm", spec.tmpfs.shm, 01777, kData | kNoExecMount));
  constexpr std::array<std::array<const char*, 2>, 5> kLinks = {{
      {"/dev/ptmx", "pts/ptmx"},
      {"/dev/fd", "/proc/self/fd"},
      {"/dev/stdin", "/proc/self/fd/0"},
      {"/dev/stdout", "/proc/self/fd/1"},
      {"/dev/stderr", "/proc/self/fd/2"},
  }};
  for (const auto& [target, source] : kLinks)
    plan.push_back(
        {.kind = MountKind::kLink, .target = target, .source = source});
}

void plan_home(const JailSpec& spec, std::vector<MountOp>& plan) {
  if (spec.home_tree.empty()) {
    plan.push_back(tmpfs(spec.home, spec.tmpfs.home, 0700, kData));
  } else {
    plan.push_back({.kind = MountKind::kTree,
                    .target = spec.home,
                    .source = "home",
                    .flags = kData});
  }
  for (const HomeFile& file : spec.home_files)
    plan.push_back({.kind = MountKind::kFile,
                    .target = spec.home + "/" + file.path,
                    .mode = 0644,
                    .content = file.content,
                    .required = false});
}

bool is_absolute(const std::string& path) {
  return path.size() > 1 && path[0] == '/';
}

}  // namespace

const PathFact& HostFacts::at(const std::string& path) const {
  static const PathFact kAbsent;
  auto found = paths.find(path);
  return found == paths.end() ? kAbsent : found->second;
}

HostFacts gather_facts(const JailSpec& spec) {
  HostFacts facts;
  auto look = [&](const std::string& path) {
    facts.paths[path] = examine(path);
  };
  for (const char* path : kSystemDirs) look(path);
  for (const char* path : kSysDirs) look(path);
  for (const char* path : kVarDirs) look(path);
  for (const char* path : kProcProtected) look(path);
  for (const char* path : kProcMasked) look(path);
  for (const char* name : etc_table()) look(std::string("/etc/") + name);
  look("/bin/bash");
  if (spec.net == Net::kHost) {
    // Often a symlink into /run, so it is followed: it is the host's own.
    Fd fd(::open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC));
    if (fd)
      if (auto text = sys::read_all(fd.get(), 1 << 16))
        facts.resolv_conf = *text;
  }
  return facts;
}

Result<std::vector<MountOp>> plan_root(const JailSpec& spec,
                                       const HostFacts& facts) {
  if (!is_absolute(spec.workspace))
    return fail(Code::kInvalid, "a workspace at '{}' cannot be jailed",
                spec.workspace);
  if (!is_absolute(spec.home))
    return fail(Code::kInvalid, "HOME '{}' is not an absolute path", spec.home);
  std::vector<MountOp> plan;
  plan_system(facts, plan);
  for (MountOp& op : plan_etc(spec, facts)) plan.push_back(std::move(op));
  plan_dev(spec, plan);
  plan.push_back({.kind = MountKind::kProc,
                  .target = "/proc",
                  .flags = kNoSuidMount | kNoDevMount | kNoExecMount});
  plan.push_back(tmpfs("/tmp", spec.tmpfs.tmp, 01777, kData));
  plan.push_back(tmpfs("/var/tmp", spec.tmpfs.var_tmp, 01777, kData));
  plan.push_back(tmpfs("/run", spec.tmpfs.run, 0755, kData | kNoExecMount));
  plan.push_back(
      {.kind = MountKind::kLink, .target = "/var/run", .source = "../run"});
  plan.push_back(dir("/run/lock", 01777));
  plan.push_back(dir(fmt::format("/run/user/{}", spec.identity.uid), 0700));
  plan.push_back({.kind = MountKind::kNotes,
                  .target = "/run/stoplog",
                  .source = spec.notes_dir,
                  .flags = kSystem | kNoExecMount,
                  .size = uint64_t{4} << 20});
  plan_home(spec, plan);
  for (const Bind& b : spec.binds)
    plan.push_back({.kind = MountKind::kBind,
                    .target = b.target,
                    .source = b.source,
                    .flags = kSystem,
                    .required = b.required});
  // Last, so that nothing is ever mounted beneath it: a mount on a FUSE
  // directory is silently detached when the name is dropped from the cache.
  plan.push_back({.kind = MountKind::kTree,
                  .target = spec.workspace,
                  .source = "workspace",
                  .flags = kData});
  for (MountOp& op : plan) {
    if (spec.test_leave_out.has(Wall::kReadOnly))
      op.flags &= static_cast<uint8_t>(~kReadOnlyMount);
    if (spec.test_leave_out.has(Wall::kNoSuid))
      op.flags &= static_cast<uint8_t>(~kNoSuidMount);
    // Without a pid namespace of its own the kernel mounts no procfs for us.
    if (spec.test_leave_out.has(Wall::kPidNs) && op.kind == MountKind::kProc)
      op = bind("/proc", 0, true);
  }
  return plan;
}

std::vector<MountOp> plan_proc(const JailSpec& spec, const HostFacts& facts) {
  std::vector<MountOp> plan;
  if (spec.test_leave_out.has(Wall::kPidNs)) return plan;
  plan.push_back({.kind = MountKind::kProc,
                  .target = "/proc",
                  .flags = kNoSuidMount | kNoDevMount | kNoExecMount});
  if (spec.test_leave_out.has(Wall::kProc)) return plan;
  for (const char* path : kProcProtected)
    if (facts.at(path).kind != PathKind::kNone)
      plan.push_back({.kind = MountKind::kProtect,
                      .target = path,
                      .flags = kReadOnlyMount | kNoSuidMount | kNoDevMount |
                               kNoExecMount});
  for (const char* path : kProcMasked) {
    const PathKind kind = facts.at(path).kind;
    if (kind == PathKind::kNone) continue;
    plan.push_back({.kind = MountKind::kMask,
                    .target = path,
                    .source = kind == PathKind::kDir ? "dir" : "file"});
  }
  return plan;
}

std::string describe(const MountOp& op) {
  std::string flags;
  auto add = [&](MountFlag flag, const char* name) {
    if ((op.flags & flag) == 0) return;
    flags += flags.empty() ? " " : ",";
    flags += name;
  };
  add(kReadOnlyMount, "ro");
  add(kNoSuidMount, "nosuid");
  add(kNoDevMount, "nodev");
  add(kNoExecMount, "noexec");
  switch (op.kind) {
    case MountKind::kDir:
      return fmt::format("dir {} {:o}", op.target, op.mode);
    case MountKind::kLink:
      return fmt::format("link {} -> {}", op.target, op.source);
    case MountKind::kFile:
      return fmt::format("file {} ({} bytes)", op.target, op.content.size());
    case MountKind::kCopy:
      return fmt::format("copy {}", op.target);
    case MountKind::kBind:
      return fmt::format("bind {} at {}{}", op.source, op.target, flags);
    case MountKind::kTree:
      return fmt::format("{} at {}{}", op.source, op.target, flags);
    case MountKind::kTmpfs:
      return fmt::format("tmpfs {} size={} mode={:o}{}", op.target, op.size,
                         op.mode, flags);
    case MountKind::kDevpts:
      return fmt::format("devpts {}{}", op.target, flags);
    case MountKind::kNotes:
      return fmt::format("notes {}{}", op.target, flags);
    case MountKind::kProc:
      return fmt::format("proc {}{}", op.target, flags);
    case MountKind::kProtect:
      return fmt::format("protect {}{}", op.target, flags);
    case MountKind::kMask:
      return fmt::format("mask {}", op.target);
  }
  return {};
}

}  // namespace stoplog::jail
