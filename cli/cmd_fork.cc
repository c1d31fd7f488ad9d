// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"
#include "base/json.h"
#include "base/sys_file.h"
#include "cli/command.h"
#include "cli/marks.h"
#include "cli/opened.h"
#include "cli/wait_line.h"
#include "draft/home.h"
#include "draft/ledger.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"json"}};

Status fork_tree(Context& context, Opened& opened, fs::Position at, int dir,
                 const std::string& path) {
  // The end of the journal is no mark unless a daemon made it one for us.
  const bool now = !opened.daemon && at == opened.end;
  return change_draft(
      context, opened,
      {.daemon = [&](draft::Client& daemon) -> Status {
         if (now) at = TRY(daemon.barrier()).position;
         return daemon.fork(path, at);
       },
       .tree = [&](fs::Tree& tree) -> Status {
         if (now) at = TRY(tree.mark(fs::MarkKind::kBarrier, 0, "")).position;
         TRY(tree.fork_into(dir, at));
         return draft::fork_home(opened.draft_dir.get(), dir,
                                 draft::caller_home());
       }});
}

Result<int> run(Context& context, const Args& args) {
  draft::Draft draft = TRY(context.need_draft());
  WaitLine line("forking");
  Opened opened = TRY(open_draft(context, draft, {.only_marks = true}));
  fs::Position at = opened.end;
  std::string mark = "now";
  if (args.positionals.size() > 1) {
    mark = args.positionals[1];
    at = TRY(find_mark(opened.marks, mark)).position;
  }
  draft::Store& store = *TRY(context.store());
  Hold hold;  // until the record has it
  draft::Draft made = TRY_CTX(
      store.create({.workspace = *TRY(context.workspace()),
                    .name = args.positionals[0],
                    .forked_from = draft.id},
                   [&](int dir, const std::string& path, draft::Draft&) {
                     return fork_tree(context, opened, at, dir, path);
                   }),
      fmt::format("cannot fork draft '{}'", draft.name));
  for (const draft::Draft* d : {&draft, &made}) {
    draft::Ledger ledger =
        TRY(draft::Ledger::open(*TRY(context.layout()), d->id));
    Json fields = Json::object();
    fields.set("from", draft.name).set("name", made.name).set("mark", mark);
    TRY(ledger.append("fork", fields, Sync::kNo));
  }
  line.clear();
  if (args.has("json"))
    context.out.write(Json::object()
                          .set("version", 1)
                          .set("name", made.name)
                          .set("id", made.id)
                          .dump() +
                      "\n");
  else
    context.out.write(made.name + "\n");
  context.out.hint(
      fmt::format("'{}' stays the current draft: `stoplog switch {}`, or -d {}",
                  draft.name, made.name, made.name));
  return 0;
}

}  // namespace

extern const Command k_fork_command{
    .name = "fork",
    .summary = "a second draft from a mark of this one",
    .help =
        "usage: stoplog fork NAME [MARK] [--json]\n"
        "\n"
        "Makes a second draft NAME over the same workspace that holds what "
        "this\n"
        "one held at MARK (default: now). Data is shared, so it costs little.\n"
        "The current draft stays the current one.\n"
        "\n"
        "      --json  for programs\n"
        "\n"
        "example: stoplog fork other-way @3\n",
    .options = kOptions,
    .min = 1,
    .max = 2,
    .run = run};

}  // namespace stoplog::cli
