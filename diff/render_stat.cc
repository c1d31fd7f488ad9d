// SPDX-License-Identifier: Apache-2.0
// `diff --stat` and `diff --name-status`, in git's formats.
#include <algorithm>

#include "base/escape.h"
#include "diff/file_patch.h"
#include "diff/paint.h"
#include "diff/render.h"
#include "diff/select.h"

namespace stoplog::diff {
namespace {

bool is_wanted(const Change& change, const RenderOptions& options) {
  return (options.ignored || !change.ignored) && !is_inside_git(change) &&
         is_selected(change, options.paths);
}

bool is_directory(const std::optional<fs::NodeState>& state) {
  return state && state->type == fs::Type::kDir;
}

std::string stat_name(const Change& change, const RenderOptions& options) {
  std::string name = shown_name(change.path.str(), options);
  if (!change.from) return name;
  std::string slash = change.is_moved_directory() ? "/" : "";
  return fmt::format("{}{} => {}{}", shown_name(change.from->str(), options),
                     slash, name, slash);
}

struct StatRow {
  std::string name;
  std::string amount;
  uint64_t added = 0, deleted = 0;
};

// A link is a text of one line for git: its target.
bool is_link(const std::optional<fs::NodeState>& state) {
  return state && state->type == fs::Type::kSymlink;
}

StatRow stat_row(const Change& change, const RenderOptions& options) {
  StatRow row{.name = stat_name(change, options),
              .amount = {},
              .added = change.lines_added.value_or(0),
              .deleted = change.lines_deleted.value_or(0)};
  bool link = (is_link(change.before) || !change.before) &&
              (is_link(change.after) || !change.after);
  if (link && change.content_changed) {
    row.added = change.after.has_value();
    row.deleted = change.before.has_value();
  }
  if (link || change.lines_added || change.lines_deleted) {
    row.amount = fmt::format("{}", row.added + row.deleted);
  } else if (change.content_changed &&
             !is_directory(change.after ? change.after : change.before)) {
    row.amount = fmt::format("Bin {} -> {} bytes",
                             change.before ? change.before->size : 0,
                             change.after ? change.after->size : 0);
  } else {
    row.amount = "0";
  }
  return row;
}

std::string bars(const StatRow& row, uint64_t most, size_t room, bool color) {
  uint64_t total = row.added + row.deleted;
  if (total == 0 || room == 0) return "";
  // A change is never without a bar, as git has it.
  auto scaled = [&](uint64_t n) {
    if (n == 0 || most <= room) return n;
    return 1 + n * (room - 1) / most;
  };
  return paint(color, Ink::kGreen, std::string(scaled(row.added), '+')) +
         paint(color, Ink::kRed, std::string(scaled(row.deleted), '-'));
}

}  // namespace

void render_stat(const ChangeSet& set, const RenderOptions& options,
                 const Sink& sink) {
  std::vector<StatRow> rows;
  size_t name_width = 0, amount_width = 1;
  uint64_t most = 0, added = 0, deleted = 0;
  for (size_t i : display_order(set)) {
    const Change& change = set.changes[i];
    if (!is_wanted(change, options)) continue;
    rows.push_back(stat_row(change, options));
    const StatRow& row = rows.back();
    name_width = std::max(name_width, display_width(row.name));
    if (!row.amount.starts_with("Bin"))
      amount_width = std::max(amount_width, row.amount.size());
    most = std::max(most, row.added + row.deleted);
    added += row.added;
    deleted += row.deleted;
  }
  if (rows.empty()) return;
  // Names are never cut; beyond the screen they take a line of their own.
  name_width = std::min<size_t>(name_width, options.width * 2 / 3);
  size_t used = name_width + amount_width + 6;
  size_t room = options.width > used + 10 ? options.width - used : 10;
  for (const StatRow& row : rows) {
    size_t width = display_width(row.name);
    std::string pad(width < name_width ? name_width - width : 0, ' ');
    std::string bar = bars(row, most, room, options.color);
    sink(fmt::format(" {}{} | {:>{}}{}{}\n", row.name, pad, row.amount,
                     amount_width, bar.empty() ? "" : " ", bar));
  }
  std::string total =
      " " + plural(rows.size(), "file changed", "files changed");
  if (added > 0) total += ", " + plural(added, "insertion(+)", "insertions(+)");
  if (deleted > 0)
    total += ", " + plural(deleted, "deletion(-)", "deletions(-)");
  sink(total + "\n");
}

namespace {

class NameStatus {
 public:
  NameStatus(const RenderOptions& options, bool nul, const Sink& sink)
      : options_(options), nul_(nul), sink_(sink) {}

  Status write(const Change& change) const {
    bool old_dir = is_directory(change.before);
    bool new_dir = is_directory(change.after);
    // Git knows no directories: one that became a file is that file added.
    if ((!change.before || old_dir) && (!change.after || new_dir)) return {};
    if (change.kind == Kind::kType && (old_dir || new_dir)) {
      row(old_dir ? "A" : "D", nullptr, change.path);
    } else if (change.kind == Kind::kRenamed) {
      row(fmt::format("R{:03}", TRY(similarity_of(change))), &*change.from,
          change.path);
    } else if (change.kind == Kind::kMode &&
               git_mode(change.before) == git_mode(change.after)) {
      return {};
    } else {
      row(std::string(1, letter_of(change)), nullptr, change.path);
    }
    return {};
  }

  void row(std::string_view status, const RelPath* from,
           const RelPath& path) const {
    char end = nul_ ? '\0' : '\t';
    std::string out(status);
    if (from != nullptr) out += end + name(*from);
    out += end + name(path) + (nul_ ? '\0' : '\n');
    sink_(out);
  }

 private:
  std::string name(const RelPath& path) const {
    return nul_ && !options_.terminal ? path.str()
                                      : shown_name(path.str(), options_);
  }
  const RenderOptions& options_;
  bool nul_;
  const Sink& sink_;
};

}  // namespace

Status render_name_status(const fs::View& view, const ChangeSet& set,
                          const RenderOptions& options, bool nul,
                          const Sink& sink) {
  NameStatus names(options, nul, sink);
  for (const Change& change : set.changes) {
    if (!is_wanted(change, options)) continue;
    if (!change.is_moved_directory()) {
      TRY(names.write(change));
      continue;
    }
    TRY(for_each_moved(view, set, change, [&](const Moved& moved) -> Status {
      names.row("R100", &moved.from, moved.path);
      return {};
    }));
  }
  return {};
}

}  // namespace stoplog::diff
