// SPDX-License-Identifier: Apache-2.0
#include "cli/opened.h"

#include <fcntl.h>

#include "base/sys_file.h"
#include "cli/progress_line.h"
#include "draft/layout.h"
#include "draft/ledger.h"
#include "fs/tree.h"
#include "gate/commits.h"
#include "gate/standing.h"

namespace stoplog::cli {
namespace {

Result<Fd> open_dir(const std::string& path) {
  return sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
}

Result<Fd> open_private(const std::string& path) {
  TRY(draft::make_private_dir(path));
  return open_dir(path);
}

fs::ObjectSource source_of(snapshot::ObjectStore& objects) {
  return [&objects](const Sha256Digest& id) { return objects.content(id); };
}

// A commit that died after its switch, or whose draft was locked by another
// then, is on record but not in the draft's journal.
Status tell_commits(Context& context, Opened& opened) {
  int state = opened.door.state.get();
  for (uint64_t number : TRY(gate::not_rebased(state, opened.draft.id))) {
    gate::CommitRecord record = TRY(gate::read_commit(state, number));
    TRY(tell_draft(context, opened, record));
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
  bool done = report.what == gate::RecoverReport::What::kForward;
  fields.set("result", done ? "completed" : "taken back");
  fields.set("commit",
             report.record ? Json(report.record->meta.number) : Json());
  TRY(ledger->append("recover", fields.set("left", left), Sync::kYes));
  return {};
}

}  // namespace

Result<Doorstep> open_doorstep(Context& context) {
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
  gate::RecoverReport report = TRY_CTX(gate::recover(door.ground()),
                                       "cannot recover an interrupted commit");
  if (report.what != gate::RecoverReport::What::kNothing) {
    context.out.note(report.text());
    TRY(note_recovery(context, report));
  }
  return door;
}

Status tell_draft(Context& context, Opened& opened,
                  const gate::CommitRecord& record) {
  const std::vector<fs::BaseChange> changes = record.base_changes();
  const fs::Position reviewed = record.meta.position;
  if (opened.daemon) {
    TRY(opened.daemon->commit_base(reviewed, changes));
  } else {
    opened.lock.reset();
    draft::DraftLock lock = TRY(draft::DraftLock::take(
        *TRY(context.layout()), opened.draft.id, draft::LockMode::kExclusive));
    auto tree = TRY(fs::Tree::open({.draft_dir = opened.draft_dir.get(),
                                    .base = opened.door.root.get(),
                                    .background = false}));
    TRY(tree->commit_base(reviewed, changes));
    TRY(tree->fsync());
    opened.lock = std::move(lock);
  }
  return gate::note_rebased(opened.door.state.get(), record.meta.number);
}

Result<Opened> open_draft(Context& context, const draft::Draft& draft,
                          const OpenOptions& options) {
  const draft::Layout& layout = *TRY(context.layout());
  Opened opened;
  opened.draft = draft;
  opened.workspace = TRY(context.workspace())->path;
  opened.draft_dir = TRY_CTX(open_dir(layout.draft(draft.id)),
                             "cannot open the draft's directory");
  opened.door = TRY(open_doorstep(context));
  if (options.client != nullptr)
    opened.daemon = std::move(*options.client);
  else
    opened.daemon = TRY(context.daemon(draft));
  if (!opened.daemon)
    opened.lock = TRY_CTX(
        draft::DraftLock::take(layout, draft.id, draft::LockMode::kShared),
        "cannot open the draft");
  TRY_CTX(tell_commits(context, opened),
          "cannot tell the draft of an earlier commit");
  if (options.settle && opened.daemon) TRY(opened.daemon->settle());
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
  return opened;
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
  ProgressLine line("comparing");
  options.progress = line.callback();
  return diff::build_change_set(view, options);
}

}  // namespace stoplog::cli
