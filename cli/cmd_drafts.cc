// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "base/escape.h"
#include "base/json.h"
#include "cli/change_count.h"
#include "cli/command.h"

namespace stoplog::cli {
namespace {

using draft::Draft;

constexpr OptionSpec kOptions[] = {{"json"}, {"all", 'a'}};

struct Row {
  Draft draft;
  bool current = false;
  std::optional<uint64_t> changes;  // unknown when it cannot be read
  uint32_t commands = 0;
  std::optional<int32_t> daemon;
  std::string mount;
};

Result<std::vector<Row>> collect(Context& context, bool all) {
  draft::Store& store = *TRY(context.store());
  std::vector<Draft> drafts =
      all ? TRY(store.list()) : TRY(store.list(*TRY(context.workspace())));
  std::vector<Row> rows;
  for (Draft& d : drafts) {
    Row row;
    auto ws = draft::Workspace{.path = d.workspace};
    auto current = TRY(store.current(ws));
    row.current = current && current->id == d.id;
    if (auto client = context.daemon(d); client && *client) {
      row.daemon = (**client).daemon().pid;
      if (auto status = (**client).status()) row.mount = status->mount;
    }
    row.changes = count_changes(context, d, &row.commands);
    row.draft = std::move(d);
    rows.push_back(std::move(row));
  }
  return rows;
}

Json to_json(const Row& row) {
  Json j = Json::object();
  j.set("name", row.draft.name).set("id", row.draft.id);
  j.set("workspace", row.draft.workspace);
  j.set("state", draft::name_of(row.draft.state)).set("current", row.current);
  j.set("changes", row.changes ? Json(*row.changes) : Json());
  j.set("commands", row.commands).set("created", row.draft.created);
  j.set("daemon", row.daemon ? Json(*row.daemon) : Json());
  j.set("mount", row.mount.empty() ? Json() : Json(row.mount));
  return j;
}

std::string created_for_people(const std::string& created) {
  auto time = parse_rfc3339(created);
  return time ? local_time(*time) : created;
}

Result<int> run(Context& context, const Args& args) {
  std::vector<Row> rows = TRY(collect(context, args.has("all")));
  if (args.has("json")) {
    Json list = Json::array();
    for (const Row& row : rows) list.push(to_json(row));
    context.out.write(
        Json::object().set("version", 1).set("drafts", list).dump() + "\n");
    return 0;
  }
  if (rows.empty()) {
    context.out.note("no drafts here");
    context.out.hint(
        "`stoplog run -- COMMAND` starts one; `stoplog drafts "
        "--all` lists those of other workspaces");
    return 0;
  }
  for (const Row& row : rows) {
    std::string changes = row.changes ? std::to_string(*row.changes) : "?";
    context.out.write(fmt::format(
        "{} {:<20} {}  {:<9} {:>6} changes {:>4} commands  {}{}{}\n",
        row.current ? '*' : ' ', row.draft.name, row.draft.id,
        draft::name_of(row.draft.state), changes, row.commands,
        created_for_people(row.draft.created),
        row.daemon ? fmt::format("  daemon {}", *row.daemon) : "",
        row.mount.empty() ? "" : "  at " + escape(row.mount)));
    if (args.has("all"))
      context.out.write(fmt::format("      {}\n", escape(row.draft.workspace)));
  }
  return 0;
}

}  // namespace

extern const Command k_drafts_command{
    .name = "drafts",
    .summary = "list the drafts of this workspace",
    .help =
        "usage: stoplog drafts [--all] [--json]\n"
        "\n"
        "Lists the drafts of this workspace, oldest first: name, id, state,\n"
        "changes, commands run, when it was made; '*' is the current one.\n"
        "\n"
        "  -a, --all   those of every workspace\n"
        "      --json  for programs\n"
        "\n"
        "example: stoplog drafts --all\n",
    .options = kOptions,
    .run = run};

}  // namespace stoplog::cli
