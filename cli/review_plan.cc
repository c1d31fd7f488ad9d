// SPDX-License-Identifier: Apache-2.0
#include "cli/review_plan.h"

#include <algorithm>
#include <utility>

namespace stoplog::cli {
namespace {

Verdict verdict_of(std::optional<gate::Verdict> verdict) {
  if (!verdict) return Verdict::kNone;
  return *verdict == gate::Verdict::kApproved ? Verdict::kApproved
                                              : Verdict::kRejected;
}

// The one change alone: naming a directory that moved would name all beneath.
diff::ChangeSet only(const diff::Change& change) {
  diff::ChangeSet set;
  set.changes.push_back(change);
  return set;
}

std::vector<size_t> edits_with(const FileDecision& decision, Verdict verdict) {
  std::vector<size_t> out;
  for (size_t i = 0; i < decision.parts.size(); i++)
    if (decision.parts[i] == verdict) out.push_back(i);
  return out;
}

}  // namespace

FileDecision PlanDecisions::get(const diff::Change& change,
                                const diff::TextDiff* text) const {
  FileDecision out;
  auto opinion = gate::opinion(plan_, change);
  if (!opinion) return out;
  const gate::Decision* decision = plan_.find(change.path);
  out.reason = opinion->reason;
  bool parts = text != nullptr && has_parts(change);
  bool whole = decision != nullptr && decision->edits.empty() &&
               opinion->decided != gate::Decided::kNone && !opinion->undecided;
  if (!parts || whole) {
    if (opinion->decided == gate::Decided::kApproved)
      out.whole = Verdict::kApproved;
    if (opinion->decided == gate::Decided::kRejected)
      out.whole = Verdict::kRejected;
    return out;
  }
  for (auto verdict : gate::edit_verdicts(plan_, change, *text))
    out.parts.push_back(verdict_of(verdict));
  if (decision != nullptr)
    out.mode = verdict_of(gate::mode_verdict(*decision, change));
  return normalized(change, std::move(out));
}

Summary PlanDecisions::summary(const diff::Change& change) const {
  const gate::Decision* decision = plan_.find(change.path);
  bool known = std::ranges::any_of(
      plan_.rejected,
      [&](const gate::RejectedEdit& edit) { return edit.path == change.path; });
  if (decision == nullptr && !known) return {};
  // Only what was decided in parts has to be read to be known.
  bool parts = decision == nullptr || !decision->edits.empty();
  if (parts && has_parts(change))
    if (auto text = gate::text_of(change))
      return summarize(change, get(change, &*text));
  Summary out = summarize(change, get(change, nullptr));
  auto opinion = gate::opinion(plan_, change);
  out.stale = opinion && opinion->stale;
  return out;
}

void PlanDecisions::put(const diff::Change& change, const diff::TextDiff* text,
                        const FileDecision& decision) {
  gate::undecide(plan_, change.path);
  Status done = decision.parts.empty() || text == nullptr
                    ? put_whole(change, decision)
                    : put_parts(change, *text, decision);
  if (!done) {
    gate::undecide(plan_, change.path);
    error_ = std::move(done.error());
  }
  unsaved_.insert(change.path);
  untaken_.insert(change.path);
}

Status PlanDecisions::put_whole(const diff::Change& change,
                                const FileDecision& decision) {
  if (decision.whole == Verdict::kApproved)
    TRY(gate::approve(plan_, only(change),
                      {.paths = {change.path}, .danger = true, .by = by_}));
  if (decision.whole == Verdict::kRejected)
    TRY(gate::reject(
        plan_, only(change),
        {.paths = {change.path}, .reason = decision.reason, .by = by_}));
  return {};
}

Status PlanDecisions::put_parts(const diff::Change& change,
                                const diff::TextDiff& text,
                                const FileDecision& decision) {
  std::vector<size_t> approved = edits_with(decision, Verdict::kApproved);
  std::vector<size_t> rejected = edits_with(decision, Verdict::kRejected);
  if (!rejected.empty())
    TRY(gate::decide_edits(plan_, change, text,
                           {.edits = rejected,
                            .verdict = gate::Verdict::kRejected,
                            .reason = decision.reason,
                            .by = by_}));
  if (!approved.empty())
    TRY(gate::decide_edits(plan_, change, text,
                           {.edits = approved,
                            .verdict = gate::Verdict::kApproved,
                            .reason = decision.reason,
                            .by = by_}));
  const gate::Decision* made = plan_.find(change.path);
  gate::Decision parts;
  if (made != nullptr) {
    parts = *made;
  } else {  // nothing but the mode: take the frame of a whole decision
    TRY(gate::approve(plan_, only(change),
                      {.paths = {change.path}, .danger = true, .by = by_}));
    parts = *plan_.find(change.path);
  }
  // Spelled out edit by edit: all edits without the mode are not the whole.
  parts.edits.clear();
  for (size_t i : approved)
    parts.edits.push_back(
        {diff::edit_digest(text, i), gate::Verdict::kApproved});
  for (size_t i : rejected)
    parts.edits.push_back(
        {diff::edit_digest(text, i), gate::Verdict::kRejected});
  if (change.mode_changed && decision.mode != Verdict::kNone)
    parts.edits.push_back(
        {gate::mode_digest(change), decision.mode == Verdict::kApproved
                                        ? gate::Verdict::kApproved
                                        : gate::Verdict::kRejected});
  parts.reason = decision.reason;
  if (parts.edits.empty())
    gate::undecide(plan_, change.path);
  else
    plan_.set(std::move(parts));
  return {};
}

Status PlanDecisions::save() {
  if (error_) {
    Error error = std::move(*error_);
    error_.reset();
    return std::unexpected(std::move(error));
  }
  if (unsaved_.empty()) return {};
  TRY(change_plan_([&](gate::Plan& disk) -> Status {
    for (const RelPath& path : unsaved_) {
      gate::undecide(disk, path);
      if (const gate::Decision* mine = plan_.find(path)) disk.set(*mine);
    }
    for (const gate::RejectedEdit& edit : plan_.rejected)
      if (unsaved_.contains(edit.path)) disk.rejected.push_back(edit);
    return {};
  }));
  unsaved_.clear();
  return {};
}

PlanDecisions::Decided PlanDecisions::take_decided() {
  Decided out;
  for (const RelPath& path : std::exchange(untaken_, {})) {
    const gate::Decision* decision = plan_.find(path);
    if (decision == nullptr) continue;
    auto has = [&](gate::Verdict verdict) {
      if (decision->edits.empty()) return decision->verdict == verdict;
      return std::ranges::any_of(decision->edits,
                                 [&](const gate::EditDecision& edit) {
                                   return edit.verdict == verdict;
                                 });
    };
    if (has(gate::Verdict::kApproved)) out.approved.push_back(path);
    if (has(gate::Verdict::kRejected))
      out.rejected[decision->reason].push_back(path);
  }
  return out;
}

}  // namespace stoplog::cli
