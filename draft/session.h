// SPDX-License-Identifier: Apache-2.0
// Session: the standing parts of a live draft: the workspace's tree and mount,
// HOME's tree and mount, and the zygote.
//
//   auto session = TRY(Session::open(context, observer));  // single-threaded
//   session->tree().mark(...); session->zygote().spawn(...);
//   session->close();
//
// open() mounts, forks the zygote and starts the threads, in this order: a
// fork of a process with threads would inherit their locks. It does not wait
// for the jail's root, which is built meanwhile: whoever runs a command waits
// (wait_for_jail), and hears what went wrong. The caller holds the draft's
// lock. Ways of mounting: root in a mount namespace of its own
// (or the host's, when people are to see it), a user through fusermount3 in
// the run directory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "draft/daemon_core.h"
#include "draft/home.h"
#include "draft/warmer.h"
#include "fs/mount.h"
#include "fs/rules.h"
#include "fs/tree.h"
#include "jail/zygote.h"

namespace stoplog::draft {

class Session {
 public:
  // Outlive the session; from any thread of the mounts.
  struct Observers {
    fs::Observer* workspace = nullptr;
    fs::Observer* home = nullptr;
  };
  static Result<std::unique_ptr<Session>> open(const CoreContext& context,
                                               const Observers& observers);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  fs::Tree& tree() { return *tree_; }
  const fs::Tree& tree() const { return *tree_; }
  // What was read and written in the workspace, without our own walk.
  fs::Stats workspace_stats() const;
  fs::Tree& home_tree() { return *home_tree_; }
  fs::MountServer& server() { return *server_; }
  // False: a view of root's that is shown, in which no command runs (see
  // mount_trees); then there is neither a zygote nor a mount of HOME.
  bool has_jail() const { return zygote_ != nullptr; }
  jail::Zygote& zygote() { return *zygote_; }
  // To be asked before each command, by one thread; there is a jail.
  Status wait_for_jail();
  // Readable once the jail is dead, as far as wait_for_jail() told of it; else
  // -1. A view that is shown outlives a jail that could not be built.
  int jail_life_fd() const;
  // Where the workspace stands inside of the jail.
  const std::string& workspace() const { return workspace_; }
  // HOME inside of it.
  const std::string& home() const { return spec_.home; }
  // What is at the workspace's path is no longer what was opened.
  bool is_stale() const;
  // Where we see it.
  const std::string& mount_path() const { return mount_path_; }
  const jail::JailSpec& spec() const { return spec_; }
  const std::vector<std::string>& path() const { return path_; }  // inside
  // Files written here are seen under /run/stoplog inside.
  int notes_dir() const { return notes_.get(); }
  // What the user should know: recovery, what was left out (after
  // wait_for_jail).
  std::vector<std::string> notes() const;
  const std::string& home_mount_path() const { return home_mount_path_; }
  // Both trees to the disk.
  Status sync();
  // Ends the jail, then the mounts, then the trees.
  void close();

 private:
  Session() = default;
  Status open_trees(const CoreContext& context);
  Status mount_trees(const CoreContext& context, const Observers& observers);
  Status mount_home(fs::MountSpec spec, const jail::Identity& who,
                    fs::Observer* observer);
  Status start_jail(const CoreContext& context);
  Status serve();

  std::string workspace_;
  jail::JailSpec spec_;
  std::vector<std::string> path_;
  std::vector<std::string> notes_text_;
  Fd draft_dir_, base_, notes_;
  Home home_;
  std::unique_ptr<fs::RuleSet> rules_;
  std::unique_ptr<fs::Tree> tree_, home_tree_;
  std::unique_ptr<fs::MountServer> server_, home_server_;
  std::unique_ptr<jail::Zygote> zygote_;
  enum class Jail : uint8_t { kUnknown, kBuilt, kBroken };
  Jail jail_ = Jail::kUnknown;
  bool shown_ = false;
  Warmer warmer_;
  std::string mount_path_, home_mount_path_, notes_path_;
};

}  // namespace stoplog::draft
