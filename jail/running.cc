// SPDX-License-Identifier: Apache-2.0
#include "jail/running.h"

#include <poll.h>
#include <signal.h>

#include <cstring>

#include "base/sys_process.h"
#include "base/unix_socket.h"
#include "jail/enter.h"
#include "jail/limits.h"
#include "jail/user_counts.h"
#include "jail/wire.h"

namespace stoplog::jail {
namespace {

// The zygote, this init and a spare one are of the same user and namespace.
constexpr uint64_t kOwnProcesses = 3;

}  // namespace

Running::~Running() {
  if (pidfd_) (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);
  clear_up();
}

void Running::clear_up() {
  control_.reset();
  // Everything inside is dead once init is; it leaves its groups by dying.
  constexpr std::chrono::milliseconds kPatience{10000};
  if (pidfd_ && cgroup_.version() != 0)
    (void)sys::wait_ready(pidfd_.get(), POLLIN,
                          static_cast<int>(kPatience.count()));
  (void)cgroup_.remove(kPatience);
}

void Running::kill(KillReason reason, uint64_t limit, uint64_t measured) {
  {
    std::lock_guard lock(mutex_);
    if (ended_.reason == KillReason::kNone)
      ended_ = {.reason = reason, .limit = limit, .measured = measured};
  }
  (void)sys::pidfd_send_signal(pidfd_.get(), SIGKILL);
}

Status Running::signal(int number) {
  if (number == SIGKILL) {
    kill(KillReason::kSupervisor);
    return {};
  }
  return send_message(
      control_.get(),
      Writer(Message::kSignal).number(static_cast<uint64_t>(number)).data());
}

Running::Ended Running::ended() const {
  std::lock_guard lock(mutex_);
  return ended_;
}

Status Running::apply_limits(const CommandSpec& command,
                             uint64_t& max_processes) {
  const LimitMeans means = limit_means(cgroup_);
  held_ = TRY(plan_limits(command, means)).held;
  const Limits& limits = command.limits;
  auto in_group = [&](LimitKind kind) {
    return held_[kind] == Mechanism::kCgroup1 ||
           held_[kind] == Mechanism::kCgroup2;
  };
  auto explain = [](Status done, LimitKind kind) -> Status {
    if (done) return done;
    // What is there before the command does not fit in it.
    if (done.error().err() == EBUSY)
      return fail(Code::kUsage, "no program starts with so little {}",
                  limit_name(kind));
    return std::unexpected(
        std::move(done.error())
            .context(fmt::format("cannot set the limit '{}'", limit_name(kind)))
            .as(Code::kUnsupported));
  };
  if (in_group(LimitKind::kMemory))
    TRY(explain(cgroup_.limit_memory(*limits.memory), LimitKind::kMemory));
  if (in_group(LimitKind::kPids))
    TRY(explain(cgroup_.limit_pids(*limits.pids), LimitKind::kPids));
  if (in_group(LimitKind::kCpus))
    TRY(explain(cgroup_.limit_cpus(*limits.cpus), LimitKind::kCpus));
  if (held_[LimitKind::kPids] == Mechanism::kRlimit)
    max_processes = *limits.pids + kOwnProcesses;
  // What a group allows may be all that the user has.
  const uint64_t share = means.process_rlimit ? process_share() : 0;
  if (share != 0 && (max_processes == 0 || share < max_processes))
    max_processes = share;
  return {};
}

Status Running::start(const CommandSpec& command,
                      const std::array<int, 3>& stdio) {
  RunRequest request{.argv = command.argv,
                     .env = command.env,
                     .cwd = command.cwd,
                     .umask = command.umask,
                     .max_files = command.limits.files.value_or(0),
                     .max_processes = 0,
                     .controlling_terminal = command.controlling_terminal};
  TRY(apply_limits(command, request.max_processes));
  started_ = std::chrono::steady_clock::now();
  Status sent = send_large(control_.get(), encode(request),
                           {stdio[0], stdio[1], stdio[2]});
  // An init that died has said why before, unless it was killed.
  if (!sent && sent.error().err() != EPIPE && sent.error().err() != ECONNRESET)
    return std::unexpected(
        std::move(sent.error()).context("cannot reach the jail"));
  return read_start(sent.has_value());
}

Status Running::read_start(bool sent) {
  const Packet packet = TRY(receive(control_.get()));
  if (packet.data.empty() && !sent)
    return fail_errno(EPIPE, "the jail is gone");
  // The limit is of what starts the command, too: it ends like one that ran.
  if (packet.data.empty() && limits_.memory && cgroup_.usage().oom_kills > 0)
    return {};
  if (packet.data.empty())
    return fail(Code::kUnsupported, "the jail died before the command started");
  Reader reader(packet.data);
  const Message kind = reader.kind();
  if (kind == Message::kStarted) return {};
  if (kind != Message::kNotRun)
    return std::unexpected(decode_error(packet.data));
  const auto what = static_cast<EnterFailure::What>(reader.number());
  const int err = static_cast<int>(reader.number());
  const std::string text = reader.text();
  if (what == EnterFailure::What::kWall)
    return std::unexpected(
        Error(Code::kUnsupported, "cannot build the jail: " + text)
            .with_hint("'stoplog doctor' tells what this machine lacks"));
  if (what == EnterFailure::What::kCwd) {
    not_run_ = fmt::format("cannot enter '{}': {}", text, std::strerror(err));
    not_run_code_ = 125;
  } else {
    not_run_ = fmt::format("cannot run '{}': {}", text, std::strerror(err));
    not_run_code_ = err == ENOENT || err == ENOTDIR ? 127 : 126;
  }
  return {};
}

}  // namespace stoplog::jail
