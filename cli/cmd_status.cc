// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"
#include "cli/command.h"
#include "cli/decisions.h"
#include "cli/exit_codes.h"
#include "cli/interrupted.h"
#include "cli/opened.h"
#include "cli/shown_views.h"
#include "cli/words.h"
#include "diff/render.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {
    {"json"}, {"exit-code"}, {"null", 'z'}, {"ignored"}};

Result<int> no_draft(Context& context, const Args& args) {
  TRY(finish_interrupted(context));
  if (args.has("json")) {
    diff::JsonOptions options{.workspace = TRY(context.workspace())->path};
    diff::render_json({}, options,
                      [&](std::string_view s) { context.out.write(s); });
  } else {
    context.out.note("no draft here: nothing is held");
    auto views = TRY(shown_views(context, Where::kWorkspace));
    for (const ShownView& view : views)
      context.out.hint(fmt::format(
          "the view of draft '{}', which is {}, is still mounted: `stoplog "
          "unmount '{}'`",
          view.draft.name, draft::name_of(view.draft.state),
          escape(view.mount)));
    if (views.empty()) context.out.hint(context.no_draft_hint());
  }
  return kDone;
}

void next_steps(Context& context, const Decisions& decisions, bool empty) {
  if (empty) return;
  if (decisions.stale())
    context.out.note("what was approved changed since: look again");
  if (decisions.undecided() > 0)
    context.out.hint(
        fmt::format("{} to decide: `stoplog review`, or `diff` and `approve`",
                    plural(decisions.undecided(), "change")));
  if (decisions.approved() > 0)
    context.out.hint(fmt::format("{} approved: `stoplog commit`",
                                 plural(decisions.approved(), "change")));
}

std::string shown_text(const Opened& opened) {
  if (!opened.daemon || opened.daemon->daemon().mount.empty()) return "";
  return fmt::format("; its view is mounted at '{}'",
                     escape(opened.daemon->daemon().mount));
}

Result<int> run(Context& context, const Args& args) {
  std::optional<draft::Draft> draft = TRY(context.find_draft());
  if (!draft) return no_draft(context, args);
  Opened opened = TRY(open_draft(context, *draft, {}));
  bool json = args.has("json");
  draft::Policy policy = TRY(load_policy(context));
  diff::ChangeSet set = TRY(changes_of(opened, policy));
  TRY(approve_standing(context, opened, policy, set));
  // What a commit takes along is to be seen, and decided, like the rest.
  bool takes_ignored = policy.ignored.value == "commit";
  bool ignored = args.has("ignored") || takes_ignored;
  Decisions decisions = TRY(Decisions::load(opened, set, takes_ignored));
  auto sink = [&](std::string_view s) { context.out.write(s); };
  auto word = [&](const diff::Change& c) { return decisions.word(c); };
  if (json) {
    diff::render_json(set,
                      {.draft = draft->name,
                       .workspace = draft->workspace,
                       .stale = decisions.stale(),
                       .ignored = ignored,
                       .terminal = context.out.terminal(),
                       .decision = word},
                      sink);
  } else if (args.has("null")) {
    diff::render_list_names(
        set, {.terminal = context.out.terminal(), .ignored = ignored}, sink);
  } else {
    diff::RenderOptions options{.terminal = context.out.terminal(),
                                .color = context.out.color(),
                                .width = context.out.width(),
                                .ignored = ignored};
    options.decision = [&](const diff::Change& c) {
      std::string w = decisions.word(c);
      return w == "none" ? std::string() : w;
    };
    if (set.empty())
      context.out.note(fmt::format("draft '{}': nothing changed{}", draft->name,
                                   shown_text(opened)));
    else
      diff::render_list(set, options, sink);
    next_steps(context, decisions, set.empty());
  }
  return args.has("exit-code") && !set.empty() ? kDifferent : kDone;
}

}  // namespace

extern const Command k_status_command{
    .name = "status",
    .summary = "what is held: one line a change, dangers first",
    .help =
        "usage: stoplog status [--json|-z] [--ignored] [--exit-code]\n"
        "\n"
        "The draft's net changes, one line each: dangers and deletions first,\n"
        "with what was decided, the risk, and drift of the real tree.\n"
        "\n"
        "  -z, --null       status letters and names, ended by NUL\n"
        "      --json       for programs\n"
        "      --ignored    list files that git ignores one by one\n"
        "      --exit-code  exit 1 when something is held\n"
        "\n"
        "example: stoplog status\n",
    .options = kOptions,
    .run = run};

}  // namespace stoplog::cli
