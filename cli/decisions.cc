// SPDX-License-Identifier: Apache-2.0
#include "cli/decisions.h"

#include <sys/file.h>

#include <algorithm>

#include "base/json_path.h"
#include "base/sys_file.h"
#include "cli/who.h"
#include "diff/paint.h"
#include "draft/layout.h"
#include "draft/ledger.h"
#include "gate/standing.h"

namespace stoplog::cli {

Result<Decisions> Decisions::load(const Opened& opened,
                                  const diff::ChangeSet& set, bool ignored) {
  Decisions d;
  d.plan_ = TRY_CTX(gate::load_plan(opened.draft_dir.get(), draft::kPlanFile),
                    "cannot read the decisions");
  for (const diff::Change& change : set.changes) {
    gate::Opinion opinion = TRY(gate::opinion(d.plan_, change));
    if (opinion.stale) d.stale_ = true;
    if (opinion.approves) ++d.approved_;
    bool open = opinion.undecided || opinion.decided == gate::Decided::kNone;
    if (open && diff::is_listed(change, ignored, {})) ++d.undecided_;
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

Status approve_standing(Context& context, const Opened& opened,
                        const draft::Policy& policy,
                        const diff::ChangeSet& set) {
  // Mostly there is nothing to give and nothing to take back: no lock then.
  if (policy.auto_approve.value.empty()) {
    gate::Plan plan =
        TRY(gate::load_plan(opened.draft_dir.get(), draft::kPlanFile));
    if (std::ranges::none_of(plan.decisions, &gate::Decision::standing))
      return {};
  }
  std::vector<RelPath> paths;
  TRY(change_plan(opened, [&](gate::Plan& plan) -> Status {
    paths = TRY(gate::approve_standing(plan, set, policy.auto_approve.value,
                                       signature(set)));
    return {};
  }));
  if (paths.empty()) return {};
  draft::Ledger ledger =
      TRY(draft::Ledger::open(*TRY(context.layout()), opened.draft.id));
  Json fields = who_fields();
  fields.set("standing", true).set("policy", policy.digest());
  fields.set("digest", digest_text(set));
  set_paths(fields, "paths", paths);
  TRY(ledger.append("approve", fields, Sync::kNo));
  return {};
}

}  // namespace stoplog::cli
