// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"
#include "base/shown_path.h"
#include "cli/command.h"
#include "cli/commit_flow.h"
#include "cli/exit_codes.h"
#include "cli/words.h"
#include "diff/patch.h"
#include "diff/render.h"
#include "fs/view.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {
    {"all", 'a'}, {"danger"},         {"yes", 'y'},           {"merge"},
    {"dry-run"},  {"digest", 0, "D"}, {"receipt", 0, "FILE"}, {"json"}};

// What a merge makes of the real files, for a person: escaped on a terminal, a
// patch in a pipe.
Status show_merges(Context& context, const gate::CommitResult& result) {
  if (result.merged.changes.empty()) return {};
  auto sink = [&](std::string_view text) { context.out.write(text); };
  context.out.write(fmt::format("merge {}\n", result.merge_digest));
  // Both sides of each are in memory: no directory is read.
  auto view = fs::view_of_directories(-1, -1);
  if (context.out.terminal() || context.out.color())
    return diff::render_terminal(*view, result.merged,
                                 {.terminal = context.out.terminal(),
                                  .color = context.out.color(),
                                  .ignored = true},
                                 sink);
  TRY(diff::write_patch(*view, result.merged, {.ignored = true, .git = true},
                        sink));
  return {};
}

Result<int> run(Context& context, const Args& args) {
  draft::Draft draft = TRY(context.need_draft());
  CommitChoice choice{.all = args.has("all"),
                      .danger = args.has("danger"),
                      .yes = args.has("yes"),
                      .merge = args.has("merge"),
                      .dry_run = args.has("dry-run"),
                      .receipt = args.value("receipt"),
                      .digest = args.value("digest")};
  if (choice.digest && !choice.merge)
    return fail(Code::kUsage, "--digest goes with --merge");
  if (choice.danger && !choice.all)
    return fail(Code::kUsage, "--danger goes with --all");
  CommitEnd end = TRY(commit_draft(context, draft, choice));
  if (!end.nothing && !choice.dry_run) context.out.done("the commit");
  for (const std::string& note : end.result.notes)
    context.out.note(escape(note));
  if (args.has("json")) {
    context.out.write(end.receipt.dump() + "\n");
    return kDone;
  }
  if (end.nothing) {
    context.out.note("nothing to commit");
    return kDone;
  }
  for (const diff::Change& change : end.result.merged.changes)
    context.out.note(fmt::format("merged with the real tree's edits: {}",
                                 escape(shown_path(change.path))));
  if (choice.dry_run) {
    context.out.write(describe_commit(end.result));
    TRY(show_merges(context, end.result));
    return kDone;
  }
  context.out.write(fmt::format("committed {} as commit {}\n",
                                plural(end.result.approved.size(), "change"),
                                end.result.record.meta.number));
  if (std::string left = left_text(end); !left.empty()) context.out.note(left);
  context.out.hint(fmt::format("`stoplog undo {}` takes it back",
                               end.result.record.meta.number));
  return kDone;
}

}  // namespace

extern const Command k_commit_command{
    .name = "commit",
    .summary = "apply what is approved to the real tree, all or nothing",
    .help =
        "usage: stoplog commit [-a [--danger]] [-y] [--merge] [OPTIONS]\n"
        "\n"
        "Verifies that the real tree is still what the draft saw, then "
        "applies\n"
        "what is approved, all or nothing. Exit 3: it drifted, or what was\n"
        "approved changed since; 4: a danger is not approved, or the policy\n"
        "forbids; 6: it failed and was rolled back. In each case nothing is\n"
        "written.\n"
        "\n"
        "  -a, --all           approve first all that is neither rejected nor "
        "a\n"
        "                      danger; asks on the terminal, for each danger "
        "too\n"
        "      --danger        with -a: approve the dangers too\n"
        "  -y, --yes           do not ask\n"
        "      --merge         merge files that drifted, three-way; a conflict "
        "is\n"
        "                      exit 3\n"
        "      --dry-run       verify, print what would be done, write "
        "nothing;\n"
        "                      with --merge the patch of what it makes of the\n"
        "                      real files, and its digest\n"
        "      --digest D      with --merge: exit 3 when that is no longer D\n"
        "      --receipt FILE  write what was committed, as JSON\n"
        "      --json          the same to stdout\n"
        "\n"
        "example: stoplog commit -a\n",
    .options = kOptions,
    .run = run};

}  // namespace stoplog::cli
