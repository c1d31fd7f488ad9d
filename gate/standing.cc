// SPDX-License-Identifier: Apache-2.0
#include "gate/standing.h"

#include <algorithm>

#include "base/escape.h"
#include "base/glob.h"
#include "base/shown_path.h"
#include "base/units.h"
#include "gate/decide.h"

namespace stoplog::gate {

Result<Mode> parse_mode(std::string_view text) {
  if (text == "observe") return Mode::kObserve;
  if (text == "hold") return Mode::kHold;
  if (text == "gated") return Mode::kGated;
  if (text == "auto") return Mode::kAuto;
  return fail(Code::kInvalid, "not a mode: {} (observe, hold, gated or auto)",
              escape(text));
}

Status may_commit(Mode mode) {
  switch (mode) {
    case Mode::kObserve:
      return fail(Code::kRefused, "the policy's gate.mode is \"observe\"");
    case Mode::kHold:
      return fail(Code::kRefused, "the policy's gate.mode is \"hold\"");
    case Mode::kGated:
    case Mode::kAuto:
      break;
  }
  return {};
}

std::vector<diff::PolicyRule> always_ask_rules(
    const std::vector<std::string>& globs) {
  std::vector<diff::PolicyRule> rules;
  for (const std::string& glob : globs)
    rules.push_back({.glob = glob,
                     .level = diff::Level::kDanger,
                     .code = "always-ask",
                     .message = "the policy always asks for this"});
  return rules;
}

namespace {

bool is_covered(const std::vector<Glob>& globs, const diff::Change& change) {
  if (change.is_danger() || change.git || change.ignored) return false;
  return std::any_of(globs.begin(), globs.end(), [&](const Glob& glob) {
    // Both names of a moved file must be covered: it leaves one of them.
    return glob.covers(change.path.str()) &&
           (!change.from || glob.covers(change.from->str()));
  });
}

}  // namespace

Result<std::vector<RelPath>> approve_standing(
    Plan& plan, const diff::ChangeSet& set,
    const std::vector<std::string>& auto_approve, const Signature& by) {
  std::vector<Glob> globs;
  for (const std::string& text : auto_approve)
    globs.push_back(TRY(Glob::parse(text)));
  std::erase_if(plan.decisions, [&](const Decision& decision) {
    if (!decision.standing) return false;
    const diff::Change* change = set.find(decision.path);
    return change == nullptr || !is_covered(globs, *change);
  });
  std::vector<RelPath> paths;
  for (const diff::Change& change : set.changes) {
    if (!is_covered(globs, change)) continue;
    Opinion before = TRY(opinion(plan, change));
    if (before.decided != Decided::kNone) continue;
    // A set of its own, so that nothing else can be selected along.
    diff::ChangeSet one;
    one.changes.push_back(change);
    ApproveRequest request;
    request.all = true;
    request.by = by;
    TRY(approve(plan, one, request));
    Decision decision = *plan.find(change.path);
    decision.standing = true;
    decision.confirmed = false;
    plan.set(std::move(decision));
    paths.push_back(change.path);
  }
  return paths;
}

Status check_age(const Plan& plan, timespec now, std::chrono::seconds max_age) {
  for (const Decision& decision : plan.decisions) {
    bool approves =
        decision.edits.empty()
            ? decision.verdict == Verdict::kApproved
            : std::any_of(decision.edits.begin(), decision.edits.end(),
                          [](const EditDecision& edit) {
                            return edit.verdict == Verdict::kApproved;
                          });
    // The policy's own word is as young as the policy.
    if (!approves || decision.standing) continue;
    std::chrono::seconds age(now.tv_sec - decision.by.time.tv_sec);
    if (age <= max_age) continue;
    return std::unexpected(
        Error(Code::kDrift,
              fmt::format("{} was approved {} ago, and the "
                          "policy's max_age is {}",
                          quote_name(shown_path(decision.path)),
                          print_duration(age), print_duration(max_age)))
            .with_hint("look at it again and approve it anew"));
  }
  return {};
}

}  // namespace stoplog::gate
