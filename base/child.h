// SPDX-License-Identifier: Apache-2.0
// Child: a process of ours, held by pidfd.
//
//   Child child = TRY(Child::spawn({.argv = {"less", "-FRX"},
//                                   .fds = {{pipe.read.get(), 0}}}));
//   sys::ExitStatus status = TRY(child.wait());
//
// The program sees exactly the fds that `fds` names (0-2 are inherited unless
// named) and the environment given. When exec fails, spawn() itself fails with
// its errno. A Child that is destroyed while it runs is killed and reaped, so
// that none outlives its owner by accident; detach() lets it go. Works with
// threads alive: between clone and exec only async-signal-safe calls are made.
// This is for helpers on the trusted side (pager, editor, daemon), never for
// what an agent asked to run: that is jail's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/sys_process.h"

namespace stoplog {

struct FdMove {
  int from;  // borrowed, in this process
  int to;    // its number in the child
};

struct SpawnSpec {
  // argv[0] is looked up in PATH when it has no '/'.
  std::vector<std::string> argv = {};
  // Otherwise: argv is argv alone, and this is what is executed.
  std::optional<std::string> program = {};
  std::optional<std::vector<std::string>> env = {};  // absent: ours
  std::vector<FdMove> fds = {};
  int cwd = -1;                  // a directory fd, or -1 for ours
  bool new_session = false;      // setsid()
  bool new_group = false;        // setpgid(0, 0)
  bool die_with_parent = false;  // SIGKILL when the spawning thread ends
};

class Child {
 public:
  static Result<Child> spawn(const SpawnSpec& spec);
  Child(Child&&) noexcept = default;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable once it has ended
  Result<sys::ExitStatus> wait();
  // nullopt while it runs.
  Result<std::optional<sys::ExitStatus>> try_wait();
  Status kill(int signal);
  // It goes on without us; init reaps it when we are gone.
  void detach() { pidfd_.reset(); }

 private:
  Child(pid_t pid, Fd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  void end();
  pid_t pid_ = -1;
  Fd pidfd_;
};

}  // namespace stoplog
