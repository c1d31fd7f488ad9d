// SPDX-License-Identifier: Apache-2.0
// `mount` and `unmount`: the draft's view for people and programs outside of
// the jail. The daemon serves one mount; showing it elsewhere means another
// daemon, which an idle one makes room for.
#include <unistd.h>

#include "base/dir.h"
#include "base/escape.h"
#include "base/sys_file.h"
#include "cli/command.h"
#include "cli/opened.h"
#include "cli/run_options.h"
#include "draft/client.h"
#include "fs/mount_device.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"force"}};

// An empty directory, made when it is not there; a dead mount of ours in the
// way is cleared. Returns its absolute path.
Result<std::string> prepare(const std::string& given,
                            const draft::Workspace& workspace) {
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
  Fd dir = TRY_CTX(sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY),
                   fmt::format("cannot open '{}'", escape(path)));
  Dir entries = Dir::from(std::move(dir));
  if (TRY(entries.next()))
    return fail(Code::kUsage, "'{}' is not empty", escape(path));
  return path;
}

Result<int> run_mount(Context& context, const Args& args) {
  const draft::Layout& layout = *TRY(context.layout());
  const draft::Workspace& workspace = *TRY(context.workspace());
  draft::Policy policy = TRY(load_policy(context));
  auto made = TRY(context.find_or_make_draft(args.has("force"), false));
  draft::Shape shape = base_shape(policy, caller_environment());
  if (auto alive = TRY(context.daemon(made.draft))) {
    // Already there, and nothing else was asked for.
    if (!alive->daemon().mount.empty() &&
        (args.positionals.empty() ||
         alive->daemon().mount == args.positionals[0])) {
      context.out.write(alive->daemon().mount + "\n");
      return 0;
    }
    if (alive->daemon().busy)
      return std::unexpected(
          Error(Code::kUnsupported,
                "the draft is in use: its view cannot be mounted elsewhere now")
              .with_hint("wait for what runs (`stoplog ps`), or `stoplog "
                         "unmount` first"));
  }
  std::string place = args.positionals.empty() ? layout.mount(made.draft.id)
                                               : args.positionals[0];
  if (args.positionals.empty()) {
    TRY(fs::clear_dead_mount(place));
    TRY(draft::make_private_dir(place));
  }
  shape.mount = TRY(prepare(place, workspace));
  TRY(draft::Client::connect_or_start(layout, made.draft.id, {.shape = shape}));
  context.out.write(shape.mount + "\n");
  return 0;
}

Result<int> run_unmount(Context& context, const Args&) {
  draft::Draft d = TRY(context.need_draft());
  auto client = TRY(context.daemon(d));
  if (!client || client->daemon().mount.empty()) {
    // A killed daemon leaves its mount behind.
    int cleared = TRY(fs::clear_dead_mount(TRY(context.layout())->mount(d.id)));
    context.out.note(cleared > 0 ? "cleared a dead mount"
                                 : "nothing is mounted");
    return 0;
  }
  if (!TRY(client->running()).empty())
    return std::unexpected(
        Error(Code::kUnsupported, "a command runs in this draft")
            .with_hint("wait for it, or `stoplog stop`"));
  TRY(client->shutdown(*TRY(context.layout()), d.id, true));
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
        "usage: stoplog unmount\n"
        "\n"
        "Ends what `stoplog mount` shows. What was written stays held.\n"
        "\n"
        "example: stoplog unmount\n",
    .run = run_unmount};

}  // namespace stoplog::cli
