// SPDX-License-Identifier: Apache-2.0
// Deciding: what `approve`, `reject`, `commit -a` and the review do to a plan,
// and what a plan says about a change as it is now. No I/O but reading contents
// where parts of texts are concerned.
//
//   ApproveReport r = TRY(approve(plan, set, {.paths = paths, .by = me}));
//   Opinion o = TRY(opinion(plan, change));
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/relpath.h"
#include "base/result.h"
#include "diff/change_set.h"
#include "diff/hunks.h"
#include "gate/plan.h"

namespace stoplog::gate {

enum class Decided { kNone, kApproved, kPartial, kRejected };
std::string_view name_of(Decided decided);  // "none|approved|partial|rejected"

struct Opinion {
  Decided decided = Decided::kNone;
  // There was a decision, about something else than what is here now.
  bool stale = false;
  // Of what was decided in parts: some have no verdict yet.
  bool undecided = false;
  bool approves = false;  // a commit would take something of it
  std::string reason;     // of a rejection, also of one known again
};
// Costs nothing for a change that was not decided in parts and has no rejected
// ancestor of the same path.
Result<Opinion> opinion(const Plan& plan, const diff::Change& change);

struct ApproveRequest {
  std::vector<RelPath> paths;  // each a change, or a directory above some
  bool all = false;
  bool danger = false;  // take dangers too
  // Refuses (Code::kDrift) when the change set is not this one any more.
  std::optional<std::string> digest;
  bool include_ignored = false;  // policy ignored = "commit"
  // Leave what was rejected; of what was decided in parts, approve the rest
  // (commit -a).
  bool keep_rejected = false;
  // With keep_rejected: what was approved before is approved anew, now.
  bool renew = false;
  Signature by;
};
struct ApproveReport {
  std::vector<RelPath> approved;
  std::vector<RelPath> dangers;   // skipped
  std::vector<RelPath> rejected;  // skipped
  std::vector<RelPath> ignored;   // skipped
};
// A path that names no change is Code::kUsage.
Result<ApproveReport> approve(Plan& plan, const diff::ChangeSet& set,
                              const ApproveRequest& request);

// The change with its hashes, when a decision about the whole of it still
// holds. A base that is gone from the real tree, and was not kept, is the one
// that was decided on: that it is gone is drift, and nothing the draft did.
// Null when it is another one; mostly `change` itself, else what `own` holds.
Result<const diff::Change*> as_decided(const diff::Change& change,
                                       const Decision& decision,
                                       std::optional<diff::Change>& own);

// Approvals of what is no change any more are dropped: who looks again sees
// that there is nothing. Their paths.
std::vector<RelPath> drop_gone(Plan& plan, const diff::ChangeSet& set);

struct RejectRequest {
  std::vector<RelPath> paths;
  std::string reason;
  Signature by;
};
Result<std::vector<RelPath>> reject(Plan& plan, const diff::ChangeSet& set,
                                    const RejectRequest& request);

// The text of a change, line by line; Code::kUnsupported for what has none.
Result<diff::TextDiff> text_of(const diff::Change& change);
// One verdict for some of a text's edits, the rest as decided before. When all
// are approved (or rejected) it becomes a decision about the whole.
struct EditRequest {
  std::vector<size_t> edits;  // indices into TextDiff::edits
  Verdict verdict = Verdict::kApproved;
  std::string reason;
  Signature by;
};
Status decide_edits(Plan& plan, const diff::Change& change,
                    const diff::TextDiff& text, const EditRequest& request);
// What was decided about each edit.
std::vector<std::optional<Verdict>> edit_verdicts(const Plan& plan,
                                                  const diff::Change& change,
                                                  const diff::TextDiff& text);
// The approved edits' indices; a part that is no longer there is Code::kDrift.
Result<std::vector<size_t>> approved_edits(const Decision& decision,
                                           const diff::Change& change,
                                           const diff::TextDiff& text);
// Names a change of mode, owner and attributes from what to what: the part of
// a decision in parts that is not an edit, kept among its edits.
Sha256Digest mode_digest(const diff::Change& change);
std::optional<Verdict> mode_verdict(const Decision& decision,
                                    const diff::Change& change);
void undecide(Plan& plan, const RelPath& path);

// For the agent to read: a line or more for each rejection still in force.
std::string rejections_text(const Plan& plan);
// SHA-256 of what an edit takes out and puts in, wherever it stands.
Sha256Digest edit_text_digest(const diff::TextDiff& text, size_t edit);

}  // namespace stoplog::gate
