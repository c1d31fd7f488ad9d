// SPDX-License-Identifier: Apache-2.0
// Runs one command in a jail over a plain directory: the walls without the
// overlay, for tests and measurements.
//
//   jailrun [-w DIR] [-s SOURCE] [-H HOME] [-n none|host] [-l LIMIT=VALUE]...
//           [-c CWD] [-e NAME[=VALUE]]... [-R REPORT] [-x WALL]... [-f WALL]...
//           [-r REPEAT] [-b SOURCE[:TARGET]]... -- CMD...
//
// -x leaves a wall out and -f lets it fail; no other program can do either.
// As root the command runs as host id 65533, which must own DIR.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <thread>

#include "base/units.h"
#include "jail/environment.h"
#include "jail/home.h"
#include "jail/relay.h"
#include "jail/supervise.h"
#include "jail/toolchains.h"
#include "jail/zygote.h"

using namespace stoplog;
using namespace stoplog::jail;

namespace {

struct Options {
  JailSpec spec;
  CommandSpec command;
  std::vector<std::string> env;
  std::string report;
  int repeat = 1;
};

const std::map<std::string, Wall>& walls() {
  static const std::map<std::string, Wall> kWalls = {
      {"root", Wall::kRoot},
      {"ro", Wall::kReadOnly},
      {"proc", Wall::kProc},
      {"pidns", Wall::kPidNs},
      {"netns", Wall::kNetNs},
      {"ipcns", Wall::kIpcNs},
      {"usernslimit", Wall::kUserNsLimit},
      {"caps", Wall::kCaps},
      {"nnp", Wall::kNoNewPrivs},
      {"seccomp", Wall::kSeccomp},
      {"landlock", Wall::kLandlock},
      {"fds", Wall::kFds},
      {"env", Wall::kEnvironment},
      {"keyring", Wall::kKeyring},
      {"session", Wall::kSession},
      {"dumpable", Wall::kUndumpable},
      {"identity", Wall::kIdentity},
      {"death", Wall::kDeath},
      {"nosuid", Wall::kNoSuid},
      {"rlimits", Wall::kRlimits},
  };
  return kWalls;
}

// Thrown, not std::exit: what the jail has made goes by destructors.
struct Exit {
  int code;
};

[[noreturn]] void die(int code, const Error& error) {
  std::fprintf(stderr, "jailrun: %s\n", error.text().c_str());
  if (!error.hint().empty())
    std::fprintf(stderr, "hint: %s\n", error.hint().c_str());
  throw Exit{code};
}

Status set_limit(Limits& limits, std::string_view text) {
  const size_t at = text.find('=');
  if (at == std::string_view::npos) return fail(Code::kUsage, "no value");
  const std::string_view name = text.substr(0, at), value = text.substr(at + 1);
  if (name == "time")
    limits.time = TRY(parse_duration(value));
  else if (name == "cpu")
    limits.cpu = TRY(parse_duration(value));
  else if (name == "cpus")
    limits.cpus = std::stod(std::string(value));
  else if (name == "memory")
    limits.memory = TRY(parse_size(value));
  else if (name == "pids")
    limits.pids = TRY(parse_size(value));
  else if (name == "files")
    limits.files = TRY(parse_size(value));
  else if (name == "output")
    limits.output = TRY(parse_size(value));
  else
    return fail(Code::kUsage, "unknown limit {}", name);
  return {};
}

LimitKind limit_kind(std::string_view text) {
  for (LimitKind kind : kAllLimits)
    if (text.starts_with(std::string(limit_name(kind)) + "=")) return kind;
  return LimitKind::kTime;
}

Options parse(int argc, char** argv) {
  Options o;
  char cwd[4096];
  o.spec.workspace = ::getcwd(cwd, sizeof cwd);
  for (int option;
       (option = ::getopt(argc, argv, "+w:s:H:n:l:c:e:R:x:f:r:b:")) != -1;) {
    const std::string value = optarg != nullptr ? optarg : "";
    switch (option) {
      case 'w':
        o.spec.workspace = value;
        break;
      case 's':
        o.spec.workspace_tree.path = value;
        break;
      case 'H':
        o.spec.home = value;
        break;
      case 'n':
        o.spec.net = value == "host" ? Net::kHost : Net::kNone;
        break;
      case 'l':
        if (auto s = set_limit(o.command.limits, value); !s) die(2, s.error());
        o.command.required.push_back(limit_kind(value));
        break;
      case 'c':
        o.command.cwd = value;
        break;
      case 'e':
        o.env.push_back(value);
        break;
      case 'R':
        o.report = value;
        break;
      case 'x':
        o.spec.test_leave_out.add(walls().at(value));
        break;
      case 'f':
        o.spec.test_fail.add(walls().at(value));
        break;
      case 'r':
        o.repeat = std::atoi(optarg);
        break;
      case 'b':
        o.spec.binds.push_back({value.substr(0, value.find(':')),
                                value.substr(value.find(':') + 1), true});
        break;
      default:
        std::exit(2);
    }
  }
  for (int i = optind; i < argc; ++i) o.command.argv.emplace_back(argv[i]);
  return o;
}

void fill(Options& o) {
  Identity& id = o.spec.identity;
  id.host_uid = id.uid = ::getuid();
  id.host_gid = id.gid = ::getgid();
  if (::getuid() == 0 && !o.spec.test_leave_out.has(Wall::kIdentity)) {
    id.host_uid = id.host_gid = 65533;
    id.uid = id.gid = 1000;
  }
  if (o.spec.workspace_tree.empty())
    o.spec.workspace_tree.path = o.spec.workspace;
  const char* home = std::getenv("HOME");
  const char* path = std::getenv("PATH");
  if (home == nullptr) home = "/home/user";
  if (o.spec.home.empty()) o.spec.home = choose_home(home, o.spec.workspace);
  ToolchainPlan tools = plan_toolchains({.path = path != nullptr ? path : "",
                                         .home = home,
                                         .workspace = o.spec.workspace,
                                         .hidden = {}},
                                        probe_path);
  for (Bind& bind : tools.binds) o.spec.binds.push_back(std::move(bind));
  if (o.command.cwd.empty()) o.command.cwd = o.spec.workspace;
  EnvironmentInput input;
  for (char** entry = environ; *entry != nullptr; ++entry)
    input.caller.emplace_back(*entry);
  input.extra = o.env;
  input.path = tools.path;
  input.cwd = o.command.cwd;
  o.command.env = build_environment(o.spec, input);
}

void write_report(const Options& o, const Outcome& out) {
  std::ofstream file(o.report);
  const char* reason = kill_reason_name(out.killed_by);
  file << "exit=" << out.exit << " signal=" << out.signal
       << " killed_by=" << (reason != nullptr ? reason : "-")
       << " limit=" << out.limit << " measured=" << out.measured
       << " refused_pids=" << out.refused_pids << " wall_ms=" << out.wall_ms
       << " cpu_ms=" << out.cpu_ms << " user_ms=" << out.cpu_user_ms
       << " system_ms=" << out.cpu_system_ms
       << " memory_peak=" << out.memory_peak << " pids_peak=" << out.pids_peak;
  for (LimitKind kind : kAllLimits)
    file << " held_" << limit_name(kind) << "="
         << mechanism_name(out.held[kind]);
  file << "\n";
}

// The daemon's part in a thread, the client's part here, a socket between them:
// 't' the command stopped, 'e' it has ended.
int run_once(const Options& o, Zygote& zygote, const Streams& streams) {
  auto relay = Relay::open(streams);
  if (!relay) die(125, relay.error());
  auto fds = relay->command_fds();
  CommandSpec command = o.command;
  Pty pty;
  if (streams.any_terminal()) {
    auto opened = zygote.open_pty();
    if (!opened) die(125, opened.error());
    pty = std::move(*opened);
    auto shape = relay->terminal_shape();
    if (!shape) die(125, shape.error());
    if (auto s = shape_pty(pty.master.get(), *shape); !s) die(125, s.error());
    for (int& fd : fds)
      if (fd < 0) fd = pty.slave.get();
    command.controlling_terminal = true;
  }
  auto spawned = zygote.spawn(command, {fds[0], fds[1], fds[2]});
  relay->sent();
  pty.slave.reset();
  if (!spawned)
    die(spawned.error().code() == Code::kUnsupported ? 5 : 125,
        spawned.error());
  if (pty.master)
    if (auto taken = relay->use_terminal(std::move(pty.master)); !taken)
      die(125, taken.error());
  Running& running = **spawned;
  int events[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, events) < 0)
    return 125;
  Outcome out;
  // The relay takes signals; a thread that did not block them would die.
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::thread supervisor([&] {
    auto tell = [&](char what) { (void)!::write(events[1], &what, 1); };
    out = supervise(running, {.on_stop =
                                  [&](int number) {
                                    if (number != 0) tell('t');
                                  },
                              .on_end = [&](const Outcome&) { tell('e'); }});
  });
  const RelayResult relayed = relay->run(
      {.event_fd = events[0],
       .on_event =
           [&] {
             char what = 'e';
             (void)!::read(events[0], &what, 1);
             return what == 't' ? Event::kStopped : Event::kEnded;
           },
       .on_signal = [&](int number) { (void)running.signal(number); },
       .output_limit = o.command.limits.output,
       .on_output_limit =
           [&](uint64_t bytes) {
             running.kill(KillReason::kOutput, *o.command.limits.output, bytes);
           }});
  supervisor.join();
  ::close(events[0]);
  ::close(events[1]);
  if (relayed.output_limited)
    std::fprintf(stderr, "jailrun: output limit reached\n");
  if (out.not_run) std::fprintf(stderr, "jailrun: %s\n", out.not_run->c_str());
  if (!o.report.empty()) write_report(o, out);
  return out.exit;
}

}  // namespace

int main(int argc, char** argv) try {
  const Streams streams = look_at_streams();
  Options o = parse(argc, argv);
  fill(o);
  auto zygote = Zygote::start(o.spec);
  if (!zygote) die(5, zygote.error());
  if (auto ready = zygote->wait_ready(); !ready) die(5, ready.error());
  int code = 0;
  for (int i = 0; i < o.repeat; ++i) code = run_once(o, *zygote, streams);
  return code;
} catch (const Exit& exit) {
  return exit.code;
}
