// SPDX-License-Identifier: Apache-2.0
#include "draft/core.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/json_path.h"
#include "base/log.h"
#include "base/sys_file.h"
#include "base/temp_file.h"
#include "draft/freeze.h"
#include "draft/home.h"
#include "draft/names.h"
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

Result<std::unique_ptr<DaemonCore>> make_core(const CoreContext& context) {
  return Core::make(context);
}

Core::Core(const CoreContext& context, Ledger ledger, Fd events_fd)
    : shape_(context.shape),
      ledger_(std::move(ledger)),
      events_fd_(std::move(events_fd)) {}

Result<std::unique_ptr<DaemonCore>> Core::make(const CoreContext& context) {
  Ledger ledger = TRY(Ledger::open(context.layout, context.draft.id));
  Fd events(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!events) return fail_errno(errno, "cannot make an event fd");
  auto core = std::unique_ptr<Core>(
      new Core(context, std::move(ledger), std::move(events)));
  core->session_ = TRY(Session::open(context, core.get()));
  for (const fs::Mark& mark : core->session_->tree().marks())
    core->last_command_ = std::max(core->last_command_, mark.command);
  return std::unique_ptr<DaemonCore>(std::move(core));
}

Core::~Core() { (void)close(); }

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
  job->running = TRY(session_->zygote().spawn(command_spec(request), fds));
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

void Core::record(std::string_view kind, const Json& fields, Sync sync,
                  const std::function<void()>& written) {
  auto appended = ledger_.append(kind, fields, sync, written);
  if (!appended)
    log::error("cannot write the ledger: {}", appended.error().text());
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

Status Core::settle() {
  drift_.commit_due();
  return session_->tree().settle();
}

Result<GcDone> Core::gc(const Gc& request) {
  return collect({&session_->tree(), &session_->home_tree()}, request);
}

Result<fs::Mark> Core::barrier() {
  // HOME has its own journal; who exports the draft reads it up to here.
  TRY(session_->home_tree().mark(fs::MarkKind::kBarrier, 0, ""));
  record_drift(drift_.marked());
  return session_->tree().mark(fs::MarkKind::kBarrier, 0, "");
}

// Commands hold still, and what they stored through mappings is written back,
// so that the mark is one moment of them; those that start meanwhile, too.
Result<fs::Mark> Core::snapshot(const std::string& name) {
  std::lock_guard one(snapshot_);
  for (const fs::Mark& mark : session_->tree().marks())
    if (!name.empty() && mark.name == name)
      return fail(Code::kUsage, "there is a mark '{}' already", name);
  std::map<uint32_t, std::shared_ptr<jail::Running>> held;
  std::vector<Frozen> frozen;
  for (;;) {
    std::unique_lock starting(starts_);
    std::vector<std::shared_ptr<jail::Running>> more;
    {
      std::lock_guard lock(mutex_);
      for (const auto& [number, job] : jobs_)
        if (held.emplace(number, job->running).second)
          more.push_back(job->running);
    }
    if (more.empty())
      return session_->tree().mark(fs::MarkKind::kNamed, 0, name);
    starting.unlock();
    for (const auto& command : more) {
      auto stopped = Frozen::stop({.init = command->pid(),
                                   .pidfd = command->pidfd(),
                                   .group = command->group()});
      if (!stopped && stopped.error().err() == ESRCH) continue;  // it ended
      frozen.push_back(TRY(std::move(stopped)));
      TRY(sync_mappings(frozen.back().pids(),
                        {.mount = session_->mount_path(),
                         .workspace = session_->workspace()}));
    }
  }
}

// Written down here, for who asked may be gone by then.
Result<fs::Mark> Core::rollback(fs::Position to) {
  std::lock_guard starting(starts_);
  if (!running().empty())
    return fail_errno(EBUSY, "a command runs in this draft");
  std::string name;
  for (const fs::Mark& mark : session_->tree().marks())
    if (mark.position == to) name = mark_name(mark);
  fs::Mark mark = TRY(session_->tree().rollback(to));
  session_->server().drain();
  record("rollback", Json::object().set("to", name).set("position", to),
         Sync::kNo);
  return mark;
}

Result<fs::Mark> Core::commit_base(fs::Position reviewed,
                                   const std::vector<fs::BaseChange>& changes) {
  fs::Mark mark = TRY(session_->tree().commit_base(reviewed, changes));
  session_->server().drain();
  // Whoever asked notes next that the draft knows, and syncs that.
  TRY(session_->tree().fsync());
  record_drift(drift_.committed(changes));
  return mark;
}

std::vector<fs::Mark> Core::marks() const { return session_->tree().marks(); }

Status Core::fork_into(int directory, fs::Position at) {
  TRY(session_->tree().fork_into(directory, at));
  return fork_home(session_->home_tree(), directory);
}

Result<MountInfo> Core::mount(const std::string& dir) {
  if (!shape_.mount.empty() && (dir.empty() || dir == shape_.mount))
    return mounted();
  return fail_errno(EBUSY, "the draft's view is not shown at '{}'", dir);
}

Status Core::unmount() {
  return shape_.mount.empty() ? fail_errno(EINVAL, "the view is not mounted")
                              : Status{};
}

MountInfo Core::mounted() const { return {.path = shape_.mount}; }

Status Core::note(const std::string& name, const std::string& text) {
  // Read inside by another id than ours.
  TRY(write_file(session_->notes_dir(), name, text, 0644, Sync::kNo));
  if (!session_->has_jail()) return {};
  return session_->zygote().write_note(name, text);
}

void Core::describe(DaemonStatus& status) const {
  fs::Stats stats = session_->tree().stats();
  status.held_bytes = stats.held_bytes;
  status.touched_nodes = stats.touched_nodes;
  status.notes = session_->notes();
}

void Core::drift(const fs::DriftNote& note) {
  record_drift(drift_.noted(note));
}

void Core::record_drift(const HeldDrift::Notes& notes) {
  for (const fs::DriftNote& note : notes) {
    Json fields = Json::object();
    set_path(fields, "path", note.path.str());
    set_path(fields, "origin", note.origin.str());
    record("drift", fields.set("what", note.what), Sync::kNo);
  }
}

void Core::denied(const fs::Denial& denial) {
  // The first of each thousand is enough: an agent can try as often as it
  // likes, and the ledger is not its to fill.
  uint64_t count = 0;
  {
    std::lock_guard lock(mutex_);
    count = denials_++;
  }
  if (count % 1000 != 0) return;
  Json fields = Json::object();
  set_path(fields, "path", denial.path);
  fields.set("operation", denial.operation).set("count", count + 1);
  record("denied", fields, Sync::kNo);
}

Status Core::close() {
  if (!session_) return {};
  {
    std::lock_guard lock(mutex_);
    for (auto& [command, job] : jobs_)
      job->running->kill(jail::KillReason::kSupervisor);
  }
  for (;;) {
    std::unique_ptr<Job> job;
    {
      std::lock_guard lock(mutex_);
      if (!ended_.empty()) {
        job = std::move(ended_.back());
        ended_.pop_back();
      } else if (jobs_.empty()) {
        break;
      }
    }
    if (job)
      job->thread.join();
    else
      ::usleep(1000);  // supervise() ends within a second of the kill
  }
  session_->close();
  record_drift(drift_.all());
  session_.reset();
  return {};
}

}  // namespace stoplog::draft
