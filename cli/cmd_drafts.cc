// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/clock.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/json_path.h"
#include "cli/change_count.h"
#include "cli/command.h"
#include "cli/words.h"

namespace stoplog::cli {
namespace {

using draft::Draft;

constexpr OptionSpec kOptions[] = {{"json"}, {"all", 'a'}};

struct Row {
  Draft draft;
  bool current = false;
  bool gone = false;  // its workspace was removed, or replaced by another
  std::optional<std::vector<RelPath>> paths;  // unknown: cannot be read
  struct Overlap {
    std::string name;
    std::vector<RelPath> paths;
  };
  std::vector<Overlap> overlaps;  // with other open drafts
  uint32_t commands = 0;
  std::optional<int32_t> daemon;
  std::string mount;
};

// Paths that both hold: the second of them to be committed will find drift.
void find_overlap(Row& row, const Row& other) {
  auto held = [](const Row& r) {
    return r.paths && r.draft.state == draft::DraftState::kOpen;
  };
  if (!held(row) || !held(other) ||
      row.draft.workspace != other.draft.workspace)
    return;
  Row::Overlap overlap{.name = other.draft.name, .paths = {}};
  std::ranges::set_intersection(*row.paths, *other.paths,
                                std::back_inserter(overlap.paths));
  if (!overlap.paths.empty()) row.overlaps.push_back(std::move(overlap));
}

Result<std::vector<Row>> collect(Context& context, bool all) {
  draft::Store& store = *TRY(context.store());
  std::vector<Draft> drafts =
      all ? TRY(store.list()) : TRY(store.list(*TRY(context.workspace())));
  std::vector<Row> rows;
  for (Draft& d : drafts) {
    Row row;
    auto ws = draft::find_workspace({.given = d.workspace, .cwd = "/"});
    row.gone = !ws || !d.stands_over(*ws);
    if (!row.gone) {
      auto current = TRY(store.current(*ws));
      row.current = current && current->id == d.id;
    }
    if (auto client = context.daemon(d); client && *client) {
      row.daemon = (**client).daemon().pid;
      if (auto status = (**client).status()) row.mount = status->mount;
    }
    row.paths = held_paths(context, d, &row.commands);
    if (row.paths) std::ranges::sort(*row.paths);
    row.draft = std::move(d);
    rows.push_back(std::move(row));
  }
  for (Row& row : rows)
    for (const Row& other : rows)
      if (&row != &other) find_overlap(row, other);
  return rows;
}

Json to_json(const Row& row) {
  Json j = Json::object();
  j.set("name", row.draft.name).set("id", row.draft.id);
  set_path(j, "workspace", row.draft.workspace);
  j.set("state", draft::name_of(row.draft.state)).set("current", row.current);
  j.set("changes", row.paths ? Json(row.paths->size()) : Json());
  j.set("commands", row.commands).set("created", row.draft.created);
  j.set("daemon", row.daemon ? Json(*row.daemon) : Json());
  j.set("mount", Json());
  if (!row.mount.empty()) set_path(j, "mount", row.mount);
  Json overlaps = Json::array();
  for (const Row::Overlap& overlap : row.overlaps) {
    Json one = Json::object();
    set_paths(one.set("draft", overlap.name), "paths", overlap.paths);
    overlaps.push(std::move(one));
  }
  j.set("overlaps", std::move(overlaps));
  return j;
}

std::string created_for_people(const std::string& created) {
  auto time = parse_rfc3339(created);
  // To the minute.
  return time ? local_time(*time).substr(0, 16) : created;
}

// With a usual name it fits 80 columns; what is rare has a line of its own.
std::string line_of(const Row& row, size_t widest) {
  std::string changes = row.paths ? std::to_string(row.paths->size()) : "?";
  std::string out = fmt::format(
      "{} {:<{}}  {}  {:<9} {:>5} change{} {:>3} command{} {}\n",
      row.current ? '*' : ' ', row.draft.name, widest, row.draft.id,
      draft::name_of(row.draft.state), changes, changes == "1" ? " " : "s",
      row.commands, row.commands == 1 ? " " : "s",
      created_for_people(row.draft.created));
  std::string more;
  if (row.daemon) more += fmt::format("  daemon {}", *row.daemon);
  if (!row.mount.empty()) more += "  shown at " + escape(row.mount);
  if (row.gone) more += "  its directory is gone";
  if (!more.empty()) out += "    " + more + "\n";
  return out;
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
  size_t widest = 0;
  for (const Row& row : rows) widest = std::max(widest, row.draft.name.size());
  for (const Row& row : rows) {
    context.out.write(line_of(row, widest));
    for (const Row::Overlap& overlap : row.overlaps)
      context.out.write(fmt::format(
          "      {} also in '{}': {}{}\n", plural(overlap.paths.size(), "path"),
          overlap.name, escape(overlap.paths[0].str()),
          overlap.paths.size() > 1 ? " ..." : ""));
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
        "changes, commands run, when it was made; '*' is the current one. "
        "Paths\n"
        "that another open draft changes too are counted beneath.\n"
        "\n"
        "  -a, --all   those of every workspace\n"
        "      --json  for programs\n"
        "\n"
        "example: stoplog drafts --all\n",
    .options = kOptions,
    .run = run};

}  // namespace stoplog::cli
