// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/escape.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/json_path.h"
#include "base/sys_file.h"
#include "cli/command.h"
#include "cli/decisions.h"
#include "cli/exit_codes.h"
#include "cli/interrupted.h"
#include "cli/marks.h"
#include "cli/opened.h"
#include "cli/who.h"
#include "cli/words.h"
#include "diff/git_meta.h"
#include "draft/ledger.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"yes", 'y'}, {"json"}};

Status confirm(bool yes, const std::string& what) {
  if (yes) return {};
  if (!can_ask())
    return std::unexpected(
        Error(Code::kDeclined,
              fmt::format("cannot ask whether to discard {}: there is no "
                          "terminal",
                          what))
            .with_hint("say -y to discard without being asked"));
  if (!ask_yes(fmt::format("discard {}?", what)))
    return fail(Code::kDeclined, "nothing was discarded");
  return {};
}

Status record(Context& context, const draft::Draft& draft,
              const std::vector<RelPath>& paths, bool whole) {
  draft::Ledger ledger =
      TRY(draft::Ledger::open(*TRY(context.layout()), draft.id));
  Json fields = who_fields();
  set_paths(fields.set("whole", whole), "paths", paths);
  TRY(ledger.append("discard", fields, Sync::kYes));
  return {};
}

// The real thing at `path` as it is now: what a discarded path goes back to.
Result<std::optional<sys::Stat>> real_now(const Opened& opened,
                                          const RelPath& path) {
  auto parent = sys::open_beneath(opened.door.root.get(), path.parent().str(),
                                  O_PATH | O_DIRECTORY);
  if (!parent) {
    int err = parent.error().err();
    if (err == ENOENT || err == ENOTDIR || err == ELOOP) return std::nullopt;
    return std::unexpected(std::move(parent).error());
  }
  auto stat = sys::statat(parent->get(),
                          path.is_root() ? "." : std::string(path.name()));
  if (!stat && stat.error().err() == ENOENT) return std::nullopt;
  return TRY(std::move(stat));
}

Status add(const Opened& opened, const RelPath& path,
           std::vector<fs::BaseChange>& out) {
  fs::BaseChange change;
  change.path = path;
  change.now = TRY(real_now(opened, path));
  change.before = change.now;
  if (change.now && S_ISLNK(change.now->mode)) {
    auto state = TRY(fs::state_beneath(opened.door.root.get(), path));
    if (state) change.before_target = state->target;
  }
  out.push_back(std::move(change));
  return {};
}

// A discard is a commit of nothing: the draft is told that the real tree, as it
// stands, is what these paths were committed as.
Result<std::vector<fs::BaseChange>> base_of(
    const Opened& opened, const std::vector<const diff::Change*>& changes) {
  std::vector<fs::BaseChange> out;
  for (const diff::Change* change : changes) {
    TRY(add(opened, change->path, out));
    if (change->from) TRY(add(opened, *change->from, out));
    if (!change->git) continue;
    for (const diff::Change& part : change->git->parts)
      TRY(add(opened, part.path, out));
  }
  return out;
}

bool chosen(const RelPath& path, const std::vector<RelPath>& wanted) {
  for (const RelPath& w : wanted)
    if (path.is_within(w)) return true;
  return false;
}

// A directory that was moved over another one goes back as a whole.
Status check_whole(const diff::ChangeSet& set,
                   const std::vector<RelPath>& wanted) {
  for (const auto* list : {&set.changes, &set.directories})
    for (const diff::Change& merged : *list) {
      if (!merged.merges) continue;
      bool to = chosen(merged.path, wanted);
      bool from = chosen(*merged.merges, wanted);
      bool part = std::any_of(set.changes.begin(), set.changes.end(),
                              [&](const auto& change) {
                                return chosen(change.path, wanted) &&
                                       (change.path.is_within(merged.path) ||
                                        change.path.is_within(*merged.merges));
                              });
      if (part && !(to && from))
        return fail(Code::kRefused,
                    "'{}' was moved to '{}', over another directory: discard "
                    "both",
                    escape(merged.merges->str()), escape(merged.path.str()));
    }
  return {};
}

void tell(Context& context, const Args& args, const std::vector<RelPath>& paths,
          const draft::Draft* whole) {
  if (args.has("json")) {
    Json j = Json::object();
    j.set("version", 1).set("whole", whole != nullptr);
    context.out.write(set_paths(j, "discarded", paths).dump() + "\n");
  } else if (whole == nullptr) {
    context.out.write(
        fmt::format("discarded {}\n", plural(paths.size(), "held change")));
  } else {
    context.out.write(fmt::format("discarded draft '{}'\n", whole->name));
    context.out.hint(
        fmt::format("`stoplog rm {}` frees what it took", whole->name));
  }
}

