// SPDX-License-Identifier: Apache-2.0
// What the control server asks of the thing that holds the tree, the mount and
// the jail. The server owns sockets and clients; the core owns the draft.
//
// All methods are called from the server's one thread, and must not block on
// anything an agent can delay. run() returns when the command was handed to
// the zygote; what becomes of it is told by events: event_fd() is readable
// while take_events() has something. Every command that run() returned ends
// with exactly one kEnded event, also after a core's own failure.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "draft/layout.h"
#include "draft/protocol.h"
#include "draft/shape.h"
#include "draft/store.h"
#include "fs/told.h"
#include "fs/tree_types.h"

namespace stoplog::draft {

class DaemonCore {
 public:
  virtual ~DaemonCore() = default;

  // stdio: three fds, not open where tty_streams says that the stream is the
  // jail's pty. The core writes marks and ledger entries by itself.
  // `tell` says to the client at once, on whatever thread, how its command
  // ended; false: it could not, and take_events() has it. What it did tell is
  // there as well, marked.
  using Teller = std::function<bool(const RunEvent&)>;
  virtual Result<RunStarted> run(const RunRequest& request,
                                 std::vector<Fd> stdio, Teller tell) = 0;
  // To the command's foreground processes. ESRCH when it has ended.
  virtual Status signal(uint32_t command, int signal) = 0;
  // Its client went away, or `stop`: ends the whole tree of the command.
  virtual Status kill(uint32_t command) = 0;
  // The relay saw `measured` bytes, more than the limit: kill, and say so in
  // the outcome.
  virtual Status over_output(uint32_t command, uint64_t measured) = 0;
  virtual std::vector<RunningCommand> running() const = 0;

  virtual Result<fs::Mark> barrier() = 0;
  // Large files that the draft changed no longer stand on the real ones: to be
  // asked before a commit replaces these.
  virtual Status settle() = 0;
  // Both trees, the workspace's and HOME's.
  virtual Result<GcDone> gc(const Gc& request) = 0;
  virtual Result<fs::Mark> snapshot(const std::string& name) = 0;
  virtual Result<fs::Mark> rollback(fs::Position to) = 0;
  virtual Result<fs::Mark> commit_base(
      fs::Position reviewed, const std::vector<fs::BaseChange>& changes,
      const fs::ToldBy& told) = 0;
  virtual std::vector<fs::Mark> marks() const = 0;
  // The state at `at` into another draft's directory.
  virtual Status fork_into(int directory, fs::Position at) = 0;

  // Shows the view to people at `dir` (kMountDir of the run directory when
  // empty). EBUSY while a command runs on the private mount.
  virtual Result<MountInfo> mount(const std::string& dir) = 0;
  virtual Status unmount() = 0;
  virtual MountInfo mounted() const = 0;
  // The workspace was removed, or another directory is at its path: the draft
  // must be opened again.
  virtual bool is_stale() const = 0;
  // A file for the jail under /run/stoplog/.
  virtual Status note(const std::string& name, const std::string& text) = 0;
  // Fills held_bytes, touched_nodes and notes.
  virtual void describe(DaemonStatus& status) const = 0;

  virtual int event_fd() const = 0;
  // Readable when what commands run in has died: the daemon ends once nothing
  // runs, and the next command starts another. -1: cannot happen.
  virtual int life_fd() const { return -1; }
  virtual std::vector<RunEvent> take_events() = 0;
  // Before the end: pins what is unpinned, syncs, unmounts.
  virtual Status close() = 0;
};

// Opens journal, mount and zygote of a draft. The caller holds the draft's
// lock and is single-threaded until this returns.
struct CoreContext {
  const Layout& layout;
  const Draft& draft;
  Shape shape{};
};
Result<std::unique_ptr<DaemonCore>> make_core(const CoreContext& context);

}  // namespace stoplog::draft
