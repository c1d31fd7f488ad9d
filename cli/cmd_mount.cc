// SPDX-License-Identifier: Apache-2.0
// `mount` and `unmount`: the draft's view for people and programs outside of
// the jail. The daemon serves one mount; showing it elsewhere means another
// daemon, which an idle one makes room for.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <utility>

#include "base/dir.h"
#include "base/escape.h"
#include "base/sys_file.h"
#include "base/temp_file.h"
#include "cli/command.h"
#include "cli/commit_flow.h"
#include "cli/interrupted.h"
#include "cli/opened.h"
#include "cli/run_options.h"
#include "cli/shown_views.h"
#include "draft/client.h"
#include "fs/mount_device.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"force"}};

// Absolute; of what is not there yet, or is dead, the directory above counts.
Result<std::string> absolute(std::string given) {
  while (given.size() > 1 && given.ends_with('/')) given.pop_back();
  const size_t slash = given.rfind('/');
  std::string name = given.substr(slash == given.npos ? 0 : slash + 1);
  std::string above = slash == given.npos ? "." : given.substr(0, slash + 1);
  if (name == "." || name == "..") above = std::exchange(given, "");
  std::unique_ptr<char, void (*)(void*)> real(
      ::realpath(above.c_str(), nullptr), ::free);
  if (!real)
    return fail(Code::kUsage, "cannot find '{}': {}", escape(above),
                ::strerror(errno));
  std::string path(real.get());
  if (given.empty()) return path;
  return path + (path == "/" ? "" : "/") + name;
}

// The draft whose living daemon shows its view there.
Result<std::optional<std::string>> shown_at(Context& context,
                                            const std::string& path) {
  for (const ShownView& view : TRY(shown_views(context, Where::kEverywhere)))
    if (view.mount == path) return view.draft.name;
  return std::nullopt;
}

// An empty directory, made when it is not there; a dead mount of ours in the
// way is cleared. Returns its absolute path.
Result<std::string> prepare(Context& context, const std::string& given,
                            const draft::Workspace& workspace) {
  if (auto other = TRY(shown_at(context, given)))
    return std::unexpected(
        Error(Code::kUnsupported,
              fmt::format("the view of draft '{}' is at '{}'", *other,
                          escape(given)))
            .with_hint(fmt::format("`stoplog -d {} unmount` first, or give "
                                   "another directory",
                                   *other)));
  TRY(fs::clear_dead_mount(given));
  if (!sys::statat(AT_FDCWD, given))
    TRY_CTX(sys::mkdirat(AT_FDCWD, given, 0755),
            fmt::format("cannot make '{}'", escape(given)));
  std::unique_ptr<char, void (*)(void*)> real(
      ::realpath(given.c_str(), nullptr), ::free);
  if (!real) return fail_errno(errno, "cannot find '{}'", escape(given));
  std::string path(real.get());
  if (draft::overlaps(path, workspace.path))
    return std::unexpected(
        Error(Code::kUsage,
              fmt::format("'{}' and the workspace overlap", escape(path)))
            .with_hint("give a directory outside of it"));
  auto opened = sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!opened && opened.error().err() == ENOTDIR)
    return fail(Code::kUsage, "'{}' is no directory", escape(path));
  Fd dir =
      TRY_CTX(std::move(opened), fmt::format("cannot open '{}'", escape(path)));
  Dir entries = Dir::from(std::move(dir));
  if (TRY(entries.next()))
    return fail(Code::kUsage, "'{}' is not empty", escape(path));
  return path;
}

Status remember_place(const draft::Layout& layout, const std::string& id,
                      const std::string& path) {
  Fd dir = TRY(sys::openat(AT_FDCWD, layout.draft(id), O_RDONLY | O_DIRECTORY));
  return write_file(dir.get(), draft::kMountedAtFile, path, 0600, Sync::kNo);
}

// How long the processes of a killed daemon may take to go.
constexpr auto kLastBreath = std::chrono::seconds(3);

