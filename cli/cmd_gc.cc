// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "base/clock.h"
#include "base/dir.h"
#include "base/escape.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/sys_file.h"
#include "base/temp_sweep.h"
#include "base/units.h"
#include "cli/change_count.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/opened.h"
#include "cli/progress.h"
#include "cli/words.h"
#include "draft/home.h"
#include "fs/journal.h"
#include "fs/tree.h"
#include "gate/commits.h"
#include "snapshot/bundle.h"
#include "snapshot/objects.h"

namespace stoplog::cli {
namespace {

// Seconds after which a file that was to be renamed was left by one that died.
constexpr int64_t kUnfinishedFor = 3600;
// Seconds that contents stay which a commit that was taken back has kept.
constexpr int64_t kKeptFor = int64_t{30} * 24 * 3600;

constexpr OptionSpec kOptions[] = {{"dry-run"}, {"json"}};

struct Freed {
  std::vector<std::string> drafts;  // names
  draft::GcDone history;            // of the drafts that stay
  uint64_t objects = 0, bytes = 0;
  std::vector<std::string> skipped;  // why, for people
};

// Drafts that were committed whole or discarded: nothing in them is wanted. One
// in which somebody worked afterwards, as its daemon died, holds something.
Status drop_drafts(Context& context, bool dry_run, Freed& freed) {
  draft::Store& store = *TRY(context.store());
  for (const draft::Draft& d : TRY(store.list())) {
    if (d.state == draft::DraftState::kOpen) continue;
    auto client = context.daemon(d);
    if (!client || (*client && (*client)->daemon().busy)) continue;  // in use
    if (d.state == draft::DraftState::kCommitted &&
        sys::statat(AT_FDCWD, d.workspace) &&
        count_changes(context, d).value_or(1) > 0) {
      freed.skipped.push_back(fmt::format(
          "draft '{}' was committed, and something is held in it", d.name));
      continue;
    }
    if (!dry_run) {
      // It would wait half an hour for a next command that does not come.
      if (*client && !(*client)->shutdown(*TRY(context.layout()), d.id, false))
        continue;
      TRY(store.remove(d.id));
    }
    freed.drafts.push_back(d.name);
  }
  return {};
}

// Through the daemon while it lives, else under the draft's lock.
Result<draft::GcDone> collect_one(Context& context, const draft::Draft& d,
                                  const draft::Gc& how) {
  const draft::Layout& layout = *TRY(context.layout());
  draft::Reached reached = TRY(draft::reach(
      layout, d.id, draft::LockMode::kExclusive, std::chrono::seconds(3)));
  if (reached.daemon) {
    OnInterrupt say("stoplog: the draft's daemon finishes its part\n");
    return reached.daemon->gc(how);
  }
  Hold hold;
  Fd dir =
      TRY(sys::openat(AT_FDCWD, layout.draft(d.id), O_RDONLY | O_DIRECTORY));
  if (TRY(fs::list_generations(dir.get())).empty()) return draft::GcDone{};
  Fd base = TRY(sys::openat(AT_FDCWD, d.workspace, O_RDONLY | O_DIRECTORY));
  auto tree = TRY(fs::Tree::open(
      {.draft_dir = dir.get(), .base = base.get(), .background = false}));
  draft::Home home = TRY(draft::open_home(dir.get(), draft::caller_home()));
  fs::TreeOptions options = home.options();
  options.background = false;
  auto home_tree = TRY(fs::Tree::open(options));
  return draft::collect({tree.get(), home_tree.get()}, how);
}

Status collect_history(Context& context, bool dry_run, Freed& freed) {
  draft::Policy policy = TRY(load_policy(context));
  draft::Gc how{.max_age = {},
                .max_bytes = policy.history_size.value,
                .dry_run = dry_run};
  if (policy.history_age.value) how.max_age = *policy.history_age.value / 1000;
  std::vector<draft::Draft> drafts = TRY(TRY(context.store())->list());
  Progress progress(context.out, "looking at drafts", 0);
  for (const draft::Draft& d : drafts) {
    if (d.state != draft::DraftState::kOpen) continue;
    TRY(progress.at(0));
    auto done = collect_one(context, d, how);
    if (!done) {
      freed.skipped.push_back(fmt::format("draft '{}' was left as it is: {}",
                                          d.name, done.error().text()));
      continue;
    }
    freed.history.marks += done->marks;
    freed.history.segments += done->segments;
    freed.history.bytes += done->bytes;
  }
  return {};
}

// What the undo of any commit of any workspace, and any mark of any draft,
// still needs.
Result<std::set<Sha256Digest>> needed(Context& context,
                                      const draft::Layout& layout) {
  std::set<Sha256Digest> live;
  for (const draft::Draft& d : TRY(TRY(context.store())->list())) {
    Fd draft =
        TRY(sys::openat(AT_FDCWD, layout.draft(d.id), O_RDONLY | O_DIRECTORY));
    TRY(sweep_temp_files(draft.get(), kUnfinishedFor));
    live.merge(TRY_CTX(snapshot::replaced_objects(draft.get()),
                       fmt::format("draft '{}'", d.name)));
  }
  auto commits =
      sys::openat(AT_FDCWD, layout.commits(), O_RDONLY | O_DIRECTORY);
  if (!commits && draft::is_nothing(commits.error())) return live;
  Fd dir = TRY(std::move(commits));
  int64_t now = Clock::real().now().tv_sec;
  for (const std::string& name : TRY(list_names(dir.get(), "."))) {
    Fd state = TRY(sys::openat(dir.get(), name, O_RDONLY | O_DIRECTORY));
    TRY(gate::clear_unfinished(state.get(), kUnfinishedFor));
    for (const gate::Kept& kept : TRY(gate::list_kept(state.get())))
      if (now - kept.time.tv_sec > kKeptFor)
        TRY(gate::forget_kept(state.get(), kept.object));
    live.merge(TRY(gate::needed_objects(state.get())));
  }
  return live;
}

Status sweep(Context& context, Freed& freed) {
  const draft::Layout& layout = *TRY(context.layout());
  auto dir = sys::openat(AT_FDCWD, layout.objects(), O_RDONLY | O_DIRECTORY);
  if (!dir && draft::is_nothing(dir.error())) return {};
  Fd fd = TRY(std::move(dir));
  auto store = TRY(snapshot::ObjectStore::open(fd.get()));
  auto swept = TRY(store.sweep([&] { return needed(context, layout); }));
  freed.objects = swept.objects;
  freed.bytes = swept.bytes;
  return {};
}

Result<int> run(Context& context, const Args& args) {
  Freed freed;
  bool dry_run = args.has("dry-run");
  if (!dry_run) TRY(TRY(context.store())->clear_unfinished());
  TRY(drop_drafts(context, dry_run, freed));
  TRY(collect_history(context, dry_run, freed));
  if (!dry_run) TRY_CTX(sweep(context, freed), "cannot sweep the objects");
  if (args.has("json")) {
    Json j = Json::object();
    j.set("version", 1).set("drafts", Json::strings(freed.drafts));
    j.set("objects", freed.objects);
    j.set("bytes", freed.bytes + freed.history.bytes);
    j.set("marks", freed.history.marks);
    j.set("segments", freed.history.segments);
    j.set("history_bytes", freed.history.bytes);
    j.set("skipped", Json::strings(freed.skipped));
    context.out.write(j.dump() + "\n");
    return kDone;
  }
  for (const std::string& name : freed.drafts)
    context.out.write(fmt::format("{} draft '{}'\n",
                                  dry_run ? "would remove" : "removed", name));
  for (const std::string& line : freed.skipped) context.out.note(escape(line));
  context.out.write(fmt::format("{} {} and {} of the drafts' history\n",
                                dry_run ? "would let go" : "let go",
                                plural(freed.history.marks, "mark"),
                                print_size(freed.history.bytes)));
  if (!dry_run)
    context.out.write(fmt::format("removed {}, {}\n",
                                  plural(freed.objects, "object"),
                                  print_size(freed.bytes)));
  return kDone;
}

}  // namespace

extern const Command k_gc_command{
    .name = "gc",
    .summary = "reclaim what nothing needs any more",
    .help =
        "usage: stoplog gc [--dry-run] [--json]\n"
        "\n"
        "Removes drafts that were committed whole or discarded, lets go of "
        "old\n"
        "marks by the policy ([history]), and gives back what no mark, no "
        "commit's\n"
        "undo and no other draft needs. Says what that freed. Named "
        "snapshots and\n"
        "the last command's marks stay.\n"
        "\n"
        "      --dry-run  only say what would go\n"
        "      --json     for programs\n"
        "\n"
        "example: stoplog gc\n",
    .options = kOptions,
    .run = run};

}  // namespace stoplog::cli
