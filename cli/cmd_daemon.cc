// SPDX-License-Identifier: Apache-2.0
// `daemon`: what the CLI starts by itself; hidden from the overview.
#include "base/log.h"
#include "cli/command.h"
#include "draft/daemon.h"
#include "draft/freeze.h"
#include "draft/warmer.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"serve", 0, "ID"},
                                   {"ready-fd", 0, "N"},
                                   {"shape", 0, "TEXT"},
                                   {"idle", 0, "MS"},
                                   {"sync-mappings", 0, "DIR"},
                                   {"mapped-at", 0, "DIR"},
                                   {"sync-files", 0, "DIR"},
                                   {"warm", 0, "DIR"},
                                   {"contents"}};

Result<int> run(Context& context, const Args& args) {
  if (auto mount = args.value("warm")) {
    TRY(draft::warm_here(*mount, args.has("contents")));
    return 0;
  }
  if (auto mount = args.value("sync-files")) {
    TRY(draft::sync_files_here(*mount, args.positionals));
    return 0;
  }
  if (auto mount = args.value("sync-mappings")) {
    std::vector<pid_t> pids;
    for (const std::string& word : args.positionals)
      pids.push_back(
          static_cast<pid_t>(TRY(parse_number(word, "a process", 1, 1 << 30))));
    TRY(draft::sync_mappings_here(
        pids,
        {.mount = *mount, .workspace = args.value("mapped-at").value_or("")}));
    return 0;
  }
  auto id = args.value("serve");
  if (!id) return fail(Code::kUsage, "--serve is missing");
  draft::DaemonOptions options{.layout = *TRY(context.layout()), .draft = *id};
  if (auto fd = args.value("ready-fd"))
    options.ready_fd =
        static_cast<int>(TRY(parse_number(*fd, "ready-fd", 3, 1023)));
  if (auto text = args.value("shape"))
    options.shape = TRY(draft::Shape::from_text(*text));
  if (auto ms = args.value("idle"))
    options.idle = std::chrono::milliseconds(
        TRY(parse_number(*ms, "idle", 1, 1'000'000'000)));
  log::set_level(log::Level::kInfo);
  TRY(draft::run_daemon(options, draft::make_core));
  return 0;
}

}  // namespace

extern const Command k_daemon_command{
    .name = "daemon",
    .summary = "",
    .help =
        "usage: stoplog daemon --serve ID [--ready-fd N] [--shape TEXT]\n"
        "                      [--idle MS]\n"
        "       stoplog daemon --sync-mappings DIR --mapped-at DIR PID...\n"
        "       stoplog daemon --sync-files DIR PATH...\n"
        "       stoplog daemon --warm DIR [--contents]\n"
        "\n"
        "Serves one draft. Started by other commands when it is needed.\n"
        "\n"
        "example: stoplog daemon --serve 1a2b3c4d\n",
    .options = kOptions,
    .max = kAnyNumber,
    .run = run};

}  // namespace stoplog::cli
