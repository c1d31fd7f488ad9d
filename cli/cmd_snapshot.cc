// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/escape.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/marks.h"
#include "cli/opened.h"
#include "draft/ledger.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"name", 'm', "NAME"}, {"json"}};

std::string free_name(const std::vector<fs::Mark>& marks) {
  for (int n = 1;; ++n) {
    std::string name = fmt::format("s{}", n);
    bool taken = std::ranges::any_of(
        marks, [&](const fs::Mark& m) { return mark_name(m) == name; });
    if (!taken) return name;
  }
}

Result<int> run(Context& context, const Args& args) {
  draft::Draft draft = TRY(context.need_draft());
  Opened opened = TRY(open_draft(context, draft, {}));
  const std::vector<fs::Mark>& marks = opened.view->marks();
  std::string name = args.value("name").value_or("");
  if (!args.has("name")) name = free_name(marks);
  if (!draft::is_valid_draft_name(name))
    return std::unexpected(
        Error(Code::kUsage,
              fmt::format("cannot name a snapshot '{}'", escape(name)))
            .with_hint("letters, digits, '.', '_' and '-', 64 at most"));
  for (const fs::Mark& mark : marks)
    if (mark_name(mark) == name)
      return fail(Code::kUsage, "there is a mark '{}' in this draft", name);
  fs::Mark mark;
  TRY(change_draft(context, opened,
                   {.daemon = [&](draft::Client& daemon) -> Status {
                      mark = TRY(daemon.snapshot(name));
                      return {};
                    },
                    .tree = [&](fs::Tree& tree) -> Status {
                      mark = TRY(tree.mark(fs::MarkKind::kNamed, 0, name));
                      return {};
                    }}));
  draft::Ledger ledger =
      TRY(draft::Ledger::open(*TRY(context.layout()), draft.id));
  TRY(ledger.append(
      "snapshot",
      Json::object().set("mark", name).set("position", mark.position),
      Sync::kNo));
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
