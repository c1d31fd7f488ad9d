// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "base/clock.h"
#include "base/escape.h"
#include "base/shown_path.h"
#include "cli/command.h"
#include "cli/commit_flow.h"
#include "cli/exit_codes.h"
#include "cli/opened.h"
#include "cli/words.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"json"}, {"null", 'z'}};

char letter(const gate::Item& item) {
  if (!item.old) return 'A';
  if (!item.fresh) return 'D';
  if (item.from) return 'R';
  return item.old->type != item.fresh->type ? 'T' : 'M';
}

// The extended attributes in which both sides differ.
std::string attributes(const gate::Item& item) {
  using Attributes = std::map<std::string, std::string>;
  static const Attributes kNone;
  const Attributes& old = item.old ? item.old->xattrs : kNone;
  const Attributes& now = item.fresh ? item.fresh->xattrs : kNone;
  std::string out;
  auto add = [&](const std::string& name, const char* what) {
    out += fmt::format("  ({} {})", escape(name), what);
  };
  if (!item.fresh) return out;
  for (const auto& [name, value] : now)
    if (auto was = old.find(name); was == old.end())
      add(name, "added");
    else if (was->second != value)
      add(name, "changed");
  for (const auto& [name, value] : old)
    if (!now.contains(name)) add(name, "removed");
  return out;
}

std::string describe(const gate::CommitRecord& record) {
  const gate::CommitMeta& m = record.meta;
  std::string out = fmt::format("{} {}", m.kind, m.number);
  if (m.undoes != 0) out += fmt::format(" of commit {}", m.undoes);
  out += fmt::format("\ntime    {}\n", local_time(m.time));
  out += fmt::format(
      "user    {}{}\n", escape(m.user),
      m.tty.empty() ? ", without a terminal" : " on " + escape(m.tty));
  if (!m.draft.empty()) out += fmt::format("draft   {}\n", escape(m.draft));
  if (!m.change_digest.empty())
    out += fmt::format("digest  {}\n", m.change_digest);
  out += "\n";
  for (const gate::Item& item : record.items) {
    if (item.stays()) continue;
    out += fmt::format("{}  ", letter(item));
    if (item.from) out += escape(item.from->str()) + " -> ";
    out += escape(shown_path(item.path));
    if (item.old && item.fresh && item.old->mode != item.fresh->mode)
      out += fmt::format("  (mode {:04o} -> {:04o})", item.old->mode,
                         item.fresh->mode);
    out += attributes(item);
    out += "\n";
  }
  for (const gate::Left& left : record.left)
    out += fmt::format("left as it is: {}: {}\n", escape(shown_path(left.path)),
                       escape(left.why));
  return out;
}

// As `status -z`: letter, a moved one's old name, name, each ended by NUL; raw
// but on a terminal.
std::string names(const gate::CommitRecord& record, bool terminal) {
  std::string out;
  auto put = [&](const std::string& name) {
    out += terminal ? escape(name) : name;
    out += '\0';
  };
  for (const gate::Item& item : record.items) {
    if (item.stays()) continue;
    put(std::string(1, letter(item)));
    if (item.from) put(item.from->str());
    put(shown_path(item.path));
  }
  return out;
}

Result<int> run(Context& context, const Args& args) {
  Doorstep door = TRY(open_doorstep(context));
  uint64_t number =
      TRY(parse_number(args.positionals[0], "COMMIT", 1, UINT64_MAX));
  auto record = gate::read_commit(door.state.get(), number);
  if (!record && record.error().code() == Code::kUsage)
    return std::unexpected(
        Error(Code::kUsage,
              fmt::format("there is no commit {} in this workspace", number))
            .with_hint("`stoplog log --commits` lists what was committed"));
  gate::CommitRecord found = TRY(std::move(record));
  if (args.has("json"))
    context.out.write(
        commit_json(found, TRY(context.workspace())->path).dump() + "\n");
  else if (args.has("null"))
    context.out.write(names(found, context.out.terminal()));
  else
    context.out.write(describe(found));
  return kDone;
}

}  // namespace

extern const Command k_show_command{
    .name = "show",
    .summary = "what a commit did",
    .help =
        "usage: stoplog show COMMIT [--json|-z]\n"
        "\n"
        "What commit number COMMIT of this workspace did: who, when, from "
        "which\n"
        "draft, and each path with git's letters.\n"
        "\n"
        "      --json  for programs, with both hashes of each path\n"
        "  -z, --null  letters and names, ended by NUL\n"
        "\n"
        "example: stoplog show 3\n",
    .options = kOptions,
    .min = 1,
    .max = 1,
    .run = run};

}  // namespace stoplog::cli
