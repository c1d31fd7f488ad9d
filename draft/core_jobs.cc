// SPDX-License-Identifier: Apache-2.0
// The commands of a draft: started, supervised to their end, told of.
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "draft/core.h"
#include "draft/report.h"
#include "jail/environment.h"
#include "jail/tty.h"

namespace stoplog::draft {
namespace {

int64_t now_ms() {
  timespec t = Clock::real().now();
  return t.tv_sec * 1000 + t.tv_nsec / 1'000'000;
}

std::optional<jail::Limits::Millis> millis(const Limit& limit) {
  if (!limit.value) return std::nullopt;
  return jail::Limits::Millis(*limit.value);
}

// What holds each limit that is set; "none" where nothing does.
std::vector<std::pair<std::string, std::string>> held_by(
    const Limits& limits, const jail::Held& held) {
  const std::pair<jail::LimitKind, const Limit*> kinds[] = {
      {jail::LimitKind::kTime, &limits.time_ms},
      {jail::LimitKind::kCpu, &limits.cpu_ms},
      {jail::LimitKind::kCpus, &limits.cpus_milli},
      {jail::LimitKind::kMemory, &limits.memory},
      {jail::LimitKind::kPids, &limits.pids},
      {jail::LimitKind::kFiles, &limits.files},
      {jail::LimitKind::kOutput, &limits.output}};
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [kind, limit] : kinds)
    if (limit->value)
      out.emplace_back(jail::limit_name(kind),
                       jail::mechanism_name(held[kind]));
  if (limits.disk.value) out.emplace_back("disk", "overlay");
  if (limits.inodes.value) out.emplace_back("inodes", "overlay");
  return out;
}

}  // namespace

jail::CommandSpec Core::command_spec(const RunRequest& request) const {
  jail::CommandSpec spec;
  spec.argv = request.argv;
  spec.cwd = session_->workspace();
  if (!request.cwd.empty()) spec.cwd += "/" + request.cwd;
  spec.env =
      jail::build_environment(session_->spec(), {.caller = request.env,
                                                 .extra = request.env_extra,
                                                 .path = session_->path(),
                                                 .cwd = spec.cwd,
                                                 .shell = request.shell});
  spec.umask = static_cast<mode_t>(request.umask & 0777);
  spec.controlling_terminal = request.tty_streams != 0;
  const Limits& in = request.limits;
  spec.limits.time = millis(in.time_ms);
  spec.limits.cpu = millis(in.cpu_ms);
  if (in.cpus_milli.value)
    spec.limits.cpus = static_cast<double>(*in.cpus_milli.value) / 1000.0;
  spec.limits.memory = in.memory.value;
  spec.limits.pids = in.pids.value;
  spec.limits.files = in.files.value;
  spec.limits.output = in.output.value;
  auto require = [&](const Limit& limit, jail::LimitKind kind) {
    if (limit.asked) spec.required.push_back(kind);
  };
  require(in.time_ms, jail::LimitKind::kTime);
  require(in.cpu_ms, jail::LimitKind::kCpu);
  require(in.cpus_milli, jail::LimitKind::kCpus);
  require(in.memory, jail::LimitKind::kMemory);
  require(in.pids, jail::LimitKind::kPids);
  require(in.files, jail::LimitKind::kFiles);
  require(in.output, jail::LimitKind::kOutput);
  return spec;
}

