// SPDX-License-Identifier: Apache-2.0
// Core: the DaemonCore that runs commands for real. The server's thread calls
// it; each command has a thread that supervises it to its end, marks the
// timeline, writes the ledger and then queues the kEnded event.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "draft/begun.h"
#include "draft/daemon_core.h"
#include "draft/held_drift.h"
#include "draft/ledger.h"
#include "draft/session.h"
#include "jail/supervise.h"

namespace stoplog::draft {

class Core : public DaemonCore, private fs::Observer {
 public:
  static Result<std::unique_ptr<DaemonCore>> make(const CoreContext& context);
  ~Core() override;

  Result<RunStarted> run(const RunRequest& request, std::vector<Fd> stdio,
                         Teller tell) override;
  Status signal(uint32_t command, int signal) override;
  Status kill(uint32_t command) override;
  Status over_output(uint32_t command, uint64_t measured) override;
  std::vector<RunningCommand> running() const override;
  Result<fs::Mark> barrier() override;
  Status settle() override;
  Result<GcDone> gc(const Gc& request) override;
  Result<fs::Mark> snapshot(const std::string& name) override;
  Result<fs::Mark> rollback(fs::Position to) override;
  Result<fs::Mark> commit_base(fs::Position reviewed,
                               const std::vector<fs::BaseChange>& changes,
                               const fs::ToldBy& told) override;
  std::vector<fs::Mark> marks() const override;
  Status fork_into(int directory, fs::Position at) override;
  Result<MountInfo> mount(const std::string& dir) override;
  Status unmount() override;
  MountInfo mounted() const override;
  bool is_stale() const override { return session_->is_stale(); }
  Status note(const std::string& name, const std::string& text) override;
  void describe(DaemonStatus& status) const override;
  int life_fd() const override { return session_->jail_life_fd(); }
  int event_fd() const override { return events_fd_.get(); }
  std::vector<RunEvent> take_events() override;
  Status close() override;

 private:
  struct Job {
    uint32_t command = 0;
    RunRequest request;
    Teller tell;
    std::shared_ptr<jail::Running> running;
    fs::Mark begin;
    fs::Stats before, home_before;
    int64_t started_ms = 0;
    bool stopped = false;  // by mutex_
    std::string lost;      // by mutex_: Outcome::lost
    // By mutex_: the files, in HOME or in the workspace.
    std::set<std::pair<bool, std::string>> lossy;
    uint64_t nameless_losses = 0;  // by mutex_: of files that have no name
    std::thread thread;
    std::atomic<bool> done = false;  // the thread has nothing left to do
  };

  Core(const CoreContext& context, Ledger ledger, Fd events_fd);
  jail::CommandSpec command_spec(const RunRequest& request) const;
  void supervise_job(Job& job);
  void finish(Job& job, const jail::Outcome& outcome);
  Outcome describe_outcome(const Job& job, const jail::Outcome& outcome,
                           const fs::Mark& end) const;
  void push(RunEvent event);
  void record(std::string_view kind, const Json& fields, Sync sync,
              const std::function<void()>& written = {});
  void record_drift(const HeldDrift::Notes& notes);
  void reap_jobs();

  // fs::Observer: from any thread of the mount.
  void invalidate(std::span<const fs::Invalidation>) override {}
  void drift(const fs::DriftNote& note) override;
  void lost(const std::string& path) override;
  void denied(const fs::Denial& denial) override;
  // HOME is nobody's to review: of it only losses are heard.
  struct HomeObserver : fs::Observer {
    explicit HomeObserver(Core& its) : core(its) {}
    void invalidate(std::span<const fs::Invalidation>) override {}
    void drift(const fs::DriftNote&) override {}
    void lost(const std::string& path) override;
    void denied(const fs::Denial&) override {}
    Core& core;
  };
  void end_for_loss(const std::string& path, bool in_home);
  void await_losses(Job& job);

  const Shape shape_;
  Ledger ledger_;
  Begun begun_;
  Fd events_fd_;
  HomeObserver home_observer_{*this};
  std::unique_ptr<Session> session_;
  uint32_t last_command_ = 0;
  HeldDrift drift_;

  // Order: snapshot_ > starts_ > the tree's > mutex_.
  std::mutex snapshot_;  // one at a time: names are unique
  std::mutex starts_;    // a command starts, or a mark is taken of all of them
  mutable std::mutex mutex_;  // protects the following; a leaf
  std::map<uint32_t, std::unique_ptr<Job>> jobs_;
  std::vector<std::unique_ptr<Job>> ended_;  // threads to be joined
  std::vector<RunEvent> events_;
  uint64_t denials_ = 0;
};

}  // namespace stoplog::draft
