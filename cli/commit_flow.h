// SPDX-License-Identifier: Apache-2.0
// Everything that `commit` does, so that the review screen does the same.
//
//   CommitEnd end = TRY(commit_draft(context, draft, {.yes = true}));
//
// Errors carry the exit code; whichever it is, the real tree is as before.
// Asks on the terminal only with `all` and without `yes`.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "cli/context.h"
#include "draft/store.h"
#include "gate/gate.h"

namespace stoplog::cli {

struct CommitChoice {
  bool all = false;
  bool danger = false;
  bool yes = false;
  bool merge = false;
  bool dry_run = false;
  bool standing_only = false;  // what the policy approves, nothing else
  std::optional<std::string> receipt = {};  // a file
  std::optional<std::string> digest = {};   // of what merges make
};

struct CommitEnd {
  bool nothing = false;  // there was nothing to commit
  gate::CommitResult result;
  uint64_t left = 0;          // changes still held
  uint64_t left_ignored = 0;  // and files that git ignores
  Json receipt;
};

Result<CommitEnd> commit_draft(Context& context, const draft::Draft& draft,
                               const CommitChoice& choice);

// What is still held; a draft with nothing left, in which nothing runs and
// whose view is not mounted, is committed whole from then on.
struct StillHeld {
  uint64_t changes = 0;
  uint64_t ignored = 0;  // files that git ignores
};
Result<StillHeld> close_if_whole(Context& context, const draft::Draft& draft,
                                 bool has_turn);

// With gate.mode = "auto", at the end of a run: commits what the policy
// approves unasked. What cannot be committed is said and stays held.
Status commit_standing(Context& context, const draft::Draft& draft);

// "still held: 4 changes and 1 file that git ignores"; empty when nothing is.
std::string left_text(const CommitEnd& end);
// What would be done, a line each.
std::string describe_commit(const gate::CommitResult& result);
// What a timeline says of a commit or undo, made of its record.
Json commit_fields(const gate::CommitRecord& record);
// The record of a commit for programs: number, digests, who, each path.
Json commit_json(const gate::CommitRecord& record,
                 const std::string& workspace);

}  // namespace stoplog::cli