// What a killed daemon left, in our own directory and where it was asked for.
// One that is about to serve has the lock before it mounts.
Result<int> clear_left(Context& context, const draft::Draft& d) {
  const draft::Layout& layout = *TRY(context.layout());
  auto lock = draft::DraftLock::take(layout, d.id, draft::LockMode::kExclusive,
                                     kLastBreath);
  if (!lock && lock.error().err() == EWOULDBLOCK) return 0;
  draft::DraftLock held = TRY(std::move(lock));
  int cleared = TRY(fs::clear_dead_mount(layout.mount(d.id)));
  Fd dir =
      TRY(sys::openat(AT_FDCWD, layout.draft(d.id), O_RDONLY | O_DIRECTORY));
  auto path = sys::read_file(dir.get(), draft::kMountedAtFile, PATH_MAX);
  // Empty: power was lost before it was on the disk.
  if (!path || path->empty()) return cleared;
  // Another draft may be shown there by now.
  if (!TRY(shown_at(context, *path)))
    cleared += TRY(fs::clear_dead_mount(*path));
  (void)sys::unlinkat(dir.get(), draft::kMountedAtFile);
  return cleared;
}

Result<std::string> show_view(Context& context, const Args& args,
                              const draft::Draft& d) {
  const draft::Layout& layout = *TRY(context.layout());
  const bool ours = args.positionals.empty();
  const std::string place =
      ours ? layout.mount(d.id) : TRY(absolute(args.positionals[0]));
  if (auto alive = TRY(context.daemon(d))) {
    const std::string& shown = alive->daemon().mount;
    // Already there, and nothing else was asked for.
    if (!shown.empty() && (ours || shown == place)) return shown;
    if (!shown.empty())
      return std::unexpected(
          Error(
              Code::kUnsupported,
              fmt::format("the draft's view is at '{}' already", escape(shown)))
              .with_hint("`stoplog unmount` first"));
    if (alive->daemon().busy)
      return std::unexpected(
          Error(Code::kUnsupported,
                "a command runs in this draft: its view cannot be shown "
                "elsewhere meanwhile")
              .with_hint("wait for it (`stoplog ps`), or `stoplog stop`"));
  }
  if (ours) {
    TRY(fs::clear_dead_mount(place));
    TRY(draft::make_private_dir(place));
  }
  draft::Shape shape =
      base_shape(TRY(load_policy(context)), caller_environment());
  shape.mount = TRY(prepare(context, place, *TRY(context.workspace())));
  // A killed daemon leaves its mount behind: `unmount` finds it by this.
  if (!ours) TRY(remember_place(layout, d.id, shape.mount));
  TRY(draft::Client::connect_or_start(layout, d.id, {.shape = shape}));
  // Who works in a draft that was committed whole goes on with it.
  if (d.state != draft::DraftState::kOpen)
    TRY(TRY(context.store())->update(d.id, [](draft::Draft& draft) {
      draft.state = draft::DraftState::kOpen;
    }));
  return shape.mount;
}

Result<int> run_mount(Context& context, const Args& args) {
  TRY(load_policy(context));
  TRY(finish_interrupted(context));
  auto made = TRY(context.find_or_make_draft(args.has("force"), false));
  auto place = show_view(context, args, made.draft);
  // Nothing was begun: no empty draft is to be the current one.
  const std::string journal = TRY(context.layout())->journal(made.draft.id);
  if (!place && made.created && !sys::statat(AT_FDCWD, journal))
    (void)TRY(context.store())->remove(made.draft.id);
  const std::string shown = TRY(std::move(place));
  context.out.write((context.out.terminal() ? escape(shown) : shown) + "\n");
  return 0;
}

// Nobody works in it any more: was all of it committed? One with states that
// have names is kept for them.
Status close_committed(Context& context, const draft::Draft& d) {
  if (d.state != draft::DraftState::kOpen) return {};
  // A draft of another workspace is opened as if we stood there.
  Globals globals = context.globals();
  globals.workspace = d.workspace;
  Context there(globals, context.out);
  auto directory = there.workspace();
  if (!directory || !d.stands_over(**directory)) return {};
  Opened opened = TRY(open_draft(there, d, {.only_marks = true}));
  bool is_named = std::ranges::any_of(opened.marks, [](const fs::Mark& mark) {
    return mark.kind == fs::MarkKind::kNamed;
  });
  if (is_named ||
      !TRY(gate::has_standing_commit(opened.door.state.get(), d.id)))
    return {};
  opened = {};
  TRY(close_if_whole(there, d, false));
  return {};
}

void close_or_say(Context& context, const draft::Draft& d) {
  if (Status closed = close_committed(context, d); !closed)
    context.out.note(closed.error().text());
}

