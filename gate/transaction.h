// SPDX-License-Identifier: Apache-2.0
// One commit on the real tree, all or nothing.
//
//   Ground ground{.root = fd, .state = fd, .objects = &store};
//   CommitRecord record = TRY(transact(ground, items, meta));
//   RecoverReport report = TRY(recover(ground));
//
// The protocol: flock on the root; every path verified against its base; an
// intent, synced; everything new staged and verified, one syncfs; the switch
// record, synced; what is to leave held still; the renames; what came out
// verified against the base; one
// syncfs; pre-images into one pack; the commit record, synced; the stage
// removed. Before the switch record a failure or a crash leaves the real tree
// untouched. After it a failure, or drift seen in what came out, is rolled
// back, and a crash is finished forward by recover(), by any later process.
//
// Errors: Code::kDrift when the real tree moved (nothing was written, or all
// was put back), kRolledBack for everything that failed and was taken back,
// kUnsupported for file systems that cannot do it. A path that somebody else
// wrote to during a roll-back stays as it is and is named in the message.
//
// Blocking; one thread. Readers of the tree may see some paths new and some
// old for as long as the renames take.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "gate/commit_plan.h"
#include "gate/disk.h"
#include "gate/record.h"
#include "gate/verify.h"
#include "snapshot/objects.h"

namespace stoplog::gate {

// Where a commit stands. All borrowed.
struct Ground {
  int root = -1;   // the workspace's root
  int state = -1;  // the gate's own directory for this workspace, 0700
  snapshot::ObjectStore* objects = nullptr;
  const Disk* disk = nullptr;  // null: the real one
  std::chrono::milliseconds lock_wait = std::chrono::seconds(10);
  // Lock files of git's protocol, relative to the root, held from before
  // anything is looked at until the commit is done.
  std::vector<RelPath> locks{};
  // Of the commit that this one takes back: directories are to have their times
  // again.
  std::vector<DirTimes> times{};
  // Called under all locks, before anything is verified: may add and drop
  // items. `unlocked` has the lock files that somebody else holds.
  std::function<Status(std::vector<Item>& items,
                       const std::set<RelPath>& unlocked)>
      prepare{};
};

// Since the beginning; but `mixed`, from before the first rename until after
// the last: so long may readers see some paths new and some old.
struct Timing {
  std::chrono::nanoseconds verify{}, stage{}, switched{}, durable{}, total{};
  std::chrono::nanoseconds mixed{};
};

// `meta.number` and `.id` are filled in.
Result<CommitRecord> transact(const Ground& ground, std::vector<Item> items,
                              CommitMeta meta, Timing* timing = nullptr);

struct RecoverReport {
  // kAside: it was begun on a directory that is not here (gate/aside.h).
  // kGivenUp: as kBack, without what is on file systems that are not here.
  enum class What { kNothing, kBack, kForward, kAside, kGivenUp };
  What what = What::kNothing;
  std::string draft;                   // whose commit it was
  std::optional<CommitRecord> record;  // kForward
  std::vector<Left> left;
  std::string place;  // kAside: where it is kept, within the state
  std::string text() const;
  std::string_view word() const;  // "completed", "taken back", …
};
// Did a commit on this root begin that has not ended? It may still run.
Result<bool> is_interrupted(int state, int root);
// Cheap when there is nothing to do (one open). Waits for a commit that runs.
Result<RecoverReport> recover(const Ground& ground);
// For a person who knows that a file system which recover() waits for is gone
// for good: everything else is taken back, and what is there stays as far as
// the commit came, named. Where nothing is waited for, the same as recover().
Result<RecoverReport> give_up(const Ground& ground);

// The lock that serialises commits of one workspace: a description of its own.
Result<Fd> lock_root(const Ground& ground);

}  // namespace stoplog::gate
