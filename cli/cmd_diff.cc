// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <list>
#include <memory>

#include "cli/command.h"
#include "cli/decisions.h"
#include "cli/exit_codes.h"
#include "cli/interrupted.h"
#include "cli/marks.h"
#include "cli/opened.h"
#include "cli/progress_line.h"
#include "cli/words.h"
#include "diff/between.h"
#include "diff/git_meta.h"
#include "diff/git_unreviewed.h"
#include "diff/patch.h"
#include "diff/render.h"
#include "diff/select.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"stat"},
                                   {"name-status"},
                                   {"json"},
                                   {"null", 'z'},
                                   {"unified", 'U', "N"},
                                   {"exit-code"},
                                   {"from", 0, "MARK"},
                                   {"to", 0, "MARK"},
                                   {"ignored"},
                                   {"no-pager"}};

using SharedView = std::shared_ptr<const fs::View>;

// MARK of this draft, or NAME:MARK of another one over the same tree; NAME: is
// that one as it is now. `others` must outlive the view.
Result<SharedView> moment_of(Context& context, const Opened& opened,
                             const std::string& text,
                             std::list<Opened>& others) {
  size_t colon = text.find(':');
  if (colon == text.npos)
    return view_at(opened, TRY(find_mark(opened.view->marks(), text)).position);
  draft::Draft other =
      TRY(TRY(context.store())
              ->find(*TRY(context.workspace()), text.substr(0, colon)));
  others.push_back(TRY(open_draft(context, other, {})));
  Opened& there = others.back();
  std::string mark = text.substr(colon + 1);
  if (mark.empty()) return SharedView(std::move(there.view));
  return view_at(there, TRY(find_mark(there.view->marks(), mark)).position);
}

// The view that --from and --to ask for; null when the draft's own will do.
Result<SharedView> wanted_view(Context& context, const Opened& opened,
                               const Args& args, std::list<Opened>& others) {
  auto from = args.value("from"), to = args.value("to");
  if (!from && !to) return nullptr;
  SharedView after;
  if (to)
    after = TRY(moment_of(context, opened, *to, others));
  else
    after = TRY(view_at(opened, opened.view->position()));
  if (!from) return after;
  SharedView before = TRY(moment_of(context, opened, *from, others));
  return SharedView(diff::view_between(std::move(before), std::move(after)));
}

struct Shown {
  const fs::View& view;
  const diff::ChangeSet& set;
  std::vector<RelPath> paths;
  unsigned context_lines = 3;
};

// A path that is a git directory, or lies in one.
bool asks_for_git(const std::vector<RelPath>& paths) {
  return std::ranges::any_of(paths, [](const RelPath& path) {
    return path.name() == ".git" || diff::is_inside_git(path);
  });
}

// Asked for by name, a git directory's row has a patch of its own: what commits
// and index have where the files under review show something else.
Status show_unreviewed(Context& context, const Shown& shown,
                       const diff::RenderOptions& options,
                       const diff::Sink& sink) {
  for (const diff::Change& row : shown.set.changes) {
    if (!row.git || row.git->unreviewed_count == 0 ||
        std::ranges::find(shown.paths, row.path) == shown.paths.end())
      continue;
    diff::ChangeSet files = diff::unreviewed_changes(*row.git);
    context.out.note(fmt::format(
        "{} in commits or the index of {} that no file under review shows{}",
        plural(row.git->unreviewed_count, "file"), row.shown_path(),
        files.changes.size() < row.git->unreviewed_count
            ? fmt::format("; the patch has {} of them", files.changes.size())
            : ""));
    diff::RenderOptions all = options;
    all.paths.clear();
    if (options.terminal || options.color)
      TRY(diff::render_terminal(shown.view, files, all, sink));
    else
      TRY(diff::write_patch(shown.view, files, {.context = options.context},
                            sink));
  }
  return {};
}

Status show(Context& context, const Args& args, const Opened& opened,
            const Shown& shown) {
  auto sink = [&](std::string_view s) { context.out.write(s); };
  diff::RenderOptions options{.terminal = context.out.terminal(),
                              .color = context.out.color(),
                              .width = context.out.width(),
                              .context = shown.context_lines,
                              .paths = shown.paths,
                              .ignored = args.has("ignored")};
  if (args.has("json")) {
    Decisions decisions = TRY(Decisions::load(opened, shown.set));
    diff::render_json(
        shown.set,
        {.draft = opened.draft.name,
         .workspace = opened.draft.workspace,
         .stale = decisions.stale(),
         .paths = shown.paths,
         .ignored = args.has("ignored"),
         .terminal = context.out.terminal(),
         .decision = [&](const diff::Change& c) { return decisions.word(c); }},
        sink);
    return {};
  }
  if (!args.has("no-pager")) context.out.start_pager();
  // Whoever leaves the pager, or took enough lines, need not wait for the rest.
  // On a terminal the patch itself shows how far it is.
  ProgressLine progress("writing the patch");
  options.progress = [&](size_t done, size_t total) {
    if (!context.out.terminal()) progress.update(done, total);
    return !context.out.dead();
  };
  const bool listed =
      args.has("name-status") || args.has("null") || args.has("stat");
  if (!listed && asks_for_git(shown.paths))
    TRY(show_unreviewed(context, shown, options, sink));
  if (args.has("name-status") || args.has("null")) {
    TRY(diff::render_name_status(shown.view, shown.set, options,
                                 args.has("null"), sink));
  } else if (args.has("stat")) {
    diff::render_stat(shown.set, options, sink);
  } else if (options.terminal || options.color) {
    TRY(diff::render_terminal(shown.view, shown.set, options, sink));
  } else {
    diff::PatchReport report =
        TRY(diff::write_patch(shown.view, shown.set,
                              {.context = shown.context_lines,
                               .paths = shown.paths,
                               .ignored = args.has("ignored"),
                               .progress = options.progress},
                              sink));
    progress.clear();
    for (const std::string& line : report.not_in_patch) context.out.note(line);
  }
  return {};
}

