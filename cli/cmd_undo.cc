// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>

#include "base/clock.h"
#include "base/escape.h"
#include "base/interrupt.h"
#include "base/json_path.h"
#include "cli/command.h"
#include "cli/commit_flow.h"
#include "cli/exit_codes.h"
#include "cli/opened.h"
#include "cli/wait_line.h"
#include "cli/who.h"
#include "cli/words.h"
#include "draft/ledger.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"dry-run"}, {"json"}, {"give-up"}};

struct Author {
  draft::Draft draft;
  fs::Position position = 0;  // what was reviewed for the commit
};

// The draft whose commit it was, when it is still there.
std::optional<Author> author(Context& context, int state, uint64_t number) {
  auto meta = gate::read_commit_meta(state, number);
  auto store = context.store();
  if (!meta || !store || meta->draft.empty()) return std::nullopt;
  auto draft = (*store)->load(meta->draft);
  if (!draft) return std::nullopt;
  return Author{std::move(*draft), meta->position};
}

Status note(Context& context, const draft::Draft& draft,
            const gate::CommitRecord& record) {
  draft::Ledger ledger =
      TRY(draft::Ledger::open(*TRY(context.layout()), draft.id));
  Json fields = who_fields();
  fields.set("commit", record.meta.number).set("undoes", record.meta.undoes);
  std::vector<RelPath> paths;
  for (const gate::Item& item : record.items)
    if (!item.stays()) paths.push_back(item.path);
  set_paths(fields, "paths", paths);
  TRY(ledger.append("undo", fields, Sync::kYes));
  return {};
}

// What is to be taken back, and whose it is; that draft's turn is ours.
struct Target {
  std::optional<uint64_t> number;
  std::optional<Author> by;
  std::optional<draft::DraftTurn> turn;
};
Result<Target> find_target(Context& context, int state, const Args& args) {
  Target target;
  if (!args.positionals.empty())
    target.number =
        TRY(parse_number(args.positionals[0], "COMMIT", 1, UINT64_MAX));
  const bool newest = !target.number;
  for (;;) {
    if (newest) target.number = TRY(gate::newest_undoable(state));
    if (!target.number) return target;  // said by gate::undo()
    target.by = author(context, state, *target.number);
    if (!target.by) return target;
    target.turn = TRY(wait_turn(context, target.by->draft));
    // A commit of that draft may have ended while we waited.
    if (!newest || TRY(gate::newest_undoable(state)) == target.number)
      return target;
    target.turn.reset();
  }
}

// A disk that an interrupted commit waits for will not come back.
Result<int> give_up(Context& context, const Args& args) {
  if (!args.positionals.empty() || args.has("dry-run"))
    return fail(Code::kUsage,
                "--give-up is of the commit that was interrupted, which has no "
                "number and was begun");
  Hold hold;
  gate::RecoverReport report =
      TRY(open_doorstep(context, LostDisk::kGivenUp)).recovered;
  if (report.what == gate::RecoverReport::What::kNothing)
    return fail(Code::kUsage, "no interrupted commit waits in this workspace");
  if (!args.has("json")) return kDone;
  Json left = Json::array();
  for (const gate::Left& path : report.left) left.push(path.text());
  Json j = Json::object();
  j.set("version", 1).set("result", report.word()).set("left", left);
  context.out.write(j.dump() + "\n");
  return kDone;
}

Result<int> run(Context& context, const Args& args) {
  if (args.has("give-up")) return give_up(context, args);
  Doorstep door = TRY(open_doorstep(context));
  auto [number, by, turn] = TRY(find_target(context, door.state.get(), args));
  std::optional<Opened> opened;
  if (by)
    opened =
        TRY(open_draft(context, by->draft, {.settle = true, .has_turn = true}));
  gate::UndoRequest request{.ground = door.ground(),
                            .number = number,
                            .dry_run = args.has("dry-run")};
  request.meta.time = Clock::real().now();
  // By its time the draft knows whether it was told of this: later than every
  // mark there is, whatever became of the clock (fs::ToldBy).
  if (opened)
    for (const fs::Mark& mark : opened->marks)
      if (std::tie(request.meta.time.tv_sec, request.meta.time.tv_nsec) <
          std::tie(mark.time.tv_sec, mark.time.tv_nsec))
        request.meta.time = mark.time;
  request.meta.user = user_name();
  request.meta.tty = terminal_name();
  // What the draft touched since that commit stays held.
  if (by) request.meta.position = by->position;
  Hold hold;  // the real tree, the draft and the record are one
  WaitLine line(request.dry_run ? "verifying" : "taking it back");
  auto undone = gate::undo(request);
  line.clear();
  if (!undone && undone.error().code() == Code::kUsage)
    return std::unexpected(std::move(undone).error().with_hint(
        "`stoplog log --commits` lists what was committed"));
  gate::CommitResult result = TRY(std::move(undone));
  for (const std::string& note : result.notes) context.out.note(escape(note));
  if (request.dry_run) {
    context.out.write(describe_commit(result));
    return kDone;
  }
  // An error from here on would mean that nothing was written; the next command
  // catches up with it.
  context.out.done("the undo");
  auto said = [&](Status done) {
    if (!done)
      context.out.note("the undo is done, but the draft could not be told: " +
                       done.error().text());
  };
  if (opened) {
    // In this order, as after a commit.
    said(note(context, by->draft, result.record));
    said(tell_draft(context, *opened, result.record));
  } else {
    said(gate::note_rebased(door.state.get(), result.record.meta.number));
  }
  if (args.has("json")) {
    context.out.write(
        commit_json(result.record, TRY(context.workspace())->path).dump() +
        "\n");
    return kDone;
  }
  auto count = static_cast<size_t>(std::ranges::count_if(
      result.record.items, [](const auto& item) { return !item.stays(); }));
  context.out.write(fmt::format("took commit {} back: {}\n",
                                result.record.meta.undoes,
                                plural(count, "path")));
  context.out.hint(fmt::format("`stoplog undo {}` brings it back",
                               result.record.meta.number));
  return kDone;
}

}  // namespace

extern const Command k_undo_command{
    .name = "undo",
    .summary = "take a commit back, byte for byte",
    .help =
        "usage: stoplog undo [COMMIT] [--dry-run] [--json]\n"
        "       stoplog undo --give-up [--json]\n"
        "\n"
        "Puts back what COMMIT replaced (default: the workspace's latest that\n"
        "still stands, whichever draft made it). Refused, with names, when "
        "one\n"
        "of its paths was edited since (exit 3). An undo is a commit of its "
        "own\n"
        "and can be undone by its number.\n"
        "\n"
        "      --dry-run  verify, print what would be done, write nothing\n"
        "      --json     what was done, for programs\n"
        "      --give-up  an interrupted commit waits for a disk that will not "
        "come\n"
        "                 back: take back what is here, and name the rest\n"
        "\n"
        "example: stoplog undo\n",
    .options = kOptions,
    .max = 1,
    .run = run};

}  // namespace stoplog::cli
