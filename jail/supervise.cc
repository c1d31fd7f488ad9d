// SPDX-License-Identifier: Apache-2.0
#include "jail/supervise.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/sys_mount.h"
#include "base/sys_process.h"
#include "base/unix_socket.h"
#include "jail/proc_memory.h"
#include "jail/proc_tree.h"
#include "jail/wire.h"

namespace stoplog::jail {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class Supervisor {
 public:
  Supervisor(Running& running, const SuperviseOptions& options)
      : running_(running), options_(options) {}
  Outcome run();

 private:
  void watch();
  int next_timeout() const;
  void read_report();
  void check_limits();
  void check_polled();
  uint64_t tmpfs_use() const;
  uint64_t shared_memory(const std::vector<pid_t>& pids);
  bool polled(LimitKind kind) const {
    return running_.held_[kind] == Mechanism::kPoll;
  }
  uint64_t elapsed_ms() const {
    return static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(
                                     Clock::now() - running_.started_)
                                     .count());
  }
  void measure_cpu(const CgroupUsage& group, Outcome& outcome);
  Outcome conclude();
  void clean_up();

  Running& running_;
  const SuperviseOptions& options_;
  std::optional<EndReport> report_;
  bool dead_ = false;
  MemoryFiles memory_files_;
  ProcessTimes times_;
  uint64_t segments_ = 0;  // as init told last
  bool asked_segments_ = false;
  uint64_t memory_peak_ = 0;
  uint64_t pids_peak_ = 0;
  uint64_t cpu_us_ = 0, user_us_ = 0, system_us_ = 0;
};

// How often what the kernel does not watch is looked at: 25 ms bound what a
// memory bomb gets before it is seen to some 100 MB.
constexpr int kPollMs = 25;
// With groups only the CPU total and the OOM count need a look.
constexpr int kGroupMs = 100;

int Supervisor::next_timeout() const {
  int timeout = -1;
  auto at_most = [&](int64_t ms) {
    ms = std::clamp<int64_t>(ms, 0, 1 << 30);
    if (timeout < 0 || ms < timeout) timeout = static_cast<int>(ms);
  };
  const Limits& limits = running_.limits_;
  if (limits.time)
    at_most(limits.time->count() - static_cast<int64_t>(elapsed_ms()));
  if (polled(LimitKind::kMemory) || polled(LimitKind::kCpu))
    at_most(kPollMs);
  else
    at_most(kGroupMs);
  return timeout;
}

void Supervisor::watch() {
  while (!report_ && !dead_) {
    pollfd fds[3] = {{running_.control_.get(), POLLIN, 0},
                     {running_.pidfd_.get(), POLLIN, 0},
                     {options_.client, POLLRDHUP, 0}};
    const int ready = ::poll(fds, 3, next_timeout());
    if (ready < 0 && errno != EINTR) break;
    if (ready > 0 && fds[0].revents != 0) read_report();
    if (report_) return;
    if (ready > 0 && fds[1].revents != 0) dead_ = true;
    if (ready > 0 && fds[2].revents != 0)
      running_.kill(KillReason::kSupervisor);
    check_limits();
  }
}

void Supervisor::read_report() {
  auto packet = receive(running_.control_.get());
  if (!packet || packet->data.empty()) {
    dead_ = true;
    return;
  }
  Reader reader(packet->data);
  switch (reader.kind()) {
    case Message::kEnded:
      if (auto end = decode_end(packet->data)) report_ = *end;
      return;
    case Message::kStopped:
      if (options_.on_stop) options_.on_stop(static_cast<int>(reader.number()));
      return;
    case Message::kResumed:
      if (options_.on_stop) options_.on_stop(0);
      return;
    case Message::kSegments:
      segments_ = reader.number();
      asked_segments_ = false;
      return;
    default:
      return;
  }
}

uint64_t Supervisor::tmpfs_use() const {
  uint64_t used = 0;
  for (const auto& fd : running_.memory_)
    if (auto usage = sys::fs_usage(fd->get())) used += usage->used_bytes;
  return used;
}

// What lies in memory without being any process's own: files of the tmpfs, of
// memfd_create(2), and segments of System V.
uint64_t Supervisor::shared_memory(const std::vector<pid_t>& pids) {
  // Only init is in their namespace; its answer comes before the next look.
  if (!asked_segments_)
    asked_segments_ =
        send_message(running_.control_.get(), Writer(Message::kSegments).data())
            .has_value();
  return tmpfs_use() + segments_ + memory_files_.measure(pids);
}

void Supervisor::check_polled() {
  const Limits& limits = running_.limits_;
  const TreeUsage tree = measure_tree(running_.pid_, &times_);
  pids_peak_ = std::max(pids_peak_, tree.processes);
  cpu_us_ = std::max({cpu_us_, tree.cpu_us, times_.total_us()});
  user_us_ = std::max(user_us_, tree.user_us);
  system_us_ = std::max(system_us_, tree.system_us);
  const uint64_t shared = shared_memory(tree.pids);
  uint64_t memory = tree.resident + shared;
  // Pages shared by many processes count once for each in their sum, so it is
  // only a reason to look closer.
  if (polled(LimitKind::kMemory) && memory > *limits.memory)
    memory = own_memory(tree.pids) + shared;
  memory_peak_ = std::max(memory_peak_, memory);
  if (polled(LimitKind::kMemory) && memory > *limits.memory)
    running_.kill(KillReason::kMemory, *limits.memory, memory);
}

