// SPDX-License-Identifier: Apache-2.0
// A draft opened for reading, and its change set.
//
//   Opened opened = TRY(open_draft(context, draft, {}));
//   Policy policy = TRY(load_policy(context));
//   diff::ChangeSet set = TRY(changes_of(opened, policy, {}));
//
// Readers never go through the mount. When the draft's daemon lives it is asked
// for a barrier mark and the journal is replayed up to that; otherwise up to
// its end, under the draft's lock shared with other readers, which is kept only
// when a commit follows. What the view shows does not change while the agent
// goes on writing. A daemon that comes or goes meanwhile is no obstacle.
//
// An interrupted commit of the workspace is recovered first, and what was
// committed and not yet told to the draft is told.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "cli/context.h"
#include "diff/change_set.h"
#include "draft/client.h"
#include "draft/policy.h"
#include "draft/reach.h"
#include "draft/store.h"
#include "fs/draft_view.h"
#include "fs/tree.h"
#include "gate/gate.h"
#include "snapshot/objects.h"

namespace stoplog::cli {

// The gate's ground of a workspace: what commits, undoes and recovers need.
struct Doorstep {
  Fd root, state;
  std::unique_ptr<snapshot::ObjectStore> objects;
  gate::RecoverReport recovered;
  gate::Ground ground() const {
    return {.root = root.get(), .state = state.get(), .objects = objects.get()};
  }
};
// Opens it and finishes or takes back what a crash interrupted, saying so.
// `lost`: what becomes of one whose disk is not there.
enum class LostDisk { kWaits, kGivenUp };
Result<Doorstep> open_doorstep(Context& context,
                               LostDisk lost = LostDisk::kWaits);

struct Opened {
  draft::Draft draft;
  std::string workspace;
  Fd draft_dir;
  Doorstep door;
  std::optional<draft::Client> daemon;   // alive: the barrier is its mark
  std::optional<draft::DraftLock> lock;  // otherwise, for a commit
  std::unique_ptr<fs::DraftView> view;   // unless only marks were asked for
  std::vector<fs::Mark> marks;           // only then
  fs::Position end = 0;
};

struct OpenOptions {
  std::optional<fs::Position> at;  // default: now
  // A living daemon's connection that is to be used, given back in `daemon`.
  draft::Client* client = nullptr;
  // A commit follows: what the draft goes on changing must not stand on files
  // that are about to be replaced.
  bool settle = false;
  // The caller has the draft's turn.
  bool has_turn = false;
  // No view is needed: `marks` and `end` cost little, whatever the draft holds.
  bool only_marks = false;
};
Result<Opened> open_draft(Context& context, const draft::Draft& draft,
                          const OpenOptions& options);

// The draft's turn (draft/store.h), for whoever is about to commit, roll back
// or discard. Taken before open_draft(), or else, when a person is asked in
// between, after the answer: until then no lock is held (opened.lock.reset()),
// and then take_up() says whether the draft is still the one that was looked
// at. Code::kDrift when it was discarded while we waited.
Result<draft::DraftTurn> take_turn(Context& context, const draft::Draft& draft);
// The same of a draft in whatever state.
Result<draft::DraftTurn> wait_turn(Context& context, const draft::Draft& draft);
// Settled and kept from others as when it was opened for a commit. Code::kDrift
// when it was rolled back, or a commit, an undo or a discard took place in it,
// since then.
Status take_up(Context& context, Opened& opened);
// The latter alone.
Status check_unmoved(Context& context, const Opened& opened);

// After the draft was told something: did a rollback come first? Who asked for
// it may be gone, and its turn with it, before the daemon is done. The draft is
// what the rollback made of it then, and nothing that was looked at counts.
// Gives the draft's lock back; the turn stays the caller's.
Result<bool> was_rolled_back(Context& context, Opened& opened);

// Tells the draft's journal what a commit did to the real tree, through the
// daemon when it lives. `opened` must be reopened to see it.
Status tell_draft(Context& context, Opened& opened,
                  const gate::CommitRecord& record);

// The same for what is no commit: `changes` are the real tree's as it stands.
Status rebase_draft(Context& context, Opened& opened, fs::Position reviewed,
                    const std::vector<fs::BaseChange>& changes);

// Changes the draft through its daemon or, when none lives, under its lock.
struct DraftChange {
  std::function<Status(draft::Client&)> daemon;
  std::function<Status(fs::Tree&)> tree;
};
Status change_draft(Context& context, Opened& opened,
                    const DraftChange& change);

// User's and workspace's policy; `preset` may be empty.
Result<draft::Policy> load_policy(Context& context,
                                  std::string_view preset = {});

// As `status`, `diff`, `review` and `commit` all see it.
Result<diff::ChangeSet> changes_of(const Opened& opened,
                                   const draft::Policy& policy,
                                   diff::DiffOptions options = {});
// The same of another view of the draft: at a mark, or between two.
Result<diff::ChangeSet> changes_in(const fs::View& view, const Opened& opened,
                                   const draft::Policy& policy,
                                   diff::DiffOptions options);

}  // namespace stoplog::cli
