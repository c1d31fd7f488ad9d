// SPDX-License-Identifier: Apache-2.0
// The decisions of a draft as the review sees them: gate's plan, read once,
// changed in memory, and written back path by path, so that what another
// command decided meanwhile about other paths stays.
//
//   PlanDecisions store(plan, signature, [&](auto change) {
//     return change_plan(opened, change);
//   });
//   run_review({.set = set, .decisions = store, ...});
//   for (const RelPath& path : store.take_decided().approved) ...
//
// Everything that is approved here was looked at, so that dangers count as
// named. An error of put() (content that cannot be read) is returned by the
// next save(). One thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/review_decisions.h"
#include "gate/decide.h"
#include "gate/plan.h"

namespace stoplog::cli {

// Loads the plan under its lock, lets it be changed, saves it.
using ChangePlan =
    std::function<Status(const std::function<Status(gate::Plan&)>&)>;

class PlanDecisions : public DecisionStore {
 public:
  PlanDecisions(gate::Plan plan, gate::Signature by, ChangePlan change_plan)
      : plan_(std::move(plan)),
        by_(std::move(by)),
        change_plan_(std::move(change_plan)) {}

  FileDecision get(const diff::Change& change,
                   const diff::TextDiff* text) const override;
  Summary summary(const diff::Change& change) const override;
  void put(const diff::Change& change, const diff::TextDiff* text,
           const FileDecision& decision) override;
  Status save() override;

  // What was decided since the last call, as it stands now, by path.
  struct Decided {
    std::vector<RelPath> approved;  // whole or in part
    // By the reason that was given; "" when none was.
    std::map<std::string, std::vector<RelPath>> rejected;
  };
  Decided take_decided();
  const gate::Plan& plan() const { return plan_; }

 private:
  Status put_whole(const diff::Change& change, const FileDecision& decision);
  Status put_parts(const diff::Change& change, const diff::TextDiff& text,
                   const FileDecision& decision);

  gate::Plan plan_;
  gate::Signature by_;
  ChangePlan change_plan_;
  std::set<RelPath> unsaved_, untaken_;
  std::optional<Error> error_;
};

}  // namespace stoplog::cli