// Its view goes, when it is shown; else what a killed daemon left of it. False:
// there was nothing.
Result<bool> take_away(Context& context, const draft::Draft& d) {
  // One over a directory that was replaced goes like any other.
  auto client = TRY(context.daemon(d, draft::OtherVersion::kAsked));
  if (!client || client->daemon().mount.empty()) {
    if (client || TRY(clear_left(context, d)) == 0) return false;
    context.out.note("cleared a dead mount");
    close_or_say(context, d);
    return true;
  }
  if (!TRY(client->running()).empty())
    return std::unexpected(
        Error(Code::kUnsupported, "a command runs in this draft")
            .with_hint("wait for it, or `stoplog stop`"));
  TRY(client->shutdown(*TRY(context.layout()), d.id, true));
  TRY(clear_left(context, d));
  close_or_say(context, d);
  return true;
}

// Where both are given, they must be of one draft.
Status check_draft(const Context& context, const draft::Draft& d,
                   const std::string& path) {
  const auto& wanted = context.globals().draft;
  if (!wanted || *wanted == d.name || *wanted == d.id) return {};
  return fail(Code::kUsage, "what is mounted at '{}' is draft '{}', not '{}'",
              escape(path), d.name, escape(*wanted));
}

Result<bool> take_away_at(Context& context, const std::string& path) {
  for (const ShownView& view : TRY(shown_views(context, Where::kEverywhere))) {
    if (view.mount != path) continue;
    TRY(check_draft(context, view.draft, path));
    return take_away(context, view.draft);
  }
  // Dead, perhaps.
  for (const draft::Draft& d : TRY(TRY(context.store())->list())) {
    const draft::Layout& layout = *TRY(context.layout());
    auto place = sys::read_file(
        AT_FDCWD, layout.draft(d.id) + "/" + draft::kMountedAtFile, PATH_MAX);
    if (layout.mount(d.id) != path && !(place && *place == path)) continue;
    TRY(check_draft(context, d, path));
    return take_away(context, d);
  }
  return fail(Code::kUsage, "no view is mounted at '{}'", escape(path));
}

// Without a name: the current draft's, dead or alive; else the only one that is
// mounted; else what killed daemons left.
Result<bool> take_away_any(Context& context) {
  std::optional<draft::Draft> current = TRY(context.find_draft());
  if (current && TRY(take_away(context, *current))) return true;
  auto views = TRY(shown_views(context, Where::kWorkspace));
  if (views.size() == 1) {
    context.out.note(fmt::format("taking away the view of draft '{}' at '{}'",
                                 views[0].draft.name, escape(views[0].mount)));
    return take_away(context, views[0].draft);
  }
  if (!views.empty()) {
    std::string names;
    for (const ShownView& view : views)
      names += (names.empty() ? "'" : ", '") + escape(view.mount) + "'";
    return std::unexpected(
        Error(Code::kUsage, fmt::format("several views are mounted: {}", names))
            .with_hint("`stoplog unmount DIR` takes one away"));
  }
  bool cleared = false;
  for (const draft::Draft& d :
       TRY(TRY(context.store())->list(*TRY(context.workspace())))) {
    auto gone = take_away(context, d);
    if (!gone)
      context.out.note(gone.error().text());
    else
      cleared = *gone || cleared;
  }
  if (!cleared && !current) TRY(context.need_draft());
  return cleared;
}

Result<int> run_unmount(Context& context, const Args& args) {
  const bool was =
      !args.positionals.empty()
          ? TRY(take_away_at(context, TRY(absolute(args.positionals[0]))))
      : context.wanted_draft()
          ? TRY(take_away(context, TRY(context.need_draft())))
          : TRY(take_away_any(context));
  if (!was) context.out.note("nothing is mounted");
  return 0;
}

}  // namespace

extern const Command k_mount_command{
    .name = "mount",
    .summary = "show the draft's view to programs outside of the jail",
    .help =
        "usage: stoplog mount [DIR] [--force]\n"
        "\n"
        "Shows the draft's view at DIR, an empty or new directory (one of our\n"
        "own by default), prints its path and returns once it is usable. What\n"
        "is written there is held like what a command writes. It protects "
        "from\n"
        "accidents, not from malice: a program outside of the jail can still\n"
        "reach the real files.\n"
        "\n"
        "      --force  also over a home directory\n"
        "\n"
        "example: code \"$(stoplog mount)\"\n",
    .options = kOptions,
    .max = 1,
    .run = run_mount};

extern const Command k_unmount_command{
    .name = "unmount",
    .summary = "take the view away again",
    .help =
        "usage: stoplog unmount [DIR]\n"
        "\n"
        "Ends what `stoplog mount` shows at DIR; without DIR the draft's view, "
        "or\n"
        "the only one of this workspace. What was written stays held.\n"
        "\n"
        "example: stoplog unmount\n",
    .max = 1,
    .run = run_unmount};

}  // namespace stoplog::cli
