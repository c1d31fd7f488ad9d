// SPDX-License-Identifier: Apache-2.0
// The draft's plan.json beside its change set: what was decided about each
// change as it is now.
//
//   Decisions d = TRY(Decisions::load(opened, set));
//   d.word(change) == "approved"; d.stale();
//   TRY(change_plan(opened, [&](gate::Plan& plan) { ... }));
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/result.h"
#include "cli/opened.h"
#include "draft/policy.h"
#include "gate/gate.h"

namespace stoplog::cli {

class Decisions {
 public:
  // `ignored`: files that git ignores wait for a decision, too.
  static Result<Decisions> load(const Opened& opened,
                                const diff::ChangeSet& set,
                                bool ignored = false);
  // "none", "approved", "partial" or "rejected".
  std::string word(const diff::Change& change) const;
  // Something was approved that is not here any more as it was approved.
  bool stale() const { return stale_; }
  size_t approved() const { return approved_; }  // whole or in part
  // Whole or in part.
  size_t undecided() const { return undecided_; }
  const gate::Plan& plan() const { return plan_; }

 private:
  gate::Plan plan_;
  std::map<RelPath, gate::Opinion> opinions_;
  bool stale_ = false;
  size_t approved_ = 0, undecided_ = 0;
};

// Loads, changes and saves the plan under the draft's meta lock.
Status change_plan(const Opened& opened,
                   const std::function<Status(gate::Plan&)>& change);

// A PATH at which nothing is held is told where to look.
template <typename T>
Result<T> with_list_hint(Result<T> done) {
  if (!done && done.error().code() == Code::kUsage &&
      done.error().hint().empty())
    return std::unexpected(
        std::move(done).error().with_hint("`stoplog status` lists what is "
                                          "held"));
  return done;
}

// Approves what the policy approves unasked (auto_approve, without a danger);
// what is new of it is in the ledger, as a standing approval.
Status approve_standing(Context& context, const Opened& opened,
                        const draft::Policy& policy,
                        const diff::ChangeSet& set);

}  // namespace stoplog::cli
