// SPDX-License-Identifier: Apache-2.0
// What CLI and daemon say to each other: one packet a message on a
// SOCK_SEQPACKET socket. docs/FORMAT.md, "control socket".
//
// A client says Hello first and gets Welcome. Each request then gets exactly
// one reply, kReply with the record named beside the Op, or kError. Events
// come unasked to the client whose `run` they belong to. The frame's layout,
// kHello, kShutdown and kError never change, so that versions can at least
// tell each other apart and an old daemon can be asked to leave.
//
// Everything decoded here is checked for shape; meaning is checked by whoever
// handles it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unix_socket.h"
#include "draft/wire.h"
#include "fs/tree_types.h"

namespace stoplog::draft {

inline constexpr uint16_t kProtocol = 7;
inline constexpr uint32_t kMagic = 0x474f4c53;  // "SLOG"
// A payload above kMaxInline travels in a sealed memfd, the first fd.
inline constexpr size_t kMaxInline = 60u << 10;
inline constexpr size_t kMaxPayload = 16u << 20;
inline constexpr size_t kMaxPacket = kMaxInline + 64;

enum class Op : uint16_t {
  kHello = 1,        // Hello -> Welcome
  kShutdown = 2,     // Shutdown -> Empty, then the daemon ends
  kError = 3,        // ErrorReply
  kReply = 4,        // the reply of the request with the same serial
  kEvent = 5,        // RunEvent
  kRun = 16,         // RunRequest, fds -> RunStarted, fd
  kSignal = 17,      // Signal -> Empty
  kBarrier = 18,     // Empty -> fs::Mark
  kSnapshot = 19,    // Text -> fs::Mark
  kRollback = 20,    // Rollback -> fs::Mark
  kCommitBase = 21,  // CommitBase -> fs::Mark
  kMount = 22,       // Text (directory, "" ours) -> MountInfo
  kUnmount = 23,     // Empty -> Empty
  kPs = 24,          // Empty -> ProcessList
  kStop = 25,        // Stop -> Empty
  kNote = 26,        // Note -> Empty
  kStatus = 27,      // Empty -> DaemonStatus
  kMarks = 28,       // Empty -> MarkList
  kOverOutput = 29,  // OverOutput -> Empty
  kFork = 30,        // Fork -> Empty
  kSettle = 31,      // Empty -> Empty
  kGc = 32,          // Gc -> GcDone
};

struct Empty {
  template <class A>
  void visit(A&) {}
};
struct Text {
  std::string text;
  template <class A>
  void visit(A& a) {
    a(text);
  }
};
struct Hello {
  std::string version;
  template <class A>
  void visit(A& a) {
    a(version);
  }
};
struct Welcome {
  std::string version;
  std::string draft;
  int32_t pid = 0;
  bool busy = false;   // a command runs, or the view is mounted for people
  std::string shape;   // Shape::digest()
  std::string mount;   // for people; "" none
  bool stale = false;  // another directory is at the workspace's path now
  template <class A>
  void visit(A& a) {
    a(version, draft, pid, busy, shape, mount, stale);
  }
  // Whether it will do for a user who wants this shape (a digest), shown at
  // `at` ("": nowhere).
  bool has_shape(const std::string& digest, const std::string& at) const;
};
struct ErrorReply {
  int32_t code = 0;  // Code
  int32_t err = 0;
  std::string message;
  std::string hint;
  template <class A>
  void visit(A& a) {
    a(code, err, message, hint);
  }
  static ErrorReply from(const Error& error);
  Error error() const;
};
struct Shutdown {
  bool force = false;  // end what runs; else EBUSY
  template <class A>
  void visit(A& a) {
    a(force);
  }
};

// A bound; absent: none. `asked` ones must be held or the command refused.
struct Limit {
  std::optional<uint64_t> value;
  bool asked = false;
  template <class A>
  void visit(A& a) {
    a(value, asked);
  }
};
struct Limits {
  Limit time_ms, cpu_ms, cpus_milli, memory, pids, files, output, disk, inodes;
  template <class A>
  void visit(A& a) {
    a(time_ms, cpu_ms, cpus_milli, memory, pids, files, output, disk, inodes);
  }
};

enum class NetMode : uint8_t { kNone = 0, kHost = 1, kAllow = 2 };
struct NetRule {
  std::string host;
  uint16_t port = 0;  // 0: 443 and 80
  template <class A>
  void visit(A& a) {
    a(host, port);
  }
};

struct RunRequest {
  std::vector<std::string> argv;
  std::string cwd;  // relative to the workspace
  // NAME=VALUE of the caller's, those that jail::passes(); then those of
  // policy and --env, which win over everything.
  std::vector<std::string> env, env_extra;
  std::string shell;  // SHELL inside; "": /bin/sh
  // Bit N: stream N of the command is the jail's own pty, whose master comes
  // back with RunStarted. The message carries an fd for each other stream.
  uint8_t tty_streams = 0;
  std::string terminal;  // jail::terminal_shape() of the caller's
  uint32_t umask = 022;
  Limits limits;
  std::string policy_digest;
  std::string preset;
  // Of a request that is sent along with the hello: the shape that the daemon
  // must have. One that would not do refuses it with ESTALE; "": any will do.
  std::string only_shape;
  template <class A>
  void visit(A& a) {
    a(argv, cwd, env, env_extra, shell, tty_streams, terminal, umask, limits,
      policy_digest, preset, only_shape);
  }
};
struct RunStarted {
  uint32_t command = 0;
  int32_t pid = 0;  // of the jail's init, as the host sees it; 0: unknown
  std::vector<std::string> notes;  // what the user should know, a line each
  Fd terminal;  // the pty's master; travels beside the record
  template <class A>
  void visit(A& a) {
    a(command, pid, notes);
  }
};

struct NetAttempt {
  std::string host;
  uint16_t port = 0;
  bool allowed = false;
  template <class A>
  void visit(A& a) {
    a(host, port, allowed);
  }
};
// How a command ended. At most one of the first group is set.
struct Outcome {
  int32_t exit = 0;
  int32_t signal = 0;
  std::string killed_by;     // "", time, cpu, memory, output, supervisor
  std::string failure;       // the command was never executed: why
  int32_t failure_code = 0;  // then: 125, 126, 127, 5 …
  // Stores to this file through a mapping found no room, which no program can
  // be told: it was ended by the supervisor, unless it was done by then.
  std::string lost;