Result<int> discard_paths(Context& context, const draft::Draft& draft,
                          const std::vector<RelPath>& wanted,
                          const Args& args) {
  // Settled: what was moved away from a discarded path keeps its content.
  std::optional<draft::DraftTurn> turn;
  if (args.has("yes")) turn = TRY(take_turn(context, draft));
  Opened opened = TRY(open_draft(
      context, draft, {.settle = true, .has_turn = turn.has_value()}));
  diff::ChangeSet set =
      TRY(changes_of(opened, TRY(load_policy(context)),
                     {.digest = false, .count_lines = false, .risks = false}));
  std::vector<const diff::Change*> changes;
  std::vector<RelPath> paths;
  for (const auto* list : {&set.changes, &set.directories})
    for (const diff::Change& change : *list) {
      if (!chosen(change.path, wanted)) continue;
      changes.push_back(&change);
      if (list == &set.changes) paths.push_back(change.path);
    }
  if (paths.empty())
    return std::unexpected(
        Error(Code::kUsage, fmt::format("nothing is held at '{}'",
                                        escape(wanted.front().str())))
            .with_hint("`stoplog status` lists what is held"));
  TRY(check_whole(set, wanted));
  if (!turn) {
    opened.lock.reset();  // nobody waits for a person who is being asked
    TRY(confirm(false, plural(paths.size(), "held change")));
    turn = TRY(take_turn(context, draft));
    TRY(take_up(context, opened));
  }
  std::vector<fs::BaseChange> base = TRY(base_of(opened, changes));
  Hold hold;  // draft, decisions and record are one
  TRY(rebase_draft(context, opened, opened.view->position(), base));
  if (TRY(was_rolled_back(context, opened)))
    return std::unexpected(
        Error(Code::kDrift,
              "nothing was discarded: a rollback of the draft that somebody "
              "had begun came first")
            .with_hint("look again with `stoplog status`"));
  TRY(change_plan(opened, [&](gate::Plan& plan) -> Status {
    for (const RelPath& path : paths) gate::undecide(plan, path);
    return {};
  }));
  TRY(record(context, draft, paths, false));
  tell(context, args, paths, nullptr);
  return kDone;
}

// Its daemon, if any, in which nothing runs.
Result<std::optional<draft::Client>> idle_daemon(Context& context,
                                                 const draft::Draft& draft) {
  auto client = TRY(context.daemon(draft));
  if (client && !TRY(client->running()).empty())
    return std::unexpected(
        Error(Code::kRefused, "cannot discard the draft while a command runs")
            .with_hint("`stoplog stop` ends it"));
  return client;
}

Result<int> discard_all(Context& context, const draft::Draft& draft,
                        const Args& args) {
  TRY(idle_daemon(context, draft));
  TRY(confirm(args.has("yes"),
              fmt::format("draft '{}' with all that it holds", draft.name)));
  draft::DraftTurn turn = TRY(take_turn(context, draft));
  // Another one may have come and gone while we asked and waited.
  if (auto client = TRY(idle_daemon(context, draft)))
    TRY_CTX(client->shutdown(*TRY(context.layout()), draft.id, true),
            "cannot end the draft's daemon");
  Hold hold;
  TRY(record(context, draft, {}, true));
  TRY(TRY(context.store())->update(draft.id, [](draft::Draft& d) {
    d.state = draft::DraftState::kDiscarded;
  }));
  tell(context, args, {}, &draft);
  return kDone;
}

Result<int> run(Context& context, const Args& args) {
  draft::Draft draft = TRY(context.need_draft());
  std::vector<RelPath> paths = TRY(context.paths(args.positionals));
  // Of a commit that was killed half-way all is to be there, or nothing.
  if (paths.empty()) TRY(finish_interrupted(context));
  if (paths.empty()) return discard_all(context, draft, args);
  return discard_paths(context, draft, paths, args);
}

}  // namespace

extern const Command k_discard_command{
    .name = "discard",
    .summary = "drop held changes",
    .help =
        "usage: stoplog discard [PATH...] [-y] [--json]\n"
        "\n"
        "Drops the held changes at PATH (a directory: all beneath it), so "
        "that\n"
        "the agent sees the real files there again; without PATH the whole\n"
        "draft. Asks first; without a terminal and without -y nothing is\n"
        "dropped (exit 1). The real tree is not touched.\n"
        "\n"
        "  -y, --yes   do not ask\n"
        "      --json  for programs\n"
        "\n"
        "example: stoplog discard build/\n",
    .options = kOptions,
    .max = kAnyNumber,
    .run = run};

}  // namespace stoplog::cli
