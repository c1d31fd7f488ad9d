// SPDX-License-Identifier: Apache-2.0
// The gate, from outside: the only code that writes the real tree.
//
//   Fd state = TRY(open_state(commits_dir, workspace_path));
//   Ground ground{.root = root, .state = state.get(), .objects = &store};
//   TRY(recover(ground));                       // on opening a workspace
//   CommitResult r = TRY(commit({.ground = ground, .set = &set, .plan = &plan,
//                                .meta = meta}));
//   tree.commit_base(position, r.record.base_changes()); note_rebased(...);
//   CommitResult u = TRY(undo({.ground = ground, .meta = meta}));
//
// Before and after: gate/plan.h and gate/decide.h (approving), gate/commits.h
// (records). Errors carry the exit code: kDrift 3, kRefused 4, kUnsupported 5,
// kRolledBack 6; whichever it is, the real tree is as before.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "diff/change_set.h"
#include "gate/commit_plan.h"
#include "gate/commits.h"
#include "gate/decide.h"
#include "gate/plan.h"
#include "gate/record.h"
#include "gate/transaction.h"

namespace stoplog::gate {

// The gate's directory for one workspace, beneath the directory for all.
Result<Fd> open_state(int commits_dir, const std::string& workspace_path);
// The same without making it: no fd when there is none.
Result<Fd> find_state(int commits_dir, const std::string& workspace_path);

struct CommitRequest {
  Ground ground;
  const diff::ChangeSet* set = nullptr;
  const Plan* plan = nullptr;
  CommitMeta meta;
  bool merge = false;  // three-way merge of texts that drifted
  // What the merges must make, or Code::kDrift: CommitResult::merge_digest as
  // it was shown.
  std::optional<std::string> merge_digest{};
  bool dry_run = false;  // everything but the writing
};

struct CommitResult {
  CommitRecord record;             // empty number for a dry run
  CommitPlan plan;                 // of a dry run: what would be done
  std::vector<RelPath> approved;   // the changes that this commit took
  diff::ChangeSet merged;          // by three-way merge: real file to merge
  std::string merge_digest;        // "sha256:…" of these; empty for none
  std::vector<std::string> notes;  // for a person
  Timing timing;
};

// Nothing approved is Code::kDeclined ("nothing is approved").
Result<CommitResult> commit(const CommitRequest& request);

struct UndoRequest {
  Ground ground;
  std::optional<uint64_t> number;  // default: the newest not undone
  CommitMeta meta;                 // user, tty, time
  bool dry_run = false;
};
// Itself a commit, of kind "undo", so that it can be undone.
Result<CommitResult> undo(const UndoRequest& request);
// The newest commit that is neither undone nor itself an undo; of these, the
// newest is what `undo` without a number takes.
Result<std::optional<uint64_t>> newest_undoable(int state);

// Does a commit of this draft stand, one that was not undone?
Result<bool> has_standing_commit(int state, const std::string& draft);

// Takes what was committed out of the plan; what was committed in part is
// undecided again.
void retire(Plan& plan, const CommitResult& result);

}  // namespace stoplog::gate
