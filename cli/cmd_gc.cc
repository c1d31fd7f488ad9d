// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "base/clock.h"
#include "base/dir.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/sys_file.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/words.h"
#include "gate/commits.h"
#include "snapshot/objects.h"

namespace stoplog::cli {
namespace {

// Seconds that contents stay which a commit that was taken back has kept.
constexpr int64_t kKeptFor = int64_t{30} * 24 * 3600;

constexpr OptionSpec kOptions[] = {{"dry-run"}, {"json"}};

struct Freed {
  std::vector<std::string> drafts;  // names
  uint64_t objects = 0, bytes = 0;
};

// Drafts that were committed whole or discarded: nothing in them is wanted.
Status drop_drafts(Context& context, bool dry_run, Freed& freed) {
  draft::Store& store = *TRY(context.store());
  for (const draft::Draft& d : TRY(store.list())) {
    if (d.state == draft::DraftState::kOpen) continue;
    auto client = context.daemon(d);
    if (!client || *client) continue;  // in use
    if (!dry_run) TRY(store.remove(d.id));
    freed.drafts.push_back(d.name);
  }
  return {};
}

// What the undo of any commit of any workspace still needs.
Result<std::set<Sha256Digest>> needed(const draft::Layout& layout) {
  std::set<Sha256Digest> live;
  auto commits =
      sys::openat(AT_FDCWD, layout.commits(), O_RDONLY | O_DIRECTORY);
  if (!commits && commits.error().err() == ENOENT) return live;
  Fd dir = TRY(std::move(commits));
  int64_t now = Clock::real().now().tv_sec;
  for (const std::string& name : TRY(list_names(dir.get(), "."))) {
    Fd state = TRY(sys::openat(dir.get(), name, O_RDONLY | O_DIRECTORY));
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
  if (!dir && dir.error().err() == ENOENT) return {};
  Fd fd = TRY(std::move(dir));
  auto store = TRY(snapshot::ObjectStore::open(fd.get()));
  auto swept = TRY(store.sweep(TRY(needed(layout))));
  freed.objects = swept.objects;
  freed.bytes = swept.bytes;
  return {};
}

Result<int> run(Context& context, const Args& args) {
  Freed freed;
  bool dry_run = args.has("dry-run");
  if (!dry_run) TRY(TRY(context.store())->clear_unfinished());
  TRY(drop_drafts(context, dry_run, freed));
  if (!dry_run) TRY_CTX(sweep(context, freed), "cannot sweep the objects");
  if (args.has("json")) {
    Json j = Json::object();
    j.set("version", 1).set("drafts", Json::strings(freed.drafts));
    j.set("objects", freed.objects).set("bytes", freed.bytes);
    context.out.write(j.dump() + "\n");
    return kDone;
  }
  for (const std::string& name : freed.drafts)
    context.out.write(fmt::format("{} draft '{}'\n",
                                  dry_run ? "would remove" : "removed", name));
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
        "Removes drafts that were committed whole or discarded, and stored\n"
        "contents that no commit needs for its undo. Open drafts, and what "
        "can\n"
        "still be undone, stay.\n"
        "\n"
        "      --dry-run  only say which drafts\n"
        "      --json     for programs\n"
        "\n"
        "example: stoplog gc\n",
    .options = kOptions,
    .run = run};

}  // namespace stoplog::cli