Result<RunStarted> Core::run(const RunRequest& request, std::vector<Fd> stdio,
                             Teller tell) {
  if (!session_->has_jail())
    return std::unexpected(
        Error(Code::kUnsupported, "the draft's view is shown by root")
            .with_hint("`stoplog unmount` first"));
  TRY(session_->wait_for_jail());
  reap_jobs();
  fs::Quota quota;
  if (request.limits.disk.value) quota.bytes = *request.limits.disk.value;
  if (request.limits.inodes.value) quota.inodes = *request.limits.inodes.value;
  session_->tree().set_quota(quota);
  session_->home_tree().set_quota(quota);

  jail::Pty pty;
  if (request.tty_streams != 0) {
    pty = TRY(session_->zygote().open_pty());
    if (!request.terminal.empty())
      TRY(jail::shape_pty(pty.master.get(), request.terminal));
  }
  auto stream = [&](size_t i) {
    return (request.tty_streams >> i & 1) != 0 ? pty.slave.get()
                                               : stdio[i].get();
  };
  const jail::Stdio fds{stream(0), stream(1), stream(2)};
  std::lock_guard starting(starts_);
  auto job = std::make_unique<Job>();
  job->command = last_command_ + 1;
  job->request = request;
  job->tell = std::move(tell);
  job->started_ms = now_ms();
  job->begin =
      TRY(session_->tree().mark(fs::MarkKind::kCommandBegin, job->command, ""));
  last_command_ = job->command;
  job->before = session_->workspace_stats();
  job->home_before = session_->home_tree().stats();
  begun_.add(begun_entry(job->command, request, session_->workspace(),
                         rfc3339(Clock::real().now())));
  auto running = session_->zygote().spawn(command_spec(request), fds);
  if (!running) begun_.done();
  job->running = TRY(std::move(running));
  RunStarted started{.command = job->command,
                     .pid = job->running->pid(),
                     .notes = session_->notes(),
                     .terminal = std::move(pty.master)};
  Job& ref = *job;
  std::lock_guard lock(mutex_);
  jobs_[job->command] = std::move(job);
  ref.thread = std::thread([this, &ref] { supervise_job(ref); });
  return started;
}

void Core::supervise_job(Job& job) {
  jail::SuperviseOptions options;
  options.on_stop = [this, &job](int signal) {
    {
      std::lock_guard lock(mutex_);
      job.stopped = signal != 0;
    }
    push({.command = job.command,
          .kind =
              signal != 0 ? RunEventKind::kStopped : RunEventKind::kContinued,
          .signal = signal,
          .outcome = {}});
  };
  // Told as soon as it is known: clearing up takes longer than most commands.
  options.on_end = [this, &job](const jail::Outcome& outcome) {
    finish(job, outcome);
  };
  std::shared_ptr<jail::Running> running = job.running;
  jail::supervise(*running, options);
  // Made ready while nobody waits; the next spawn() is then a fork and an exec.
  session_->zygote().prepare_next();
  job.done = true;
}

void Core::finish(Job& job, const jail::Outcome& outcome) {
  await_losses(job);
  uint64_t changed = session_->tree().changed_by_command();
  auto end = session_->tree().mark(fs::MarkKind::kCommandEnd, job.command, "");
  if (!end)
    log::error("cannot mark the end of command {}: {}", job.command,
               end.error().text());
  Outcome told = describe_outcome(job, outcome, end ? *end : fs::Mark{});
  const Json entry =
      run_entry(job.command, job.request, session_->workspace(), told)
          .set("changed", changed);
  bool is_told = false;
  // As soon as the entry is written: replacing draft.json takes longer than all
  // else that is done here.
  auto tell = [&] {
    is_told = true;
    const uint32_t command = job.command;
    {
      std::lock_guard lock(mutex_);
      auto found = jobs_.find(command);
      if (found != jobs_.end()) {
        // Of the last moment: too late for the entry, not for who waits.
        if (told.lost.empty()) told.lost = found->second->lost;
        ended_.push_back(std::move(found->second));
        jobs_.erase(found);
      }
    }
    RunEvent event{.command = command,
                   .kind = RunEventKind::kEnded,
                   .signal = 0,
                   .outcome = std::move(told)};
    // Not by way of the server's thread, which may wait for this processor.
    event.told = job.tell && job.tell(event);
    push(std::move(event));
  };
  record("run", entry, Sync::kNo, tell);
  begun_.done();
  if (!is_told) tell();  // the ledger could not be written; that is logged
}

