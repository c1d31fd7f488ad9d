// SPDX-License-Identifier: Apache-2.0
// What the policy decides without asking anyone: modes, standing approvals,
// how old an approval may be. Pure functions.
#pragma once

#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diff/change_set.h"
#include "gate/plan.h"

namespace stoplog::gate {

enum class Mode {
  kObserve,  // the workspace is read-only, nothing can be committed
  kHold,     // work is held, commit is refused
  kGated,    // a person approves
  kAuto,     // standing approvals are committed at the end of a run
};
Result<Mode> parse_mode(std::string_view text);  // "gated"; Code::kInvalid
// Code::kRefused where the mode forbids a commit.
Status may_commit(Mode mode);

// Globs of always_ask as rules for the change set: they become dangers, which
// nothing but a person's word approves.
std::vector<diff::PolicyRule> always_ask_rules(
    const std::vector<std::string>& globs);

// Approves what matches a glob of auto_approve, carries no danger, is not
// ignored and was not decided yet; marked as standing. A standing approval that
// the policy no longer gives is taken back. Returns the paths newly approved.
Result<std::vector<RelPath>> approve_standing(
    Plan& plan, const diff::ChangeSet& set,
    const std::vector<std::string>& auto_approve, const Signature& by);

// Code::kDrift when a person's approval is older than the policy allows.
Status check_age(const Plan& plan, timespec now, std::chrono::seconds max_age);

}  // namespace stoplog::gate
