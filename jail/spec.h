// SPDX-License-Identifier: Apache-2.0
// What a jail is and what runs in it, as plain data. Nothing here acts: pure
// functions (mount_plan.h, etc_files.h, environment.h, seccomp_policy.h,
// landlock_plan.h) turn a JailSpec into lists of records that can be printed,
// and zygote.h carries them out.
//
// A JailSpec describes the jail of one draft and lives as long as its zygote; a
// CommandSpec describes one command. Paths are absolute. Strings are any bytes
// but NUL.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stoplog::jail {

// Who the command is. Started by root, host_uid is a non-zero id that owns
// nothing of the host's; started by a user, it is that user.
struct Identity {
  uid_t host_uid = 0;
  gid_t host_gid = 0;
  uid_t uid = 0;  // the same, as seen inside
  gid_t gid = 0;
  std::string user = "user";
  std::string group = "user";
};

// A tree that enters the jail writable: the workspace's FUSE mount, or a plain
// directory in tests.
struct TreeSource {
  std::string path;   // where it stands outside, in the caller's namespace
  int mount_fd = -1;  // or: a detached mount (open_tree, fsmount), borrowed
  bool empty() const { return path.empty() && mount_fd < 0; }
};

enum class Net { kNone, kHost };

struct Bind {
  std::string source;
  std::string target;
  bool required = true;  // else left out and named when it cannot be opened
};

struct HomeFile {
  std::string path;  // beneath HOME; written when nothing is there
  std::string content;
};

struct TmpfsSizes {
  uint64_t tmp = uint64_t{2} << 30;
  uint64_t var_tmp = uint64_t{1} << 30;
  uint64_t shm = uint64_t{1} << 30;
  uint64_t run = uint64_t{64} << 20;
  uint64_t home = uint64_t{1} << 30;  // where HOME is no tree of its own
};

// The walls. Leaving one out, or having it fail as if the kernel had refused
// it, is for tests alone: nothing in policy, command line or environment can
// set these fields, and a test checks that each wall stops what it must stop.
enum class Wall : uint32_t {
  kRoot = 1U << 0,         // own root: without it, the host's tree
  kReadOnly = 1U << 1,     // the system directories are read-only
  kProc = 1U << 2,         // /proc's read-only and masked parts
  kPidNs = 1U << 3,        // own processes only: without it, the zygote's
  kNetNs = 1U << 4,        //
  kIpcNs = 1U << 5,        //
  kUserNsLimit = 1U << 6,  // user.max_user_namespaces = 0
  kCaps = 1U << 7,         // capabilities gone
  kNoNewPrivs = 1U << 8,   //
  kSeccomp = 1U << 9,      //
  kLandlock = 1U << 10,    //
  kFds = 1U << 11,         // inherited descriptors closed
  kEnvironment = 1U << 12,
  kKeyring = 1U << 13,
  kSession = 1U << 14,     // own session
  kUndumpable = 1U << 15,  // init cannot be traced
  kIdentity = 1U << 16,    // mapped to a non-zero host id
  kDeath = 1U << 17,       // dies with what is outside
  kNoSuid = 1U << 18,
  kRlimits = 1U << 19,
};
struct WallSet {
  uint32_t bits = 0;
  bool has(Wall wall) const {
    return (bits & static_cast<uint32_t>(wall)) != 0;
  }
  void add(Wall wall) { bits |= static_cast<uint32_t>(wall); }
};

struct JailSpec {
  Identity identity;
  std::string workspace;  // its path inside: its own path outside
  TreeSource workspace_tree;
  std::string home;      // HOME inside
  TreeSource home_tree;  // empty: a tmpfs
  std::vector<HomeFile> home_files;
  // Its files are there at /run/stoplog, read-only, or empty. Copied, because a
  // bind would tell its path in /proc/self/mountinfo; later ones come through
  // Zygote::write_note().
  std::string notes_dir;
  std::vector<Bind> binds;  // --bind-ro and toolchains, read-only
  // Paths that must not be reachable through any bind: the real workspace,
  // the state directory.
  std::vector<std::string> hidden;
  Net net = Net::kNone;
  std::string hostname = "stoplog";
  std::string time_zone;   // TZ of the caller when set
  std::string git_config;  // /etc/gitconfig inside; empty: none
  TmpfsSizes tmpfs;
  WallSet test_leave_out;
  WallSet test_fail;
};

struct Limits {
  using Millis = std::chrono::milliseconds;
  std::optional<Millis> time;
  std::optional<Millis> cpu;
  std::optional<double> cpus;
  std::optional<uint64_t> memory;
  std::optional<uint64_t> pids;
  std::optional<uint64_t> files;   // open files of each process
  std::optional<uint64_t> output;  // counted by the relay
};

enum class LimitKind : uint8_t {
  kTime,
  kCpu,
  kCpus,
  kMemory,
  kPids,
  kFiles,
  kOutput
};
constexpr std::array<LimitKind, 7> kAllLimits = {
    LimitKind::kTime, LimitKind::kCpu,   LimitKind::kCpus,  LimitKind::kMemory,
    LimitKind::kPids, LimitKind::kFiles, LimitKind::kOutput};
const char* limit_name(LimitKind kind);

struct CommandSpec {
  std::vector<std::string> argv;
  std::string cwd;               // inside
  std::vector<std::string> env;  // NAME=VALUE, complete: see environment.h
  mode_t umask = 022;
  Limits limits;
  // Limits that were asked for by name: when one of these cannot be held, the
  // command is not started. The others are best effort.
  std::vector<LimitKind> required;
  bool controlling_terminal = false;  // one of the stdio fds is a pty's slave
};

}  // namespace stoplog::jail
