// SPDX-License-Identifier: Apache-2.0
// From a plan and the change set as it is now to the items of a commit: only
// what is approved, exactly as it was approved, with the directories that it
// needs.
//
// Errors, with names: Code::kDrift when an approved path changed since;
// Code::kRefused for a danger that was not approved by name, and for a change
// that cannot stand without another one that is not approved.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "diff/change_set.h"
#include "gate/commit_plan.h"
#include "gate/plan.h"

namespace stoplog::gate {

struct Selection {
  std::vector<Item> items;
  // The rows of git directories that were approved (gate/git_rule.h).
  std::vector<const diff::Change*> git;
  std::vector<RelPath> approved;   // changes, whole or in part
  std::vector<std::string> notes;  // for a person: bits that were taken off
};
// The change set must outlive it.
Result<Selection> select_items(const Plan& plan, const diff::ChangeSet& set);

// A plain change as an item; hashes are taken where they are missing.
Result<Item> item_of(const diff::Change& change);

// What a new mode may be without a person's word for it: no setuid or setgid
// on files, not writable by others and not shut to its owner, unless the base
// had it so.
mode_t tame_mode(const Node& fresh, const std::optional<Node>& old);

}  // namespace stoplog::gate
