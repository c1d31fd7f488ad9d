// SPDX-License-Identifier: Apache-2.0
#include "cli/commit_flow.h"

#include <algorithm>

#include "base/clock.h"
#include "base/escape.h"
#include "base/interrupt.h"
#include "base/json_path.h"
#include "base/shown_path.h"
#include "base/strings.h"
#include "base/sys_file.h"
#include "base/units.h"
#include "cli/decisions.h"
#include "cli/opened.h"
#include "cli/out_file.h"
#include "cli/rejection_notes.h"
#include "cli/wait_line.h"
#include "cli/who.h"
#include "cli/words.h"
#include "draft/ledger.h"
#include "draft/report.h"
#include "gate/standing.h"

namespace stoplog::cli {
namespace {

struct Flow {
  Context& context;
  const CommitChoice& choice;
  Opened opened;
  draft::Policy policy;
  diff::ChangeSet set;
};

Error dangers_left(const std::vector<RelPath>& paths) {
  std::string names;
  for (size_t i = 0; i < paths.size() && i < 20; ++i)
    names += (i == 0 ? "" : ", ") + escape(paths[i].str());
  if (paths.size() > 20)
    names += fmt::format(" and {} more", paths.size() - 20);
  return Error(
             Code::kRefused,
             fmt::format("cannot commit: a danger is not approved: {}", names))
      .with_hint(
          "look with `stoplog diff PATH`, then `stoplog approve PATH`, "
          "or say --danger");
}

gate::ApproveRequest everything(const Flow& flow) {
  return {.all = true,
          .danger = flow.choice.danger,
          .include_ignored = flow.policy.ignored.value == "commit",
          .keep_rejected = true,
          .renew = flow.policy.max_age.value.has_value(),
          .by = signature(flow.set)};
}

// What a question is about, as much as a glance takes.
void name_them(Output& out, const std::vector<RelPath>& paths) {
  constexpr size_t kMost = 10;
  for (size_t i = 0; i < std::min(paths.size(), kMost); i++)
    out.say("  " + escape(paths[i].str()));
  if (paths.size() > kMost)
    out.say(fmt::format("  and {} more", paths.size() - kMost));
}

// With -a on a terminal: all at once, then each danger by name. These are what
// it returns. No lock is held: a person may take as long as he likes, and who
// comes meanwhile has the draft.
Result<std::vector<RelPath>> ask(Flow& flow, gate::Plan plan) {
  flow.opened.lock.reset();
  if (!can_ask())
    return std::unexpected(
        Error(Code::kDeclined,
              "cannot ask: there is no terminal, and -a approves everything")
            .with_hint("-y approves without being asked"));
  gate::ApproveReport report =
      TRY(gate::approve(plan, flow.set, everything(flow)));
  name_them(flow.context.out, report.approved);
  if (!report.approved.empty() &&
      !ask_yes(fmt::format("approve and commit {}?",
                           plural(report.approved.size(), "change"))))
    return fail(Code::kDeclined, "nothing was approved");
  std::vector<RelPath> named, left;
  for (const RelPath& path : report.dangers) {
    const diff::Change* change = flow.set.find(path);
    std::string why = change != nullptr && !change->risks.empty()
                          ? escape(change->risks.front().message)
                          : "";
    bool yes = ask_yes(fmt::format("danger: {}: {}; approve it?",
                                   escape(shown_path(path)), why));
    (yes ? named : left).push_back(path);
  }
  if (!left.empty()) return std::unexpected(dangers_left(left));
  return named;
}

Result<gate::ApproveReport> approve_in(gate::Plan& plan, const Flow& flow,
                                       const std::vector<RelPath>& named) {
  gate::drop_gone(plan, flow.set);
  gate::ApproveReport report =
      TRY(gate::approve(plan, flow.set, everything(flow)));
  std::vector<RelPath> left;
  for (const RelPath& path : report.dangers)
    if (std::ranges::find(named, path) == named.end()) left.push_back(path);
  if (!left.empty()) return std::unexpected(dangers_left(left));
  // Each alone: the top of the workspace, as a path, means all beneath it.
  for (const RelPath& path : named) {
    diff::ChangeSet one;
    if (const diff::Change* change = flow.set.find(path))
      one.changes.push_back(*change);
    TRY(gate::approve(plan, one, {.paths = {path}, .by = signature(flow.set)}));
  }
  report.approved.insert(report.approved.end(), named.begin(), named.end());
  return report;
}

// The decisions as they were written down.
Result<gate::Plan> approve_all(Flow& flow, const std::vector<RelPath>& named) {
  gate::ApproveReport report;
  gate::Plan kept;
  TRY(change_plan(flow.opened, [&](gate::Plan& plan) -> Status {
    report = TRY(approve_in(plan, flow, named));
    kept = plan;
    return {};
  }));
  if (report.approved.empty()) return kept;
  draft::Ledger ledger = TRY(
      draft::Ledger::open(*TRY(flow.context.layout()), flow.opened.draft.id));
  Json fields = who_fields();
  fields.set("digest", digest_text(flow.set));
  fields.set("danger", flow.choice.danger).set("asked", !flow.choice.yes);
  set_paths(fields, "paths", report.approved);
  TRY(ledger.append("approve", fields, Sync::kYes));
  return kept;
}

gate::CommitMeta meta_of(const Flow& flow) {
  gate::CommitMeta meta;
  meta.time = Clock::real().now();
  meta.draft = flow.opened.draft.id;
  meta.position = flow.opened.view->position();
  meta.change_digest = digest_text(flow.set);
  meta.policy_digest = flow.policy.digest();
  meta.user = user_name();
  meta.tty = terminal_name();
  return meta;
}

// The real tree has it: the draft, the plan and the record learn of it, each
// whether or not the others could.
Status retire_approvals(Flow& flow, const CommitEnd& end) {
  return change_plan(flow.opened, [&](gate::Plan& plan) -> Status {
    gate::retire(plan, end.result);
    return {};
  });
}

Status write_down(Flow& flow, const CommitEnd& end) {
  draft::Ledger ledger = TRY(
      draft::Ledger::open(*TRY(flow.context.layout()), flow.opened.draft.id));
  const gate::CommitMeta& meta = end.result.record.meta;
  Json fields = who_fields();
  fields.set("commit", meta.number).set("digest", meta.change_digest);
  fields.set("plan", meta.plan_digest).set("policy", meta.policy_digest);
  if (!end.result.merge_digest.empty())
    fields.set("merge", end.result.merge_digest);
  set_paths(fields, "paths", end.result.approved);
  TRY(ledger.append("commit", fields, Sync::kYes));
  return {};
}

// Who approved each path, the commands that led here, and one digest over all
// that was changed.
Status complete_receipt(Flow& flow, const gate::Plan& plan, Json& receipt) {
  Json approvals = Json::array();
  for (const gate::Decision& d : plan.decisions) {
    if (!gate::Plan::approves(d)) continue;
    Json one = Json::object();
    set_path(one, "path", shown_path(d.path)).set("user", d.by.user);
    one.set("tty", d.by.tty.empty() ? Json() : Json(d.by.tty));
    one.set("time", rfc3339(d.by.time)).set("standing", d.standing);
    approvals.push(one.set("parts", !d.edits.empty()));
  }
  Json commands = Json::array();
  draft::Ledger ledger = TRY(
      draft::Ledger::open(*TRY(flow.context.layout()), flow.opened.draft.id));
  const std::map<int64_t, Json> cuts = TRY(draft::cut_outputs(ledger));
  TRY(ledger.for_each([&](const Json& entry) {
    if (entry.text("kind") != "run") return true;
    Json one = Json::object();
    for (const char* key :
         {"command", "argv", "argv_bytes", "cwd", "exit", "time"})
      if (const Json* value = entry.find(key)) one.set(key, *value);
    if (auto cut = cuts.find(entry.integer("command")); cut != cuts.end())
      one.set("exit", cut->second["exit"]);
    commands.push(std::move(one));
    return true;
  }));
  receipt.set("patch", "sha256:" + hex(sha256(receipt["changes"].dump())));
  receipt.set("approvals", approvals).set("commands", commands);
  return {};
}

// What undo may take is the policy's; the oldest go, named one commit before.
Status limit_undo(Flow& flow, CommitEnd& end) {
  if (!flow.policy.undo_size.value) return {};
  uint64_t limit = *flow.policy.undo_size.value;
  auto trimmed = TRY(gate::trim_undo(flow.opened.door.state.get(),
                                     *flow.opened.door.objects, limit));
  auto names = [](const std::vector<uint64_t>& numbers) {
    return numbers.size() == 1 ? fmt::format("commit {}", numbers.front())
                               : fmt::format("commits {} to {}",
                                             numbers.front(), numbers.back());
  };
  if (!trimmed.next.empty())
    end.result.notes.push_back(fmt::format(
        "what undo keeps takes {}, and gate.undo_size is {}: {} can no longer "
        "be undone after the next commit",
        print_size(trimmed.bytes), print_size(limit), names(trimmed.next)));
  if (!trimmed.gone.empty())
    end.result.notes.push_back(
        fmt::format("{} can no longer be undone (gate.undo_size is {})",
                    names(trimmed.gone), print_size(limit)));
  return {};
}

// What failed after the commit is said, not returned: an error would mean that
// nothing was written. The next command catches up with it.
void finish(Flow& flow, const gate::Plan& plan, const OutFile* receipt,
            CommitEnd& end) {
  auto note = [&](Status done) {
    if (!done)
      end.result.notes.push_back("the commit is done, but " +
                                 done.error().text());
  };
  WaitLine line("committed; telling the draft");
  note(complete_receipt(flow, plan, end.receipt));
  // Before the draft is noted as told: a command that finds it untold looks
  // whether this was done, too.
  note(write_down(flow, end));
  Status told = tell_draft(flow.context, flow.opened, end.result.record);
  flow.opened.lock.reset();  // whoever looks next takes its own
  if (!told)
    note(std::unexpected(
        std::move(told).error().context("the draft could not be told")));
  note(retire_approvals(flow, end));
  note(limit_undo(flow, end));
  if (receipt != nullptr) {
    Status written = receipt->write(0644, [&](int fd) {
      return sys::write_full(fd, end.receipt.pretty());
    });
    if (!written)
      note(std::unexpected(
          std::move(written).error().context("the receipt is not written")));
  }
  line.clear();
  auto held = close_if_whole(flow.context, flow.opened.draft, true);
  if (held)
    end.left = held->changes, end.left_ignored = held->ignored;
  else
    note(std::unexpected(std::move(held).error()));
}

}  // namespace

Result<StillHeld> close_if_whole(Context& context, const draft::Draft& draft,
                                 bool has_turn) {
  Opened again = TRY(open_draft(context, draft, {.has_turn = has_turn}));
  diff::ChangeSet set =
      TRY(changes_of(again, TRY(load_policy(context)),
                     {.digest = false, .count_lines = false, .risks = false}));
  StillHeld held;
  for (const diff::Change& change : set.changes)
    held.changes += change.ignored ? 0 : 1;
  for (const diff::Group& group : set.groups) held.ignored += group.files;
  if (!set.changes.empty() || !set.groups.empty()) return held;
  // Who goes on working in it would do so where no command looks.
  if (again.daemon && !again.daemon->daemon().mount.empty()) return held;
  if (again.daemon && !TRY(again.daemon->running()).empty()) return held;
  // Who starts to work in it meanwhile opens it again (run at its end, mount).
  // Lost with the power, it is an open draft that holds nothing.
  TRY(draft::update_draft(
      again.draft_dir.get(),
      [](draft::Draft& d) -> Status {
        d.state = draft::DraftState::kCommitted;
        return {};
      },
      Sync::kNo));
  return held;
}

Result<CommitEnd> commit_draft(Context& context, const draft::Draft& draft,
                               const CommitChoice& choice) {
  if (draft.state == draft::DraftState::kDiscarded)
    return std::unexpected(
        Error(Code::kUsage, fmt::format("draft '{}' was discarded", draft.name))
            .with_hint(fmt::format("`stoplog fork NAME` takes it up again, "
                                   "`stoplog rm {}` frees what it took",
                                   draft.name)));
  draft::Policy policy = TRY(load_policy(context));
  if (!choice.dry_run)
    TRY_CTX(gate::may_commit(TRY(gate::parse_mode(policy.gate_mode.value))),
            policy.gate_mode.origin);
  // Nobody waits for a person who is being asked.
  const bool asks = choice.all && !choice.yes;
  std::optional<draft::DraftTurn> turn;
  if (!choice.dry_run && !asks) turn = TRY(take_turn(context, draft));
  Flow flow{context,
            choice,
            TRY(open_draft(context, draft,
                           {.settle = true, .has_turn = turn.has_value()})),
            std::move(policy),
            {}};
  flow.set = TRY(changes_of(flow.opened, flow.policy));
  CommitEnd end;
  end.receipt = Json::object().set("version", 1).set("commit", Json());
  if (flow.set.empty()) {
    end.nothing = true;
    return end;
  }
  TRY(approve_standing(context, flow.opened, flow.policy, flow.set));
  auto load_plan = [&] {
    return gate::load_plan(flow.opened.draft_dir.get(), draft::kPlanFile);
  };
  std::vector<RelPath> named;
  // A dry run approves nothing: there is nothing to ask.
  if (asks && !choice.dry_run) {
    named = TRY(ask(flow, TRY(load_plan())));
    turn = TRY(take_turn(context, draft));
    TRY(take_up(context, flow.opened));
  }
  gate::Plan plan = choice.all && !choice.dry_run
                        ? TRY(approve_all(flow, named))
                        : TRY(load_plan());
  // Tried before anything is committed.
  std::optional<OutFile> receipt;
  if (choice.receipt)
    receipt = TRY(OutFile::at(*choice.receipt, "the receipt "));
  if (choice.all && choice.dry_run) TRY(approve_in(plan, flow, named));
  if (choice.standing_only)
    std::erase_if(plan.decisions,
                  [](const gate::Decision& d) { return !d.standing; });
  if (flow.policy.max_age.value)
    TRY(gate::check_age(plan, Clock::real().now(),
                        std::chrono::duration_cast<std::chrono::seconds>(
                            Millis(*flow.policy.max_age.value))));
  Hold hold;  // the real tree, the draft and the record are one
  WaitLine line(choice.dry_run ? "verifying" : "committing");
  auto result = gate::commit({.ground = flow.opened.door.ground(),
                              .set = &flow.set,
                              .plan = &plan,
                              .meta = meta_of(flow),
                              .merge = choice.merge,
                              .merge_digest = choice.digest,
                              .dry_run = choice.dry_run});
  line.clear();
  if (!result && result.error().code() == Code::kDeclined)
    return std::unexpected(std::move(result.error())
                               .with_hint("`stoplog review`, `stoplog approve "
                                          "PATH`, or `stoplog commit -a`"));
  if (!result && result.error().code() == Code::kDrift &&
      result.error().hint().empty())
    return std::unexpected(std::move(result.error())
                               .with_hint(choice.merge
                                              ? "edit one of the two, or "
                                                "discard the draft's"
                                              : "look with `stoplog status`; "
                                                "`stoplog commit --merge` "
                                                "merges what drifted; "
                                                "approve anew what the draft "
                                                "changed"));
  end.result = TRY(std::move(result));
  Json merge;
  if (!end.result.merge_digest.empty()) merge = Json(end.result.merge_digest);
  if (choice.dry_run) {
    end.receipt.set("merge", merge);
    return end;
  }
  end.receipt = commit_json(end.result.record, draft.workspace);
  end.receipt.set("merge", merge);
  finish(flow, plan, receipt ? &*receipt : nullptr, end);
  return end;
}

Status commit_standing(Context& context, const draft::Draft& draft) {
  auto end = commit_draft(context, draft, {.yes = true, .standing_only = true});
  if (!end && end.error().code() == Code::kDeclined) return {};
  if (!end) {
    context.out.note(
        fmt::format("not committed by itself: {}", escape(end.error().text())));
    return {};
  }
  if (!end->nothing)
    context.out.note(
        fmt::format("committed {} by the policy's word, as commit {}",
                    plural(end->result.approved.size(), "change"),
                    end->result.record.meta.number));
  return {};
}

}  // namespace stoplog::cli
