// SPDX-License-Identifier: Apache-2.0
#include "gate/decide.h"

#include <algorithm>
#include <map>

#include "base/escape.h"
#include "base/shown_path.h"
#include "diff/canonical.h"
#include "diff/content_hash.h"
#include "diff/select.h"

namespace stoplog::gate {
namespace {

// An approval binds content: hashes that the change set left out are taken now,
// of a copy in `own`. A change is half a kilobyte, and mostly has them.
Result<const diff::Change*> hashed(const diff::Change& change,
                                   std::optional<diff::Change>& own) {
  if (diff::has_hashes(change)) return &change;
  own = change;
  TRY(diff::ensure_hashes(*own));
  return &*own;
}

// Where the draft has no content of its own, the new side is the old one.
diff::Change with_base_of(diff::Change change, const Decision& decision) {
  if (decision.base) change.old_sha256 = decision.base;
  if (change.follows) change.new_sha256 = decision.base;
  return change;
}

Result<Decision> decision_on(const diff::Change& change, Verdict verdict,
                             const Signature& by) {
  std::optional<diff::Change> own;
  const diff::Change* full = TRY(hashed(change, own));
  Decision decision;
  decision.path = change.path;
  decision.verdict = verdict;
  decision.change = diff::change_digest(*full);
  decision.base = full->old_sha256;
  decision.fresh = full->new_sha256;
  decision.by = by;
  return decision;
}

bool is_text(const diff::Change& change) {
  auto text_file = [](const std::optional<fs::NodeState>& state) {
    return !state ||
           (state->type == fs::Type::kFile && state->size <= diff::kTextLimit);
  };
  return !change.git && !change.binary && !change.too_large &&
         change.content_changed && text_file(change.before) &&
         text_file(change.after);
}

const RejectedEdit* find_rejected(const Plan& plan, const RelPath& path,
                                  const diff::TextDiff& text, size_t index) {
  Sha256Digest digest = edit_text_digest(text, index);
  auto it = std::ranges::find_if(plan.rejected, [&](const RejectedEdit& edit) {
    return edit.path == path && edit.text == digest;
  });
  return it == plan.rejected.end() ? nullptr : &*it;
}

// What is known of this change from edits that were rejected before and are
// back in it: the others are undecided.
std::optional<Opinion> known_again(const Plan& plan,
                                   const diff::Change& change) {
  bool any = std::any_of(
      plan.rejected.begin(), plan.rejected.end(),
      [&](const RejectedEdit& edit) { return edit.path == change.path; });
  if (!any || !is_text(change)) return std::nullopt;
  auto text = text_of(change);
  if (!text) return std::nullopt;
  size_t known = 0;
  Opinion opinion;
  for (size_t i = 0; i < text->edits.size(); ++i) {
    const RejectedEdit* edit = find_rejected(plan, change.path, *text, i);
    if (edit != nullptr && known++ == 0) opinion.reason = edit->reason;
  }
  if (known == 0) return std::nullopt;
  opinion.undecided = known < text->edits.size() || change.mode_changed;
  opinion.decided = opinion.undecided ? Decided::kPartial : Decided::kRejected;
  return opinion;
}

Result<Opinion> opinion_on_parts(const Plan& plan, const Decision& decision,
                                 const diff::Change& change) {
  Opinion opinion{.reason = decision.reason};
  auto text = text_of(change);
  if (!text) {
    opinion.stale = true;
    return opinion;
  }
  auto chosen = approved_edits(decision, change, *text);
  if (!chosen) {
    opinion.stale = true;
    return opinion;
  }
  std::vector<std::optional<Verdict>> parts =
      edit_verdicts(plan, change, *text);
  if (change.mode_changed) parts.push_back(mode_verdict(decision, change));
  auto count = [&](std::optional<Verdict> verdict) {
    return std::ranges::count(parts, verdict);
  };
  opinion.approves = count(Verdict::kApproved) > 0;
  opinion.undecided = count(std::nullopt) > 0;
  if (count(Verdict::kApproved) == std::ssize(parts))
    opinion.decided = Decided::kApproved;
  else
    opinion.decided = opinion.approves || opinion.undecided
                          ? Decided::kPartial
                          : Decided::kRejected;
  return opinion;
}

// The parts without a verdict; those that have one keep it.
Status approve_rest(Plan& plan, const diff::Change& change,
                    const Opinion& before, const ApproveRequest& request) {
  diff::TextDiff text = TRY(text_of(change));
  auto verdicts = edit_verdicts(plan, change, text);
  // None when all that is known are edits rejected before an earlier commit.
  const Decision* made = plan.find(change.path);
  Decision decision = TRY(decision_on(change, Verdict::kApproved, request.by));
  decision.confirmed = request.danger || (made != nullptr && made->confirmed);
  decision.reason = before.reason;
  bool whole = true;
  auto add = [&](const Sha256Digest& part, std::optional<Verdict> verdict) {
    decision.edits.push_back({part, verdict.value_or(Verdict::kApproved)});
    whole = whole && decision.edits.back().verdict == Verdict::kApproved;
  };
  for (size_t i = 0; i < verdicts.size(); ++i)
    add(diff::edit_digest(text, i), verdicts[i]);
  if (change.mode_changed)
    add(mode_digest(change),
        made == nullptr ? std::nullopt : mode_verdict(*made, change));
  if (whole) decision.edits.clear();
  plan.set(std::move(decision));
  return {};
}

// What was decided before stands in the way of approving all: true when there
// is nothing more to do about the change.
Result<bool> stands(Plan& plan, const diff::Change& change,
                    const ApproveRequest& request, bool shy,
                    ApproveReport& report) {
  Opinion before = TRY(opinion(plan, change));
  bool parts = before.undecided ||
               (request.renew && before.decided == Decided::kPartial);
  if (request.keep_rejected && !shy && parts) {
    TRY(approve_rest(plan, change, before, request));
    report.approved.push_back(change.path);
    return true;
  }
  if (request.keep_rejected && before.decided == Decided::kRejected) {
    report.rejected.push_back(change.path);
    return true;
  }
  if (request.renew && !shy) {
    if (before.decided != Decided::kApproved || before.stale) return false;
    Decision again = *plan.find(change.path);
    again.by = request.by;
    again.confirmed = again.confirmed || request.danger;
    again.standing = false;
    plan.set(std::move(again));
    report.approved.push_back(change.path);
    return true;
  }
  // What was decided stands, parts of it one by one too; of a danger only when
  // the person named it then.
  bool decided = before.decided == Decided::kApproved ||
                 before.decided == Decided::kPartial;
  return decided && !before.stale &&
         (!shy || plan.find(change.path)->confirmed);
}

}  // namespace

std::string_view name_of(Decided decided) {
  switch (decided) {
    case Decided::kNone:
      return "none";
    case Decided::kApproved:
      return "approved";
    case Decided::kPartial:
      return "partial";
    case Decided::kRejected:
      return "rejected";
  }
  return "none";
}

Result<const diff::Change*> as_decided(const diff::Change& change,
                                       const Decision& decision,
                                       std::optional<diff::Change>& own) {
  const diff::Change* full = TRY(hashed(change, own));
  if (diff::change_digest(*full) == decision.change) return full;
  if (!change.base_lost) return nullptr;
  own = with_base_of(*full, decision);
  return diff::change_digest(*own) == decision.change ? &*own : nullptr;
}

Result<Opinion> opinion(const Plan& plan, const diff::Change& change) {
  const Decision* decision = plan.find(change.path);
  if (decision != nullptr && !decision->edits.empty())
    return opinion_on_parts(plan, *decision, change);
  Opinion opinion;
  if (decision != nullptr) {
    std::optional<diff::Change> own;
    if (TRY(as_decided(change, *decision, own)) != nullptr) {
      opinion.approves = decision->verdict == Verdict::kApproved;
      opinion.decided =
          opinion.approves ? Decided::kApproved : Decided::kRejected;
      opinion.reason = decision->reason;
      return opinion;
    }
    // A rejected change that became another one is simply undecided.
    opinion.stale = decision->verdict == Verdict::kApproved;
  }
  if (auto known = known_again(plan, change)) {
    known->stale = opinion.stale;
    return *known;
  }
  return opinion;
}

Result<ApproveReport> approve(Plan& plan, const diff::ChangeSet& set,
                              const ApproveRequest& request) {
  if (request.digest) {
    std::string now = set.digest ? "sha256:" + hex(*set.digest) : "";
    if (*request.digest != now && "sha256:" + *request.digest != now)
      return std::unexpected(
          Error(Code::kDrift,
                fmt::format("the change set is no longer that one: it is {}",
                            now.empty() ? "empty" : now))
              .with_hint("look again: `stoplog status`, `stoplog diff`"));
  }
  ApproveReport report;
  std::vector<bool> used(request.paths.size());
  for (const diff::Change& change : set.changes) {
    bool named = false, within = request.all;
    for (size_t i = 0; i < request.paths.size(); ++i) {
      if (change.path == request.paths[i])
        used[i] = named = true;
      else if (diff::is_selected(change, {request.paths[i]}))
        used[i] = within = true;
    }
    if (!named && !within) continue;
    if (!named) {
      bool shy = change.is_danger() && !request.danger;
      if ((request.keep_rejected || shy) &&
          TRY(stands(plan, change, request, shy, report)))
        continue;
      if (shy) {
        report.dangers.push_back(change.path);
        continue;
      }
      if (change.ignored && request.all && !request.include_ignored) {
        const auto& state = change.after ? change.after : change.before;
        if (!state || state->type != fs::Type::kDir)
          report.ignored.push_back(change.path);
        continue;
      }
    }
    Decision decision =
        TRY(decision_on(change, Verdict::kApproved, request.by));
    decision.confirmed = named || request.danger;
    plan.set(std::move(decision));
    report.approved.push_back(change.path);
  }
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      return fail(Code::kUsage, "nothing changed at {}",
                  quote_name(shown_path(request.paths[i])));
  return report;
}

std::vector<RelPath> drop_gone(Plan& plan, const diff::ChangeSet& set) {
  std::vector<RelPath> gone;
  for (const Decision& decision : plan.decisions)
    if (Plan::approves(decision) && set.find(decision.path) == nullptr)
      gone.push_back(decision.path);
  plan.erase(gone);
  return gone;
}

Result<std::vector<RelPath>> reject(Plan& plan, const diff::ChangeSet& set,
                                    const RejectRequest& request) {
  std::vector<RelPath> rejected;
  std::vector<bool> used(request.paths.size());
  for (const diff::Change& change : set.changes) {
    bool chosen = false;
    for (size_t i = 0; i < request.paths.size(); ++i)
      if (diff::is_selected(change, {request.paths[i]}))
        used[i] = chosen = true;
    if (!chosen) continue;
    Decision decision =
        TRY(decision_on(change, Verdict::kRejected, request.by));
    decision.reason = request.reason;
    plan.set(std::move(decision));
    rejected.push_back(change.path);
    if (!is_text(change)) continue;
    auto text = text_of(change);
    for (size_t i = 0; text && i < text->edits.size(); ++i)
      plan.rejected.push_back(
          {change.path, edit_text_digest(*text, i), request.reason});
  }
  for (size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      return fail(Code::kUsage, "nothing changed at {}",
                  quote_name(shown_path(request.paths[i])));
  return rejected;
}

Result<diff::TextDiff> text_of(const diff::Change& change) {
  if (!is_text(change))
    return fail(Code::kUnsupported, "{} has no lines to choose from",
                quote_name(shown_path(change.path)));
  auto read =
      [](const std::optional<fs::NodeState>& state) -> Result<std::string> {
    if (!state || !state->content) return std::string();
    return diff::read_content(*state->content, diff::kTextLimit);
  };
  return diff::diff_texts(TRY(read(change.before)), TRY(read(change.after)));
}

Sha256Digest mode_digest(const diff::Change& change) {
  std::string text = "stoplog mode 1\n";
  for (const auto* state : {&change.before, &change.after}) {
    if (!*state) continue;
    text += fmt::format("{:o} {} {}\n", (*state)->mode, (*state)->uid,
                        (*state)->gid);
    for (const auto& [name, value] : (*state)->xattrs)
      text +=
          fmt::format("{}:{}{}:{}\n", name.size(), name, value.size(), value);
  }
  return sha256(text);
}

std::optional<Verdict> mode_verdict(const Decision& decision,
                                    const diff::Change& change) {
  if (!change.mode_changed) return std::nullopt;
  Sha256Digest digest = mode_digest(change);
  for (const EditDecision& edit : decision.edits)
    if (edit.edit == digest) return edit.verdict;
  return std::nullopt;
}

Result<std::vector<size_t>> approved_edits(const Decision& decision,
                                           const diff::Change& change,
                                           const diff::TextDiff& text) {
  std::map<Sha256Digest, size_t> here;
  for (size_t i = 0; i < text.edits.size(); ++i)
    here.emplace(diff::edit_digest(text, i), i);
  std::vector<size_t> chosen;
  Sha256Digest mode = mode_digest(change);
  for (const EditDecision& edit : decision.edits) {
    if (edit.verdict != Verdict::kApproved) continue;
    if (change.mode_changed && edit.edit == mode) continue;
    auto found = here.find(edit.edit);
    if (found == here.end())
      return fail(Code::kDrift,
                  "a part of {} that was approved is not there any more",
                  quote_name(shown_path(decision.path)));
    chosen.push_back(found->second);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<std::optional<Verdict>> edit_verdicts(const Plan& plan,
                                                  const diff::Change& change,
                                                  const diff::TextDiff& text) {
  std::vector<std::optional<Verdict>> verdicts(text.edits.size());
  const Decision* decision = plan.find(change.path);
  if (decision != nullptr && decision->edits.empty()) {
    auto whole = opinion(plan, change);
    if (whole && !whole->stale && !whole->undecided &&
        whole->decided != Decided::kNone) {
      verdicts.assign(text.edits.size(), decision->verdict);
      return verdicts;
    }
  }
  for (size_t i = 0; i < text.edits.size(); ++i) {
    if (decision != nullptr) {
      Sha256Digest digest = diff::edit_digest(text, i);
      for (const EditDecision& edit : decision->edits)
        if (edit.edit == digest) verdicts[i] = edit.verdict;
    }
    if (!verdicts[i] && find_rejected(plan, change.path, text, i) != nullptr)
      verdicts[i] = Verdict::kRejected;
  }
  return verdicts;
}

Status decide_edits(Plan& plan, const diff::Change& change,
                    const diff::TextDiff& text, const EditRequest& request) {
  auto verdicts = edit_verdicts(plan, change, text);
  for (size_t edit : request.edits) {
    if (edit >= verdicts.size())
      return fail(Code::kInternal, "no edit {} in {}", edit,
                  quote_name(shown_path(change.path)));
    verdicts[edit] = request.verdict;
    Sha256Digest words = edit_text_digest(text, edit);
    std::erase_if(plan.rejected, [&](const RejectedEdit& known) {
      return known.path == change.path && known.text == words;
    });
    if (request.verdict == Verdict::kRejected)
      plan.rejected.push_back({change.path, words, request.reason});
  }
  std::optional<Verdict> mode;
  if (const Decision* before = plan.find(change.path))
    mode = mode_verdict(*before, change);
  Decision decision = TRY(decision_on(change, request.verdict, request.by));
  decision.confirmed = true;  // it was looked at, part by part
  decision.reason = request.reason;
  // What was decided about the mode stands, and only then makes a difference.
  bool whole =
      (!mode || mode == request.verdict) &&
      std::all_of(verdicts.begin(), verdicts.end(), [&](const auto& verdict) {
        return verdict == request.verdict;
      });
  if (mode && !whole) decision.edits.push_back({mode_digest(change), *mode});
  for (size_t i = 0; !whole && i < verdicts.size(); ++i)
    if (verdicts[i])
      decision.edits.push_back({diff::edit_digest(text, i), *verdicts[i]});
  plan.set(std::move(decision));
  return {};
}

void undecide(Plan& plan, const RelPath& path) {
  plan.erase(path);
  std::erase_if(plan.rejected,
                [&](const RejectedEdit& edit) { return edit.path == path; });
}

std::string rejections_text(const Plan& plan) {
  std::string text;
  for (const Decision& decision : plan.decisions) {
    bool parts = std::any_of(decision.edits.begin(), decision.edits.end(),
                             [](const EditDecision& edit) {
                               return edit.verdict == Verdict::kRejected;
                             });
    bool whole =
        decision.edits.empty() && decision.verdict == Verdict::kRejected;
    if (!parts && !whole) continue;
    text += fmt::format("{}{}: {}\n", quote_name(shown_path(decision.path)),
                        parts ? " (in part)" : "",
                        decision.reason.empty()
                            ? "rejected"
                            : escape(decision.reason, Escape::kLine));
  }
  return text;
}

Sha256Digest edit_text_digest(const diff::TextDiff& text, size_t index) {
  const diff::Edit& edit = text.edits[index];
  Sha256 hash;
  std::string_view out = text.old_lines.range(edit.old_line, edit.old_count);
  hash.update(fmt::format("stoplog edit 1\n{}\n", out.size()));
  hash.update(out);
  hash.update(text.new_lines.range(edit.new_line, edit.new_count));
  return hash.finish();
}

}  // namespace stoplog::gate