Outcome Core::describe_outcome(const Job& job, const jail::Outcome& outcome,
                               const fs::Mark& end) const {
  Outcome out;
  out.exit = outcome.exit;
  out.signal = outcome.signal;
  if (const char* name = jail::kill_reason_name(outcome.killed_by))
    out.killed_by = name;
  if (outcome.not_run) {
    out.failure = *outcome.not_run;
    out.failure_code = outcome.exit;
  }
  {
    std::lock_guard lock(mutex_);
    out.lost = job.lost;
  }
  out.limit = outcome.limit;
  out.measured = outcome.measured;
  out.refused_pids = outcome.refused_pids;
  out.wall_ms = outcome.wall_ms;
  out.cpu_ms = outcome.cpu_ms;
  out.cpu_user_ms = outcome.cpu_user_ms;
  out.cpu_system_ms = outcome.cpu_system_ms;
  const fs::Stats now = session_->workspace_stats();
  const fs::Stats home = session_->home_tree().stats();
  // What our walk reads in this moment may be counted on one side alone.
  out.read_bytes =
      std::max(now.read_bytes, job.before.read_bytes) - job.before.read_bytes;
  out.written_bytes = now.written_bytes - job.before.written_bytes;
  out.refused_disk = now.refused_bytes - job.before.refused_bytes +
                     home.refused_bytes - job.home_before.refused_bytes;
  out.refused_inodes = now.refused_nodes - job.before.refused_nodes +
                       home.refused_nodes - job.home_before.refused_nodes;
  out.memory_peak = outcome.memory_peak;
  out.pids_peak = outcome.pids_peak;
  out.held = held_by(job.request.limits, outcome.held);
  out.position_before = job.begin.position;
  out.position_after = end.position;
  out.touched_nodes = now.touched_nodes;
  return out;
}

void Core::push(RunEvent event) {
  {
    std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
  }
  uint64_t one = 1;
  (void)!::write(events_fd_.get(), &one, sizeof one);
}

std::vector<RunEvent> Core::take_events() {
  uint64_t count = 0;
  (void)!::read(events_fd_.get(), &count, sizeof count);
  std::vector<RunEvent> out;
  {
    std::lock_guard lock(mutex_);
    out.swap(events_);
  }
  reap_jobs();
  return out;
}

void Core::reap_jobs() {
  // Only those that are through: waiting for one that clears up would hold back
  // the news of its end, by as long as the command itself took.
  std::vector<std::unique_ptr<Job>> through;
  {
    std::lock_guard lock(mutex_);
    std::erase_if(ended_, [&](std::unique_ptr<Job>& job) {
      if (!job->done) return false;
      through.push_back(std::move(job));
      return true;
    });
  }
  for (auto& job : through) job->thread.join();
}

Status Core::signal(uint32_t command, int signal) {
  std::lock_guard lock(mutex_);
  auto job = jobs_.find(command);
  if (job == jobs_.end()) return fail_errno(ESRCH);
  return job->second->running->signal(signal);
}

Status Core::kill(uint32_t command) {
  std::lock_guard lock(mutex_);
  auto job = jobs_.find(command);
  if (job == jobs_.end())
    return fail_errno(ESRCH, "no command {} runs", command);
  job->second->running->kill(jail::KillReason::kSupervisor);
  return {};
}

Status Core::over_output(uint32_t command, uint64_t measured) {
  std::lock_guard lock(mutex_);
  auto job = jobs_.find(command);
  if (job == jobs_.end()) return {};  // it ended meanwhile
  uint64_t limit = job->second->request.limits.output.value.value_or(0);
  job->second->running->kill(jail::KillReason::kOutput, limit, measured);
  return {};
}

std::vector<RunningCommand> Core::running() const {
  std::vector<RunningCommand> out;
  std::lock_guard lock(mutex_);
  for (const auto& [command, job] : jobs_)
    out.push_back({.command = command,
                   .pid = job->running->pid(),
                   .argv = job->request.argv,
                   .cwd = job->request.cwd,
                   .started_ms = job->started_ms,
                   .stopped = job->stopped});
  return out;
}

}  // namespace stoplog::draft
