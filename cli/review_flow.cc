// SPDX-License-Identifier: Apache-2.0
#include "cli/review_flow.h"

#include <unistd.h>

#include <chrono>
#include <map>

#include "base/escape.h"
#include "base/json_path.h"
#include "base/sys_file.h"
#include "base/temp_file.h"
#include "cli/commit_flow.h"
#include "cli/decisions.h"
#include "cli/exit_codes.h"
#include "cli/opened.h"
#include "cli/patch_prompt.h"
#include "cli/rejection_notes.h"
#include "cli/review_history.h"
#include "cli/review_plan.h"
#include "cli/review_screen.h"
#include "cli/who.h"
#include "cli/words.h"
#include "diff/paint.h"
#include "diff/render.h"
#include "draft/ledger.h"

namespace stoplog::cli {
namespace {

constexpr char kLookedFile[] = "looked";
constexpr std::chrono::milliseconds kMakersWait{500};
constexpr uint64_t kMaxLooked = 64ull << 20;

// Everything that stands while the person decides.
class Sitting {
 public:
  static Result<std::unique_ptr<Sitting>> open(Context& context,
                                               const draft::Draft& draft) {
    std::unique_ptr<Sitting> s(new Sitting(context, draft));
    s->opened_ = TRY(open_draft(context, draft, {}));
    s->policy_ = TRY(load_policy(context));
    return s;
  }
  // Takes the time; reads alone.
  Status prepare(const diff::Progress& progress = {},
                 const TellEarly& early = {}) {
    diff::DiffOptions options;
    options.progress = progress;
    if (early)
      options.early = [&](diff::Early list) {
        tell_early(std::move(list), early);
      };
    set_ = TRY(changes_of(opened_, policy_, std::move(options)));
    gate::Plan plan =
        TRY_CTX(gate::load_plan(opened_.draft_dir.get(), draft::kPlanFile),
                "cannot read the decisions");
    opened_.lock.reset();
    if (!gate::drop_gone(plan, set_).empty())
      TRY(change_plan(opened_, [&](gate::Plan& kept) -> Status {
        gate::drop_gone(kept, set_);
        return {};
      }));
    store_.emplace(
        std::move(plan), signature(set_),
        [this](const auto& change) { return change_plan(opened_, change); });
    return {};
  }

  // With the decisions of before, to go on from; that they cannot be read is
  // said later.
  void tell_early(diff::Early list, const TellEarly& early) {
    auto plan = gate::load_plan(opened_.draft_dir.get(), draft::kPlanFile);
    if (!plan) return;
    early({.set = std::move(list.set),
           .look = std::move(list.look),
           .decisions = std::make_unique<PlanDecisions>(
               std::move(*plan), gate::Signature{},
               [](const auto&) -> Status { return {}; }),
           .looked = looked()});
  }

  const diff::ChangeSet& set() const { return set_; }
  bool with_ignored() const { return policy_.ignored.value == "commit"; }
  bool nothing_to_review() const {
    return diff::count_listed(set_, {.ignored = with_ignored()}) == 0;
  }
  PlanDecisions& store() { return *store_; }

  Looked looked() const {
    auto text =
        sys::read_file(opened_.draft_dir.get(), kLookedFile, kMaxLooked);
    return text ? Looked::parse(*text) : Looked();
  }
  void keep_looked(const Looked& looked) {
    // Lost, it makes things new again; no reason to disturb.
    (void)write_file(opened_.draft_dir.get(), kLookedFile, looked.print(), 0600,
                     Sync::kNo);
  }

  // Of the timeline; read when it is first asked for.
  std::string command_text(uint32_t number) {
    if (commands_.empty()) {
      auto layout = context_.layout();
      if (!layout) return "";
      auto ledger = draft::Ledger::open(**layout, draft_.id);
      if (!ledger) return "";
      (void)ledger->for_each([&](const Json& entry) {
        if (entry.text("kind") != "run") return true;
        std::vector<std::string> argv;
        for (const Json& word : entry["argv"].items())
          argv.push_back(word.string());
        commands_[static_cast<uint32_t>(entry.integer("command"))] =
            show_argv(argv, 200);
        return true;
      });
    }
    auto found = commands_.find(number);
    return found == commands_.end() ? "" : found->second;
  }

  // On a thread of the screen's, if there is one; it alone uses history_.
  std::optional<FileMakers> makers(const diff::Change& change,
                                   const std::function<bool()>& unwanted) {
    if (!history_) history_.emplace(opened_);
    std::vector<FileVersion> versions = history_->versions(change, unwanted);
    if (unwanted()) return std::nullopt;
    auto text = gate::text_of(change);
    return text ? makers_of(*text, versions) : FileMakers();
  }

  // Into the ledger, and to the agent, what was decided since the last time.
  Status record() {
    PlanDecisions::Decided decided = store_->take_decided();
    if (decided.approved.empty() && decided.rejected.empty()) return {};
    draft::Ledger ledger =
        TRY(draft::Ledger::open(*TRY(context_.layout()), draft_.id));
    Json who = who_fields();
    who.set("digest", digest_text(set_)).set("review", true);
    if (!decided.approved.empty()) {
      Json fields = who;
      set_paths(fields, "paths", decided.approved);
      TRY(ledger.append("approve", fields, Sync::kYes));
    }
    for (const auto& [reason, paths] : decided.rejected) {
      Json fields = who;
      fields.set("reason", reason);
      set_paths(fields, "paths", paths);
      TRY(ledger.append("reject", fields, Sync::kYes));
    }
    return tell_rejections(context_, opened_);
  }