void Supervisor::check_limits() {
  const Limits& limits = running_.limits_;
  if (limits.time &&
      elapsed_ms() >= static_cast<uint64_t>(limits.time->count()))
    running_.kill(KillReason::kTime,
                  static_cast<uint64_t>(limits.time->count()), elapsed_ms());
  const CgroupUsage group = running_.cgroup_.usage();
  if (group.cpu_us) cpu_us_ = std::max(cpu_us_, *group.cpu_us);
  if (group.oom_kills > 0 && limits.memory)
    running_.kill(KillReason::kMemory, *limits.memory,
                  group.memory_peak.value_or(*limits.memory));
  // Some controllers may be there and others not.
  if (running_.cgroup_.version() == 0 || polled(LimitKind::kMemory) ||
      polled(LimitKind::kCpu))
    check_polled();
  if (limits.cpu &&
      cpu_us_ / 1000 >= static_cast<uint64_t>(limits.cpu->count()))
    running_.kill(KillReason::kCpu, static_cast<uint64_t>(limits.cpu->count()),
                  cpu_us_ / 1000);
}

// The sources differ by what each has missed, so the largest total is the one
// told, in two parts as the best source that has parts divides it: what was
// waited for, else (killed, nobody was) the group's, else what polling saw.
void Supervisor::measure_cpu(const CgroupUsage& group, Outcome& outcome) {
  uint64_t user = user_us_, system = system_us_;
  if (group.user_us && group.system_us) {
    user = *group.user_us;
    system = *group.system_us;
  }
  if (report_) {
    user = report_->user_us;
    system = report_->system_us;
    cpu_us_ = std::max(cpu_us_, user + system);
    memory_peak_ = std::max(memory_peak_, report_->max_rss);
  }
  outcome.cpu_ms = std::max(cpu_us_, group.cpu_us.value_or(0)) / 1000;
  const double share =
      user + system == 0
          ? 0
          : static_cast<double>(user) / static_cast<double>(user + system);
  outcome.cpu_user_ms =
      static_cast<uint64_t>(share * static_cast<double>(outcome.cpu_ms));
  outcome.cpu_system_ms = outcome.cpu_ms - outcome.cpu_user_ms;
}

Outcome Supervisor::conclude() {
  Outcome outcome;
  outcome.held = running_.held_;
  outcome.wall_ms = elapsed_ms();
  if (running_.not_run_) {
    outcome.not_run = running_.not_run_;
    outcome.exit = running_.not_run_code_;
    return outcome;
  }
  const CgroupUsage group = running_.cgroup_.usage();
  measure_cpu(group, outcome);
  outcome.memory_peak = group.memory_peak.value_or(memory_peak_);
  // init is counted in the group.
  outcome.pids_peak = group.pids_peak ? *group.pids_peak - 1
                                      : std::max<uint64_t>(1, pids_peak_);
  outcome.refused_pids = group.pids_refused;
  auto ended = running_.ended();
  if (report_) {
    const int status = report_->status;
    if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
    outcome.exit =
        WIFSIGNALED(status) ? 128 + outcome.signal : WEXITSTATUS(status);
  }
  if (ended.reason == KillReason::kNone && running_.limits_.memory &&
      group.oom_kills > 0)
    ended = {.reason = KillReason::kMemory,
             .limit = *running_.limits_.memory,
             .measured = outcome.memory_peak};
  // Ended from outside without a word: the host's OOM killer, an operator.
  if (!report_ && ended.reason == KillReason::kNone)
    ended.reason = KillReason::kSupervisor;
  // A command that was done before the kill arrived has ended by itself, but
  // for one that the memory limit shot in parts.
  if (report_ && ended.reason != KillReason::kMemory) return outcome;
  outcome.killed_by = ended.reason;
  outcome.limit = ended.limit;
  outcome.measured = ended.measured;
  if (ended.reason == KillReason::kNone) return outcome;
  outcome.signal = SIGKILL;
  outcome.exit = ended.reason == KillReason::kSupervisor ? 128 + SIGKILL : 124;
  return outcome;
}

void Supervisor::clean_up() {
  // Everything inside is dead once init is.
  (void)sys::wait_ready(running_.pidfd_.get(), POLLIN, -1);
  running_.clear_up();
}

Outcome Supervisor::run() {
  if (!running_.not_run_) watch();
  if (dead_ && !running_.not_run_) read_report();
  Outcome outcome = conclude();
  if (options_.on_end) options_.on_end(outcome);
  clean_up();
  return outcome;
}

Outcome supervise(Running& running, const SuperviseOptions& options) {
  return Supervisor(running, options).run();
}

}  // namespace stoplog::jail
