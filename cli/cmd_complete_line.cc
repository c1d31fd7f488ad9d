// SPDX-License-Identifier: Apache-2.0
// Hidden: what can stand at the end of a command line, for the completion
// scripts. The first line says how: ":words" (one a line follows, with a tab
// and what it is about), ":files", ":dirs" or ":command", which the shell knows
// better. Never fails: a completion has nobody to complain to.
#include <unistd.h>

#include <algorithm>

#include "base/escape.h"
#include "base/sys_file.h"
#include "cli/command.h"
#include "cli/complete.h"
#include "draft/policy.h"
#include "fs/draft_view.h"
#include "gate/commits.h"

namespace stoplog::cli {
namespace {

using Candidates = std::vector<Candidate>;

Result<Candidates> drafts(Context& context) {
  Candidates out;
  for (const draft::Draft& d :
       TRY((*TRY(context.store())).list(*TRY(context.workspace()))))
    out.push_back(
        {d.name, fmt::format("{}, {}", draft::name_of(d.state), d.created)});
  return out;
}

Result<Fd> draft_dir(Context& context) {
  auto draft = TRY(context.find_draft());
  if (!draft) return fail_errno(ENOENT);
  return sys::openat(AT_FDCWD, TRY(context.layout())->draft(draft->id),
                     O_RDONLY | O_DIRECTORY);
}

Result<Candidates> marks(Context& context) {
  Candidates out;
  Fd dir = TRY(draft_dir(context));
  for (const fs::Mark& mark : TRY(fs::list_marks(dir.get()))) {
    if (mark.kind == fs::MarkKind::kCommandBegin)
      out.push_back({fmt::format("@{}", mark.command),
                     fmt::format("before command {}", mark.command)});
    else if (mark.kind == fs::MarkKind::kCommandEnd)
      out.push_back({fmt::format("@{}.", mark.command),
                     fmt::format("after command {}", mark.command)});
    else if (mark.kind == fs::MarkKind::kNamed && !mark.name.empty())
      out.push_back({mark.name, "snapshot"});
  }
  return out;
}

// As a person would type it where he stands.
std::string relative(const RelPath& path, const std::optional<RelPath>& cwd) {
  if (!cwd || cwd->is_root()) return path.str();
  if (path.is_within(*cwd) && path != *cwd)
    return path.str().substr(cwd->str().size() + 1);
  std::string up;
  RelPath at = *cwd;
  for (; !path.is_within(at); at = at.parent()) up += "../";
  if (at.is_root()) return up + path.str();
  return up + path.str().substr(at.str().size() + 1);
}

// What was touched, without comparing content: quick, and good enough here.
Result<Candidates> paths(Context& context) {
  Candidates out;
  const draft::Workspace& workspace = *TRY(context.workspace());
  Fd dir = TRY(draft_dir(context));
  Fd base = TRY(sys::openat(AT_FDCWD, workspace.path, O_RDONLY | O_DIRECTORY));
  auto view = TRY(fs::open_view({.draft_dir = dir.get(), .base = base.get()}));
  RelPath git = TRY(RelPath::parse(".git"));
  for (const fs::RawChange& change : TRY(view->changes()))
    if (!change.path.is_within(git))
      out.push_back(
          {relative(change.path, workspace.cwd),
           change.after ? change.before ? "changed" : "added" : "deleted"});
  return out;
}

Result<Candidates> commits(Context& context) {
  Candidates out;
  Fd all = TRY(sys::openat(AT_FDCWD, TRY(context.layout())->commits(),
                           O_RDONLY | O_DIRECTORY));
  std::string name = hex(sha256(TRY(context.workspace())->path)).substr(0, 16);
  Fd state = TRY(sys::openat(all.get(), name, O_RDONLY | O_DIRECTORY));
  for (uint64_t number : TRY(gate::list_commits(state.get())))
    out.push_back({fmt::format("{}", number), ""});
  std::ranges::reverse(out);
  return out;
}

Result<Candidates> presets(Context& context) {
  Candidates out;
  auto files = TRY(draft::read_policy_files(*TRY(context.layout()), nullptr));
  for (const std::string& name : draft::preset_names(files))
    out.push_back({name, ""});
  return out;
}

Result<Candidates> mark_paths(Context& context, const std::string& typed) {
  Candidates out = TRY(paths(context));
  size_t colon = typed.find(':');
  if (colon == typed.npos) return out;
  std::string mark = typed.substr(0, colon + 1);
  for (Candidate& candidate : out) candidate.word = mark + candidate.word;
  return out;
}

Result<Candidates> look_up(Context& context, const Completion& wanted) {
  switch (wanted.fill) {
    case Fill::kDrafts:
      return drafts(context);
    case Fill::kMarks:
      return marks(context);
    case Fill::kPaths:
      return paths(context);
    case Fill::kMarkPath:
      return mark_paths(context, wanted.typed);
    case Fill::kCommits:
      return commits(context);
    case Fill::kPresets:
      return presets(context);
    default:
      return wanted.words;
  }
}

// A name that a shell or a terminal would trip over is not offered.
bool is_safe(std::string_view word) {
  return !word.empty() && escape(word) == word && word.front() != '-';
}

Result<int> run(Context& context, const Args& args) {
  Completion wanted = complete_line(args.positionals);
  if (wanted.fill == Fill::kFiles || wanted.fill == Fill::kDirs ||
      wanted.fill == Fill::kCommand) {
    context.out.write(wanted.fill == Fill::kFiles  ? ":files\n"
                      : wanted.fill == Fill::kDirs ? ":dirs\n"
                                                   : ":command\n");
    return 0;
  }
  if (!wanted.directory.empty() && ::chdir(wanted.directory.c_str()) != 0)
    return 0;
  Context there(wanted.globals, context.out);
  Candidates found = look_up(there, wanted).value_or(Candidates{});
  context.out.write(":words\n");
  for (const Candidate& candidate : found) {
    bool ours = wanted.fill == Fill::kWords;
    if (!candidate.word.starts_with(wanted.typed)) continue;
    if (!ours && !is_safe(candidate.word)) continue;
    context.out.write(fmt::format("{}{}\t{}\n", wanted.prefix, candidate.word,
                                  candidate.about));
  }
  return 0;
}

}  // namespace

extern const Command k_complete_line_command{
    .name = "__complete",
    .summary = "",
    .help =
        "usage: stoplog __complete -- WORDS\n"
        "\n"
        "For the completion scripts: what may stand where the last of WORDS "
        "is.\n"
        "\n"
        "example: stoplog __complete -- status --j\n",
    .max = kAnyNumber,
    .run = run};

}  // namespace stoplog::cli