  uint64_t limit = 0, measured = 0;  // when killed_by is a limit
  uint64_t refused_disk = 0, refused_inodes = 0, refused_pids = 0;
  uint64_t wall_ms = 0, cpu_ms = 0, cpu_user_ms = 0, cpu_system_ms = 0;
  uint64_t memory_peak = 0, pids_peak = 0;
  // In the workspace; what two commands do at once counts for both.
  uint64_t read_bytes = 0, written_bytes = 0;
  std::vector<std::pair<std::string, std::string>> held;  // limit -> by what
  std::vector<NetAttempt> network;
  uint64_t position_before = 0, position_after = 0;  // journal
  uint64_t touched_nodes = 0;  // of the draft; 0: it holds nothing at all
  template <class A>
  void visit(A& a) {
    a(exit, signal, killed_by, failure, failure_code, lost, limit, measured,
      refused_disk, refused_inodes, refused_pids, wall_ms, cpu_ms, cpu_user_ms,
      cpu_system_ms, memory_peak, pids_peak, read_bytes, written_bytes, held,
      network, position_before, position_after, touched_nodes);
  }
};
enum class RunEventKind : uint8_t { kStopped = 0, kContinued = 1, kEnded = 2 };
struct RunEvent {
  uint32_t command = 0;
  RunEventKind kind = RunEventKind::kEnded;
  int32_t signal = 0;  // of kStopped
  Outcome outcome;     // of kEnded
  bool told = false;   // the client knows; stays in the daemon
  template <class A>
  void visit(A& a) {
    a(command, kind, signal, outcome);
  }
};

struct Signal {
  uint32_t command = 0;
  int32_t signal = 0;
  template <class A>
  void visit(A& a) {
    a(command, signal);
  }
};
// The client's relay counted more output than the limit: the command is to be
// killed with that as the reason.
struct OverOutput {
  uint32_t command = 0;
  uint64_t measured = 0;
  template <class A>
  void visit(A& a) {
    a(command, measured);
  }
};
struct Stop {
  uint32_t command = 0;  // 0: all
  template <class A>
  void visit(A& a) {
    a(command);
  }
};
struct Gc {
  std::optional<uint64_t> max_age;  // seconds
  std::optional<uint64_t> max_bytes;
  bool dry_run = false;
  template <class A>
  void visit(A& a) {
    a(max_age);
    a(max_bytes);
    a(dry_run);
  }
};
struct GcDone {
  uint64_t marks = 0, generations = 0, segments = 0, bytes = 0;
  template <class A>
  void visit(A& a) {
    a(marks);
    a(generations);
    a(segments);
    a(bytes);
  }
};
struct Rollback {
  uint64_t to = 0;  // fs::Position
  template <class A>
  void visit(A& a) {
    a(to);
  }
};
// Writes the state at `at` into a new draft's directory, which the client has
// locked.
struct Fork {
  std::string directory;  // absolute
  uint64_t at = 0;        // fs::Position
  template <class A>
  void visit(A& a) {
    a(directory, at);
  }
};
struct CommitBase {
  uint64_t reviewed = 0;  // fs::Position
  std::vector<fs::BaseChange> changes;
  uint64_t id = 0;  // fs::CommitId
  timespec since{};
  template <class A>
  void visit(A& a) {
    a(reviewed, changes, id, since);
  }
};
struct MountInfo {
  std::string path;  // "" when not mounted for people
  template <class A>
  void visit(A& a) {
    a(path);
  }
};
// A text readable inside the jail under /run/stoplog/NAME.
struct Note {
  std::string name;
  std::string text;
  template <class A>
  void visit(A& a) {
    a(name, text);
  }
};
struct RunningCommand {
  uint32_t command = 0;
  int32_t pid = 0;
  std::vector<std::string> argv;
  std::string cwd;
  int64_t started_ms = 0;  // wall clock since the epoch
  bool stopped = false;
  template <class A>
  void visit(A& a) {
    a(command, pid, argv, cwd, started_ms, stopped);
  }
};
struct ProcessList {
  std::vector<RunningCommand> commands;
  template <class A>
  void visit(A& a) {
    a(commands);
  }
};
struct DaemonStatus {
  int32_t pid = 0;
  std::string version;
  uint32_t commands = 0;  // running now
  uint32_t clients = 0;
  std::string mount;               // for people; "" none
  std::vector<std::string> notes;  // what a recovery did, unpinned files …
  uint64_t held_bytes = 0;
  uint64_t touched_nodes = 0;
  template <class A>
  void visit(A& a) {
    a(pid, version, commands, clients, mount, notes, held_bytes, touched_nodes);
  }
};
struct MarkList {
  std::vector<fs::Mark> marks;
  template <class A>
  void visit(A& a) {
    a(marks);
  }
};

// Records of other rooms, found by the coders when there is no visit().
template <class A>
void visit_fields(timespec& t, A& a) {
  int64_t seconds = t.tv_sec, nanos = t.tv_nsec;
  a(seconds, nanos);
  t.tv_sec = seconds;
  t.tv_nsec = static_cast<long>(nanos);
}
template <class A>
void visit_fields(sys::Stat& s, A& a) {
  a(s.dev, s.ino, s.mode, s.nlink, s.uid, s.gid, s.rdev, s.size, s.blocks,
    s.atime, s.mtime, s.ctime, s.btime, s.mount_id);
}
template <class A>
void visit_fields(fs::Mark& m, A& a) {
  a(m.id, m.kind, m.position, m.command, m.time, m.name, m.generation);
}
template <class A>
void visit_fields(fs::BaseChange& c, A& a) {
  a(c.path, c.now, c.from, c.preimage, c.before, c.before_target, c.rest_held);
}
inline bool is_valid_enum(WireTag, fs::MarkKind, uint8_t n) { return n <= 5; }
inline bool is_valid_enum(WireTag, NetMode, uint8_t n) { return n <= 2; }
inline bool is_valid_enum(WireTag, RunEventKind, uint8_t n) { return n <= 2; }

// One message with its fds.
struct Message {
  Op op = Op::kError;
  uint16_t protocol = kProtocol;
  uint32_t serial = 0;
  std::string payload;
  std::vector<Fd> fds;
};
// Blocks until sent, unless the socket does not block (EAGAIN). The fds are
// borrowed.
Status send_op(int socket, Op op, uint32_t serial, const std::string& payload,
               std::span<const int> fds = {});
// nullopt: the peer closed. Anything malformed is an error of kInvalid.
Result<std::optional<Message>> receive_op(int socket);
// The pure half of it, for the fuzzer: a packet's bytes and its fds.
Result<Message> parse_packet(Frame packet);

}  // namespace stoplog::draft
