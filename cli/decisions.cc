// SPDX-License-Identifier: Apache-2.0
#include "cli/decisions.h"

#include <sys/file.h>

#include "base/glob.h"
#include "base/sys_file.h"
#include "cli/who.h"
#include "draft/layout.h"
#include "draft/ledger.h"

namespace stoplog::cli {

Result<Decisions> Decisions::load(const Opened& opened,
                                  const diff::ChangeSet& set) {
  Decisions d;
  d.plan_ = TRY_CTX(gate::load_plan(opened.draft_dir.get(), draft::kPlanFile),
                    "cannot read the decisions");
  for (const diff::Change& change : set.changes) {
    gate::Opinion opinion = TRY(gate::opinion(d.plan_, change));
    if (opinion.stale) d.stale_ = true;
    bool taken = opinion.decided == gate::Decided::kApproved ||
                 opinion.decided == gate::Decided::kPartial;
    if (taken) ++d.approved_;
    if (opinion.decided == gate::Decided::kNone) ++d.undecided_;
    if (opinion.decided != gate::Decided::kNone || opinion.stale)
      d.opinions_[change.path] = std::move(opinion);
  }
  for (const gate::Decision& decision : d.plan_.decisions)
    if (decision.verdict == gate::Verdict::kApproved &&
        set.find(decision.path) == nullptr)
      d.stale_ = true;
  return d;
}

std::string Decisions::word(const diff::Change& change) const {
  auto found = opinions_.find(change.path);
  return std::string(gate::name_of(
      found == opinions_.end() ? gate::Decided::kNone : found->second.decided));
}

Status change_plan(const Opened& opened,
                   const std::function<Status(gate::Plan&)>& change) {
  Fd lock = TRY(sys::openat(opened.draft_dir.get(), draft::kMetaLockFile,
                            O_RDWR | O_CREAT, 0600));
  TRY(sys::flock(lock.get(), LOCK_EX));
  gate::Plan plan =
      TRY_CTX(gate::load_plan(opened.draft_dir.get(), draft::kPlanFile),
              "cannot read the decisions");
  gate::Plan before = plan;
  TRY(change(plan));
  if (plan == before) return {};
  TRY_CTX(gate::save_plan(opened.draft_dir.get(), plan, draft::kPlanFile),
          "cannot write the decisions");
  return {};
}

Result<size_t> approve_standing(const Opened& opened,
                                const draft::Policy& policy,
                                const diff::ChangeSet& set) {
  std::vector<Glob> globs;
  for (const std::string& text : policy.auto_approve.value)
    globs.push_back(TRY(Glob::parse(text)));
  if (globs.empty()) return 0;
  size_t count = 0;
  TRY(change_plan(opened, [&](gate::Plan& plan) -> Status {
    for (const diff::Change& change : set.changes) {
      if (change.is_danger() || change.git || change.ignored) continue;
      if (TRY(gate::opinion(plan, change)).decided != gate::Decided::kNone)
        continue;
      bool covered = false;
      for (const Glob& glob : globs)
        covered = covered || glob.covers(change.path.str());
      if (!covered) continue;
      TRY(gate::approve(plan, set,
                        {.paths = {change.path}, .by = signature(set)}));
      if (const gate::Decision* made = plan.find(change.path)) {
        gate::Decision standing = *made;
        standing.standing = true;
        standing.confirmed = false;
        plan.set(std::move(standing));
        ++count;
      }
    }
    return {};
  }));
  return count;
}

}  // namespace stoplog::cli