bool any_shown(const Shown& shown, bool ignored) {
  for (const diff::Change& change : shown.set.changes) {
    if (change.ignored && !ignored) continue;
    if (shown.paths.empty()) return true;
    for (const RelPath& path : shown.paths)
      if (change.path.is_within(path)) return true;
  }
  return false;
}

// An empty patch looks like a mistyped path.
void tell_nothing(Context& context, const Shown& shown, const Args& args) {
  std::string where;
  for (const RelPath& path : shown.paths)
    where += fmt::format("{}'{}'", where.empty() ? " at " : ", ",
                         path.is_root() ? "." : path.str());
  if (args.has("from") || args.has("to"))
    context.out.note("no difference" + where);
  else
    context.out.note("nothing is held" + where);
  if (!where.empty() || !shown.set.groups.empty())
    context.out.hint(shown.set.groups.empty() || args.has("ignored")
                         ? "`stoplog status` lists what is held"
                         : "--ignored shows files that git ignores, too");
}

// A patch has nothing of git's own files; what is held there may be what
// matters most.
void tell_git(Context& context, const Shown& shown, const Args& args) {
  bool listed = args.has("stat") || args.has("name-status") || args.has("null");
  if (!listed && (context.out.terminal() || context.out.color())) return;
  auto left = static_cast<uint64_t>(
      std::ranges::count_if(shown.set.changes, [&](const diff::Change& c) {
        return diff::is_inside_git(c) && diff::is_selected(c, shown.paths);
      }));
  if (left > 0)
    context.out.note(fmt::format(
        "{} inside .git left out: `stoplog status` names {}, `stoplog cat "
        "PATH` shows a file",
        plural(left, "change"), left == 1 ? "it" : "them"));
}

Result<int> run(Context& context, const Args& args) {
  unsigned lines = 3;
  if (auto n = args.value("unified"))
    lines = static_cast<unsigned>(TRY(parse_number(*n, "-U", 0, 1'000'000)));
  std::vector<RelPath> paths = TRY(context.paths(args.positionals));
  std::optional<draft::Draft> draft = TRY(context.find_draft());
  if (!draft) {
    TRY(finish_interrupted(context));
    if (!args.has("json")) {
      context.out.note("no draft here: nothing is held");
      context.out.hint(context.no_draft_hint());
    }
    diff::JsonOptions options{.workspace = TRY(context.workspace())->path};
    if (args.has("json"))
      diff::render_json({}, options,
                        [&](std::string_view s) { context.out.write(s); });
    return kDone;
  }
  Opened opened = TRY(open_draft(context, *draft, {}));
  std::list<Opened> others;
  SharedView between = TRY(wanted_view(context, opened, args, others));
  const fs::View& view =
      between ? *between : static_cast<const fs::View&>(*opened.view);
  bool json = args.has("json");
  // A patch for a program needs nothing but itself.
  bool plain = !json && !args.has("stat") && !context.out.terminal() &&
               !context.out.color() && !asks_for_git(paths);
  diff::DiffOptions options{
      .digest = json, .count_lines = json || args.has("stat"), .risks = !plain};
  diff::ChangeSet set =
      TRY(changes_in(view, opened, TRY(load_policy(context)), options));
  Shown shown{view, set, std::move(paths), lines};
  TRY(show(context, args, opened, shown));
  bool any = any_shown(shown, args.has("ignored"));
  if (!any && !json) tell_nothing(context, shown, args);
  if (!json) tell_git(context, shown, args);
  return args.has("exit-code") && any ? kDifferent : kDone;
}

}  // namespace

extern const Command k_diff_command{
    .name = "diff",
    .summary = "the patch",
    .help =
        "usage: stoplog diff [OPTIONS] [PATH...]\n"
        "\n"
        "The draft's net changes as a patch in git's format, without the "
        "inside\n"
        "of .git. To a pipe it is exact: `git apply --binary` of it on the "
        "real\n"
        "tree gives the draft's.\n"
        "\n"
        "      --stat         changed lines a file\n"
        "      --name-status  git's letters and names\n"
        "  -z, --null         the same, names raw and ended by NUL\n"
        "      --json         for programs\n"
        "  -U, --unified N    lines of context (3)\n"
        "      --from MARK    from a mark instead of the real tree: @4 is "
        "before\n"
        "                     command 4, @4. after it, or a snapshot's name\n"
        "      --to MARK      to a mark instead of now\n"
        "                     DRAFT:MARK, or DRAFT: for now, is of another "
        "draft\n"
        "      --ignored      files that git ignores, too\n"
        "      --exit-code    exit 1 when there are differences\n"
        "      --no-pager     straight to the terminal\n"
        "\n"
        "example: stoplog diff --from @2 src/\n",
    .options = kOptions,
    .max = kAnyNumber,
    .run = run};

}  // namespace stoplog::cli
