// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/json_path.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/words.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"json"}};

timespec time_of(int64_t ms) {
  return {ms / 1000, static_cast<long>(ms % 1000) * 1'000'000};
}

Json to_json(const draft::RunningCommand& c, const std::string& workspace) {
  Json j = Json::object();
  j.set("command", c.command).set("pid", c.pid);
  set_words(j, "argv", c.argv);
  set_path(j, "cwd", c.cwd.empty() ? workspace : workspace + "/" + c.cwd);
  j.set("started", rfc3339(time_of(c.started_ms))).set("stopped", c.stopped);
  return j;
}

Result<int> run(Context& context, const Args& args) {
  std::vector<draft::RunningCommand> commands;
  std::string name, workspace;
  if (auto d = TRY(context.find_draft())) {
    name = d->name;
    workspace = d->workspace;
    if (auto client = TRY(context.daemon(*d)))
      commands = TRY(client->running());
  }
  if (args.has("json")) {
    Json list = Json::array();
    for (const auto& c : commands) list.push(to_json(c, workspace));
    Json all = Json::object();
    all.set("version", 1).set("draft", name.empty() ? Json() : Json(name));
    context.out.write(all.set("commands", list).dump() + "\n");
    return 0;
  }
  if (commands.empty()) context.out.note("nothing runs");
  int64_t now = Clock::real().now().tv_sec * 1000;
  for (const auto& c : commands) {
    Millis age(std::max<int64_t>(0, now - c.started_ms));
    context.out.write(fmt::format(
        "{:>4}  pid {:<8} {:>8}  {}{}\n", c.command, c.pid, print_duration(age),
        c.stopped ? "(stopped) " : "", show_argv(c.argv)));
  }
  return 0;
}

}  // namespace

extern const Command k_ps_command{
    .name = "ps",
    .summary = "what runs in the draft now",
    .help =
        "usage: stoplog ps [--json]\n"
        "\n"
        "Lists the commands that run in the draft now: number, process id of\n"
        "the jail's init on the host, how long, command line.\n"
        "\n"
        "      --json  for programs\n"
        "\n"
        "example: stoplog ps\n",
    .options = kOptions,
    .run = run};

}  // namespace stoplog::cli
