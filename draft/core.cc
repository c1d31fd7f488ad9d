// SPDX-License-Identifier: Apache-2.0
#include "draft/core.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/json_path.h"
#include "base/log.h"
#include "base/sys_file.h"
#include "base/temp_file.h"
#include "draft/freeze.h"
#include "draft/home.h"
#include "draft/names.h"

namespace stoplog::draft {
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
  Fd dir = TRY(sys::openat(AT_FDCWD, context.layout.draft(context.draft.id),
                           O_RDONLY | O_DIRECTORY));
  if (auto lost = record_lost(dir.get(), core->ledger_); !lost)
    log::error("cannot record the commands that a killed daemon left: {}",
               lost.error().text());
  core->begun_ = TRY(Begun::open(dir.get()));
  core->session_ = TRY(Session::open(
      context, {.workspace = core.get(), .home = &core->home_observer_}));
  for (const fs::Mark& mark : core->session_->tree().marks())
    core->last_command_ = std::max(core->last_command_, mark.command);
  return std::unique_ptr<DaemonCore>(std::move(core));
}

Core::~Core() { (void)close(); }

void Core::record(std::string_view kind, const Json& fields, Sync sync,
                  const std::function<void()>& written) {
  auto appended = ledger_.append(kind, fields, sync, written);
  if (!appended)
    log::error("cannot write the ledger: {}", appended.error().text());
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
                                   const std::vector<fs::BaseChange>& changes,
                                   const fs::ToldBy& told) {
  fs::Mark mark = TRY(session_->tree().commit_base(reviewed, changes, told));
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

void Core::lost(const std::string& path) { end_for_loss(path, false); }

void Core::HomeObserver::lost(const std::string& path) {
  core.end_for_loss(path, true);
}

// Which of the commands had it mapped the kernel does not say, and none may go
// on as if its work was whole.
void Core::end_for_loss(const std::string& path, bool in_home) {
  constexpr size_t kMostLossy = 1000;
  std::lock_guard lock(mutex_);
  for (auto& [command, job] : jobs_) {  // with one there is a session
    if (job->lost.empty())
      job->lost = path.empty()
                      ? "a file without a name"
                      : (in_home ? session_->home() : session_->workspace()) +
                            "/" + path;
    if (path.empty())
      ++job->nameless_losses;
    else if (job->lossy.size() < kMostLossy)
      job->lossy.emplace(in_home, path);
    job->running->kill(jail::KillReason::kSupervisor);
  }
}

// What a command stored and could not be written either is not the next one's
// loss. Of files without a name nothing says when all of it has come.
void Core::await_losses(Job& job) {
  std::set<std::pair<bool, std::string>> lossy, synced;
  uint64_t nameless = 0;
  auto look = [&] {
    std::lock_guard lock(mutex_);
    lossy = job.lossy;
    const uint64_t before = std::exchange(nameless, job.nameless_losses);
    return before != nameless;
  };
  bool more = look();
  // Others may be found lossy meanwhile.
  while (synced.size() < lossy.size()) {
    std::vector<std::string> here, home;
    for (const auto& one : lossy)
      if (synced.insert(one).second)
        (one.first ? home : here).push_back(one.second);
    // fsync alone waits for it: syncfs does not, on FUSE.
    (void)sync_files(session_->mount_path(), here);
    (void)sync_files(session_->home_mount_path(), home);
    more = look() || more;
  }
  constexpr useconds_t kPause = 100'000;
  for (int left = 20; more && left > 0; --left) {
    ::usleep(kPause);
    more = look();
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
