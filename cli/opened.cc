// SPDX-License-Identifier: Apache-2.0
#include "cli/opened.h"

#include <fcntl.h>

#include <span>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/sys_file.h"
#include "base/sys_process.h"
#include "cli/commit_flow.h"
#include "cli/decisions.h"
#include "cli/progress_line.h"
#include "draft/begun.h"
#include "draft/layout.h"
#include "draft/ledger.h"
#include "fs/tree.h"
#include "gate/commits.h"
#include "gate/standing.h"

namespace stoplog::cli {
namespace {

// How often a daemon may go away under a command that then asks the next one.
constexpr int kTries = 5;
constexpr std::chrono::seconds kPatience{20};

Result<Fd> open_dir(const std::string& path) {
  return sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
}

Result<Fd> open_private(const std::string& path) {
  TRY(draft::make_state_dir(path));
  return open_dir(path);
}

fs::ObjectSource source_of(snapshot::ObjectStore& objects) {
  return [&objects](const Sha256Digest& id) { return objects.content(id); };
}

// Its record, when whoever made it did not live to write one.
Status note_commit(Context& context, const draft::Draft& draft,
                   const gate::CommitRecord& record) {
  auto ledger = TRY(draft::Ledger::open(*TRY(context.layout()), draft.id));
  const gate::CommitMeta& meta = record.meta;
  bool known = false;
  TRY(ledger.for_each([&](const Json& entry) {
    std::string kind = entry.text("kind");
    known = (kind == "commit" || kind == "undo") &&
            entry.integer("commit") == static_cast<int64_t>(meta.number);
    return !known;
  }));
  if (known) return {};
  TRY(ledger.append(meta.undoes != 0 ? "undo" : "commit",
                    commit_fields(record).set("committed", rfc3339(meta.time)),
                    Sync::kYes));
  return {};
}

// A commit that died after its switch, or whose draft was locked by another
// then, is on record but not in the draft's journal.
Status tell_commits(Context& context, Opened& opened, bool has_turn) {
  int state = opened.door.state.get();
  if (TRY(gate::not_rebased(state, opened.draft.id)).empty()) return {};
  // Its own process may be about to tell it.
  std::optional<draft::DraftTurn> turn;
  if (!has_turn) turn = TRY(wait_turn(context, opened.draft));
  for (uint64_t number : TRY(gate::not_rebased(state, opened.draft.id))) {
    gate::CommitRecord record = TRY(gate::read_commit(state, number));
    gate::renumber(record, gate::Disk(), opened.door.root.get());
    TRY(note_commit(context, opened.draft, record));
    TRY(tell_draft(context, opened, record));
    // Whoever made it did not live to do this, either.
    std::vector<RelPath> done;
    for (const gate::Item& item : record.items) done.push_back(item.path);
    TRY(change_plan(opened, [&](gate::Plan& plan) -> Status {
      plan.erase(done);
      return {};
    }));
  }
  return {};
}

// In the ledger of the draft whose commit it was, when that is still there.
Status note_recovery(Context& context, const gate::RecoverReport& report) {
  auto ledger = draft::Ledger::open(*TRY(context.layout()), report.draft);
  if (report.draft.empty() || !ledger) return {};
  Json left = Json::array();
  for (const gate::Left& path : report.left) left.push(path.text());
  Json fields = Json::object();
  fields.set("result", report.word());
  fields.set("commit",
             report.record ? Json(report.record->meta.number) : Json());
  TRY(ledger->append("recover", fields.set("left", left), Sync::kYes));
  return {};
}

// The daemon, or the lock shared with other readers.
Status attach(const draft::Layout& layout, Opened& opened,
              draft::Ahead ahead = draft::Ahead::kNothing) {
  draft::Reached reached = TRY(draft::reach(
      layout, opened.draft.id, draft::LockMode::kShared, kPatience, ahead));
  opened.daemon = std::move(reached.daemon);
  opened.lock = std::move(reached.lock);
  // What is held can be shown without it.
  if (opened.lock)
    (void)draft::record_lost(layout, opened.draft.id, opened.draft_dir.get());
  return {};
}

// What the draft goes on changing has its own content, with a daemon or
// without. Readers may come again afterwards.
Status settle(Context& context, const draft::Layout& layout, Opened& opened) {
  auto settled = [](auto& held) -> Status { return held.settle(); };
  TRY(change_draft(context, opened, {.daemon = settled, .tree = settled}));
  if (opened.daemon) return {};
  opened.lock.reset();
  TRY(attach(layout, opened));
  if (opened.daemon) TRY(opened.daemon->settle());
  return {};
}

// False: the journal is damaged, and a view has more to say.
Result<bool> read_marks(Opened& opened) {
  if (opened.daemon) {
    opened.end = TRY(opened.daemon->barrier()).position;
    opened.marks = TRY(opened.daemon->marks());
  } else {
    fs::Timeline timeline = TRY_CTX(fs::read_timeline(opened.draft_dir.get()),
                                    "cannot read the draft's journal");
    if (timeline.damaged) return false;
    opened.end = timeline.end;
    opened.marks = std::move(timeline.marks);
  }
  opened.lock.reset();
  return true;
}

// Whoever asks may have died, or the daemon, before it was known that the draft
// has it: it is told by the commit's own id, which the draft keeps.
Status tell(Context& context, Opened& opened, fs::Position reviewed,
            const std::vector<fs::BaseChange>& changes,
            const fs::ToldBy& told) {
  auto tell = [&](auto& draft) -> Status {
    TRY(draft.commit_base(reviewed, changes, told));
    return {};
  };
  return change_draft(context, opened, {.daemon = tell, .tree = tell});
}

Result<Opened> open_once(Context& context, const draft::Draft& draft,
                         const OpenOptions& options) {
  const draft::Layout& layout = *TRY(context.layout());
  Opened opened;
  opened.draft = draft;
  opened.workspace = TRY(context.workspace())->path;
  opened.draft_dir = TRY_CTX(open_dir(layout.draft(draft.id)),
                             "cannot open the draft's directory");
  opened.door = TRY(open_doorstep(context));
  if (options.client != nullptr) opened.daemon = std::move(*options.client);
  // Before the draft's lock is taken: who has the turn may wait for that.
  TRY_CTX(tell_commits(context, opened, options.has_turn),
          "cannot tell the draft of an earlier commit");
  opened.lock.reset();
  if (!opened.daemon)
    TRY_CTX(attach(layout, opened,
                   options.at || options.settle ? draft::Ahead::kNothing
                                                : draft::Ahead::kBarrier),
            "cannot open the draft");
  if (options.settle) TRY(settle(context, layout, opened));
  if (options.only_marks && TRY(read_marks(opened))) return opened;
  fs::Position at = fs::kEnd;
  if (options.at)
    at = *options.at;
  else if (opened.daemon)
    at = TRY(opened.daemon->barrier()).position;
  opened.view =
      TRY_CTX(fs::open_view({.draft_dir = opened.draft_dir.get(),
                             .base = opened.door.root.get(),
                             .at = at,
                             .objects = source_of(*opened.door.objects)}),
              "cannot read the draft's journal");
  for (const std::string& note : opened.view->notes()) context.out.note(note);
  opened.marks = opened.view->marks();
  opened.end = opened.view->position();
  // A daemon may start now: it writes nothing that this view stands on. Who is
  // about to replace real files keeps it from starting on them.
  if (!options.settle) opened.lock.reset();
  return opened;
}

}  // namespace

Result<Doorstep> open_doorstep(Context& context, LostDisk lost) {
  const draft::Layout& layout = *TRY(context.layout());
  const draft::Workspace& workspace = *TRY(context.workspace());
  Doorstep door;
  door.root = TRY_CTX(open_dir(workspace.path),
                      fmt::format("cannot open '{}'", workspace.path));
  Fd commits = TRY(open_private(layout.commits()));
  door.state = TRY(gate::open_state(commits.get(), workspace.path));
  Fd objects = TRY(open_private(layout.objects()));
  door.objects = std::make_unique<snapshot::ObjectStore>(
      TRY(snapshot::ObjectStore::open(objects.get())));
  gate::RecoverReport& report = door.recovered;
  report = TRY_CTX(lost == LostDisk::kGivenUp ? gate::give_up(door.ground())
                                              : gate::recover(door.ground()),
                   "cannot recover an interrupted commit");
  if (report.what != gate::RecoverReport::What::kNothing) {
    context.out.note(report.text());
    TRY(note_recovery(context, report));
  }
  return door;
}

Result<draft::DraftTurn> wait_turn(Context& context,
                                   const draft::Draft& draft) {
  return draft::DraftTurn::take(*TRY(context.layout()), draft.id);
}

Result<draft::DraftTurn> take_turn(Context& context,
                                   const draft::Draft& draft) {
  draft::DraftTurn turn = TRY(wait_turn(context, draft));
  draft::DraftState now = TRY(TRY(context.store())->load(draft.id)).state;
  if (now == draft.state || now != draft::DraftState::kDiscarded) return turn;
  return fail(Code::kDrift, "the draft was discarded meanwhile");
}

// Whoever could move it waits for the turn, which is ours.
Status take_up(Context& context, Opened& opened) {
  TRY(check_unmoved(context, opened));
  TRY_CTX(settle(context, *TRY(context.layout()), opened),
          "cannot open the draft");
  return {};
}

Status check_unmoved(Context& context, const Opened& opened) {
  Opened now = TRY(open_draft(context, opened.draft,
                              {.has_turn = true, .only_marks = true}));
  for (const fs::Mark& mark : now.marks) {
    if (mark.position <= opened.end) continue;
    bool back = mark.kind == fs::MarkKind::kRollback;
    if (!back && mark.kind != fs::MarkKind::kCommit) continue;
    return std::unexpected(
        Error(Code::kDrift,
              back ? "the draft was rolled back since it was looked at"
                   : "a commit, an undo or a discard changed the draft since "
                     "it was looked at")
            .with_hint("look again with `stoplog status`"));
  }
  return {};
}

Result<bool> was_rolled_back(Context& context, Opened& opened) {
  opened.lock.reset();  // without a daemon it would be in our own way
  Opened now = TRY(open_draft(context, opened.draft,
                              {.has_turn = true, .only_marks = true}));
  for (const fs::Mark& mark : now.marks) {
    if (mark.position <= opened.end) continue;
    if (mark.kind == fs::MarkKind::kCommit) return false;
    if (mark.kind == fs::MarkKind::kRollback) return true;
  }
  return false;
}

Status tell_draft(Context& context, Opened& opened,
                  const gate::CommitRecord& record) {
  const gate::CommitMeta& meta = record.meta;
  TRY(tell(context, opened, meta.position, record.base_changes(),
           {.id = gate::commit_id(meta),
            .since = meta.undoes != 0 ? meta.time : timespec{}}));
  return gate::note_rebased(opened.door.state.get(), record.meta.number);
}

Status rebase_draft(Context& context, Opened& opened, fs::Position reviewed,
                    const std::vector<fs::BaseChange>& changes) {
  fs::CommitId id = 0;
  TRY(sys::getrandom(std::as_writable_bytes(std::span(&id, 1))));
  return tell(context, opened, reviewed, changes, {.id = id, .since = {}});
}

Status change_draft(Context& context, Opened& opened,
                    const DraftChange& change) {
  for (int tries = 0;; ++tries) {
    if (opened.daemon) {
      Status done = change.daemon(*opened.daemon);
      if (done || !draft::went_away(done.error()) || tries == kTries)
        return done;
      opened.daemon.reset();
    }
    opened.lock.reset();
    draft::Reached reached =
        TRY_CTX(draft::reach(*TRY(context.layout()), opened.draft.id,
                             draft::LockMode::kExclusive),
                "cannot change the draft while it is in use");
    opened.daemon = std::move(reached.daemon);
    if (opened.daemon) continue;
    Hold hold;
    auto tree =
        TRY(fs::Tree::open({.draft_dir = opened.draft_dir.get(),
                            .base = opened.door.root.get(),
                            .background = false,
                            .objects = source_of(*opened.door.objects)}));
    TRY(change.tree(*tree));
    TRY(tree->fsync());
    tree.reset();
    opened.lock = std::move(reached.lock);
    return {};
  }
}

Result<Opened> open_draft(Context& context, const draft::Draft& draft,
                          const OpenOptions& options) {
  for (int tries = 0;; ++tries) {
    auto opened = open_once(context, draft, options);
    // Replaced by a `run` that needs another one, or idle for too long.
    if (opened || options.client != nullptr || tries == kTries ||
        !draft::went_away(opened.error()))
      return opened;
  }
}

Result<draft::Policy> load_policy(Context& context, std::string_view preset) {
  draft::PolicyFiles files = TRY(draft::read_policy_files(
      *TRY(context.layout()), TRY(context.workspace())));
  return draft::make_policy(files, preset);
}

Result<diff::ChangeSet> changes_of(const Opened& opened,
                                   const draft::Policy& policy,
                                   diff::DiffOptions options) {
  return changes_in(*opened.view, opened, policy, std::move(options));
}

Result<diff::ChangeSet> changes_in(const fs::View& view, const Opened& opened,
                                   const draft::Policy& policy,
                                   diff::DiffOptions options) {
  options.real_root = opened.workspace;
  options.include_ignored = policy.ignored.value == "commit";
  options.rules = gate::always_ask_rules(policy.always_ask.value);
  for (const std::string& code : policy.dangers.value)
    options.rules.push_back({.glob = "", .code = code, .message = ""});
  ProgressLine line("comparing");
  if (!options.progress) options.progress = line.callback();
  return diff::build_change_set(view, options);
}

}  // namespace stoplog::cli
