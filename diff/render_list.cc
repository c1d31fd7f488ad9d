// SPDX-License-Identifier: Apache-2.0
// `status` and the summary after a command.
#include "base/escape.h"
#include "base/units.h"
#include "diff/git_meta.h"
#include "diff/paint.h"
#include "diff/render.h"

namespace stoplog::diff {
namespace {

struct Counts {
  uint64_t added = 0, modified = 0, deleted = 0, renamed = 0, dangers = 0;
  uint64_t drifted = 0, shown = 0;
};

Counts count(const ChangeSet& set, const RenderOptions& options) {
  Counts counts;
  for (const Change& change : set.changes) {
    if (!is_listed(change, options.ignored, options.paths)) continue;
    counts.shown++;
    counts.dangers += change.is_danger();
    counts.drifted += change.drift.has_value();
    switch (change.kind) {
      case Kind::kAdded:
        counts.added++;
        break;
      case Kind::kDeleted:
        counts.deleted++;
        break;
      case Kind::kRenamed:
        counts.renamed++;
        break;
      default:
        counts.modified++;
    }
  }
  return counts;
}

std::string totals(const Counts& counts) {
  std::string out = plural(counts.shown, "change", "changes");
  std::string parts;
  auto add = [&](uint64_t n, std::string_view word) {
    if (n == 0) return;
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", n, word);
  };
  add(counts.added, "added");
  add(counts.modified, "modified");
  add(counts.deleted, "deleted");
  add(counts.renamed, "renamed");
  if (!parts.empty()) out += " (" + parts + ")";
  if (counts.dangers > 0)
    out += ", " + plural(counts.dangers, "danger", "dangers");
  if (counts.drifted > 0)
    out += fmt::format(", {} drifted in the real tree", counts.drifted);
  return out;
}

// What it is, beyond a regular file of the same mode: symlink targets, types,
// modes.
std::string nature(const Change& change) {
  std::string out;
  if (change.git) return "  " + escape(change.git->summary());
  const auto& state = change.after ? change.after : change.before;
  if (change.kind == Kind::kType) {
    out += fmt::format("  {} becomes {}", fs::name_of(change.before->type),
                       fs::name_of(change.after->type));
  } else if (change.is_moved_directory()) {
    out += "  directory, with all beneath it";
  } else if (state->type != fs::Type::kFile) {
    out += fmt::format("  {}", fs::name_of(state->type));
  }
  if (change.after && change.after->type == fs::Type::kSymlink)
    out += " → " + escape(change.after->target);
  if (change.before && change.after &&
      change.before->type == change.after->type &&
      change.before->mode != change.after->mode)
    out += fmt::format("  mode {} → {}", mode_text(*change.before),
                       mode_text(*change.after));
  if (change.link_to) out += "  hard link of " + escape(change.link_to->str());
  return out;
}

std::string amount(const Change& change, bool color) {
  if (change.git) return "";
  if (change.lines_added || change.lines_deleted) {
    std::string out;
    uint64_t added = change.lines_added.value_or(0);
    uint64_t deleted = change.lines_deleted.value_or(0);
    if (added > 0)
      out += "  " + paint(color, Ink::kGreen, fmt::format("+{}", added));
    if (deleted > 0)
      out += (added > 0 ? " " : "  ") +
             paint(color, Ink::kRed, fmt::format("-{}", deleted));
    return out;
  }
  const auto& state = change.after ? change.after : change.before;
  if (state->type != fs::Type::kFile || !change.content_changed) return "";
  return fmt::format("  {}{}", print_size(change.size()),
                     change.binary ? " binary" : "");
}

// The gravest; a line with twenty of them is read by nobody.
std::string risks_of(const Change& change, bool color) {
  constexpr size_t kMost = 4;
  std::string out;
  size_t told = 0, more = 0, more_dangers = 0;
  for (const Risk& risk : change.risks) {  // gravest first
    const bool danger = risk.level == Level::kDanger;
    if (!danger && risk.level != Level::kWarn) continue;
    if (told == kMost) {
      ++more;
      more_dangers += danger;
      continue;
    }
    ++told;
    out += "  " + paint(color, danger ? Ink::kAlarm : Ink::kYellow,
                        fmt::format("{} {}: {}", name_of(risk.level),
                                    escape(risk.code), escape(risk.message)));
  }
  if (more > 0) out += fmt::format("  and {} more", more);
  if (more_dangers > 0)
    out += paint(color, Ink::kAlarm,
                 fmt::format(", {} of them dangers", more_dangers));
  return out;
}

std::string one_line(const Change& change, const RenderOptions& options) {
  Ink ink = change.is_deletion()          ? Ink::kRed
            : change.kind == Kind::kAdded ? Ink::kGreen
                                          : Ink::kYellow;
  std::string line =
      paint(options.color, ink, std::string(1, letter_of(change)));
  std::string name = shown_name(change.shown_path(), options);
  line += "  " +
          (change.is_danger() ? paint(options.color, Ink::kBold, name) : name);
  if (change.from)
    line += fmt::format(" (was {})", shown_name(change.from->str(), options));
  line += nature(change);
  line += amount(change, options.color);
  if (change.command > 0) line += fmt::format("  @{}", change.command);
  if (options.decision) {
    std::string decision = options.decision(change);
    if (!decision.empty() && decision != "none") line += "  " + decision;
  }
  if (change.ignored) line += "  ignored";
  line += risks_of(change, options.color);
  if (change.drift)
    line += "  " + paint(options.color, Ink::kAlarm,
                         "drift: " + escape(*change.drift));
  return line;
}

std::string group_line(const Group& group, const RenderOptions& options) {
  std::string line = fmt::format(
      "   {}  {}: {}, {}", shown_name(group.path, options), group.reason,
      plural(group.files, "file", "files"), print_size(group.bytes));
  if (group.deleted > 0) line += fmt::format(", {} deleted", group.deleted);
  return line;
}

// No row but a line's first begins at the margin.
std::string folded(const std::string& line, const RenderOptions& options) {
  return shown_line(line, "       ", options);
}

}  // namespace

void render_list(const ChangeSet& set, const RenderOptions& options,
                 const Sink& sink) {
  for (size_t i : display_order(set)) {
    const Change& change = set.changes[i];
    if (is_listed(change, options.ignored, options.paths))
      sink(folded(one_line(change, options), options));
  }
  for (const Group& group : set.groups)
    sink(folded(group_line(group, options), options));
  Counts counts = count(set, options);
  if (counts.shown > 0) {
    sink(folded(totals(counts), options));
  } else {
    sink("no changes\n");
  }
}

void render_list_names(const ChangeSet& set, const RenderOptions& options,
                       const Sink& sink) {
  auto name = [&](const std::string& path) {
    return (options.terminal ? shown_name(path, options) : path) + '\0';
  };
  for (size_t i : display_order(set)) {
    const Change& change = set.changes[i];
    if (!is_listed(change, options.ignored, options.paths)) continue;
    std::string out{letter_of(change), '\0'};
    if (change.from) out += name(change.from->str());
    sink(out + name(change.shown_path()));
  }
}

uint64_t count_listed(const ChangeSet& set, const RenderOptions& options) {
  return count(set, options).shown;
}

// What can be taken in at a glance.
constexpr uint64_t kSummaryLines = 20;

void render_summary(const ChangeSet& set, const RenderOptions& options,
                    const Sink& sink) {
  Counts counts = count(set, options);
  std::string line =
      counts.shown > 0 ? "held: " + totals(counts) : "no changes";
  uint64_t ignored = 0;
  for (const Group& group : set.groups) ignored += group.files;
  if (ignored > 0)
    line += ", " + plural(ignored, "ignored file", "ignored files");
  sink(folded(line, options));
  uint64_t named = 0, more = 0, dangers = 0;
  for (size_t i : display_order(set)) {
    const Change& change = set.changes[i];
    if (!is_listed(change, options.ignored, options.paths)) continue;
    if (!change.is_danger() && !change.is_deletion() && !change.drift) continue;
    if (named++ < kSummaryLines) {
      sink(folded("  " + one_line(change, options), options));
      continue;
    }
    ++more;
    dangers += change.is_danger();
  }
  if (more == 0) return;
  std::string rest = fmt::format("  and {} more", more);
  if (dangers > 0)
    rest += fmt::format(", {} of them {}", dangers,
                        dangers == 1 ? "a danger" : "dangers");
  sink(rest + ": `stoplog status`\n");
}

}  // namespace stoplog::diff
