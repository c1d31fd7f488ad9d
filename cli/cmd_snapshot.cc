// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/marks.h"
#include "cli/opened.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"name", 'm', "NAME"}, {"json"}};

Result<int> run(Context& context, const Args& args) {
  draft::Draft draft = TRY(context.need_draft());
  Opened opened = TRY(open_draft(context, draft, {.only_marks = true}));
  const std::vector<fs::Mark>& marks = opened.marks;
  std::string name = args.value("name").value_or("");
  if (!args.has("name")) name = free_name(marks, "s");
  if (!draft::is_valid_draft_name(name))
    return std::unexpected(
        Error(Code::kUsage,
              fmt::format("cannot name a snapshot '{}'", escape(name)))
            .with_hint("letters, digits, '.', '_' and '-', 64 at most"));
  for (const fs::Mark& mark : marks)
    if (mark_name(mark) == name)
      return fail(Code::kUsage, "there is a mark '{}' in this draft", name);
  TRY(take_mark(context, opened, name));
  if (args.has("json"))
    context.out.write(
        Json::object().set("version", 1).set("mark", name).dump() + "\n");
  else
    context.out.write(name + "\n");
  return 0;
}

}  // namespace

extern const Command k_snapshot_command{
    .name = "snapshot",
    .summary = "name the draft's state, to come back to it",
    .help =
        "usage: stoplog snapshot [-m NAME] [--json]\n"
        "\n"
        "Gives the draft's present state a name, unique in the draft "
        "(default:\n"
        "s1, s2 and so on), and prints it. Costs nothing, however large the\n"
        "draft; what was written since goes on being held.\n"
        "\n"
        "  -m, --name NAME  the name\n"
        "      --json       for programs\n"
        "\n"
        "example: stoplog snapshot -m tests-green\n",
    .options = kOptions,
    .run = run};

}  // namespace stoplog::cli