  CommitReply commit() {
    Result<CommitEnd> end = fail(Code::kInternal, "");
    if (Status recorded = record(); !recorded)
      end = std::unexpected(std::move(recorded.error()));
    else
      end = commit_draft(context_, draft_, {.yes = true});
    if (!end) {
      std::string text = end.error().text();
      if (!end.error().hint().empty()) text += "\n\n" + end.error().hint();
      return {.done = false, .message = std::move(text)};
    }
    if (end->nothing) return {.done = false, .message = "nothing is approved"};
    std::string text =
        fmt::format("committed {} as commit {}",
                    plural(end->result.approved.size(), "change"),
                    end->result.record.meta.number);
    for (const std::string& note : end->result.notes) text += "\n" + note;
    if (std::string left = left_text(*end); !left.empty()) text += "\n" + left;
    return {.done = true, .message = std::move(text)};
  }

 private:
  Sitting(Context& context, const draft::Draft& draft)
      : context_(context), draft_(draft) {}

  Context& context_;
  const draft::Draft& draft_;
  Opened opened_;
  draft::Policy policy_;
  diff::ChangeSet set_;
  std::optional<PlanDecisions> store_;
  std::map<uint32_t, std::string> commands_;
  std::optional<History> history_;
};

void tell_rest(Context& context, size_t approved, size_t undecided) {
  context.out.note(fmt::format("{} approved, {} undecided",
                               plural(approved, "change"), undecided));
  if (approved > 0)
    context.out.hint("`stoplog commit` applies what is approved");
}

}  // namespace

Result<int> review_draft(Context& context, const draft::Draft& draft) {
  auto sitting = TRY(Sitting::open(context, draft));
  context.out.flush();
  auto request =
      [&](const diff::Progress& progress,
          const auto& early) -> Result<std::optional<ReviewRequest>> {
    TRY(sitting->prepare(progress, early));
    if (sitting->nothing_to_review()) return std::nullopt;
    return ReviewRequest{
        .set = sitting->set(),
        .decisions = sitting->store(),
        .looked = sitting->looked(),
        .title = draft.name,
        .command_text = [&](uint32_t n) { return sitting->command_text(n); },
        .commit = [&] { return sitting->commit(); },
        .save_looked = [&](const Looked& now) { sitting->keep_looked(now); },
        .makers =
            [&](const diff::Change& change,
                const std::function<bool()>& unwanted) {
              return sitting->makers(change, unwanted);
            },
        .color = context.out.color(),
        .ignored = sitting->with_ignored()};
  };
  std::optional<ReviewEnd> reviewed =
      TRY(run_review({.title = draft.name,
                      .color = context.out.color(),
                      .ignored = sitting->with_ignored(),
                      .prepare = request}));
  if (!reviewed) {
    context.out.note(sitting->set().empty()
                         ? "nothing is held: there is nothing to review"
                         : "only files that git ignores are held: there is "
                           "nothing to review");
    if (!sitting->set().empty())
      context.out.hint("`stoplog status --ignored` lists them");
    return kDone;
  }
  const ReviewEnd& end = *reviewed;
  TRY(sitting->record());
  if (!end.message.empty())
    context.out.note(escape(end.message, Escape::kText));
  if (end.committed)
    context.out.hint("`stoplog undo` takes it back");
  else
    tell_rest(context, end.approved, end.undecided);
  return end.signal != 0 ? kSignalBase + end.signal : kDone;
}

Result<int> approve_by_hunk(Context& context, const draft::Draft& draft,
                            const std::vector<RelPath>& paths) {
  auto sitting = TRY(Sitting::open(context, draft));
  TRY(sitting->prepare());
  context.out.flush();
  PromptEnd end = TRY(run_patch_prompt(
      {.set = sitting->set(),
       .decisions = sitting->store(),
       .input = STDIN_FILENO,
       .output = STDOUT_FILENO,
       .color = context.out.color(),
       .paths = paths,
       .ignored = sitting->with_ignored(),
       .command_text = [&](uint32_t n) { return sitting->command_text(n); },
       .makers =
           [&](const diff::Change& change) {
             // A long past is not worth a wait.
             auto latest = std::chrono::steady_clock::now() + kMakersWait;
             return sitting->makers(change, [&] {
               return std::chrono::steady_clock::now() > latest;
             });
           }}));
  TRY(sitting->record());
  size_t approved = 0, undecided = 0;
  for (const diff::Change& change : sitting->set().changes) {
    Summary summary = sitting->store().summary(change);
    approved += summary.approves;
    undecided += summary.undecided &&
                 diff::is_listed(change, sitting->with_ignored(), {});
  }
  if (end.asked == 0) context.out.note("nothing is undecided here");
  tell_rest(context, approved, undecided);
  return kDone;
}

}  // namespace stoplog::cli
