// SPDX-License-Identifier: Apache-2.0
#include "cli/review_model.h"

#include <algorithm>

#include "base/escape.h"
#include "base/units.h"
#include "cli/review_text.h"
#include "diff/paint.h"

namespace stoplog::cli {

Geometry geometry_of(int columns, int rows) {
  Geometry g;
  g.columns = std::max(columns, 1);
  g.rows = std::max(rows, 1);
  // Title above, status below; on a screen of three rows both make room.
  int body = g.rows >= 4 ? g.rows - 2 : g.rows;
  g.two_panes = g.columns >= 72 && g.rows >= 4;
  if (g.two_panes) {
    g.list_columns = std::clamp(g.columns * 2 / 5, 30, 64);
    g.text_columns = g.columns - g.list_columns - 1;
  } else {
    g.list_columns = g.text_columns = g.columns;
  }
  g.list_rows = body;
  g.text_rows = std::max(body - 1, 1);  // the file's name stands above
  return g;
}

ReviewModel::ReviewModel(ReviewInput input)
    : input_(std::move(input)), looked_(input_.looked) {
  if (!input_.early) looked_.keep_only(input_.set);
  geometry_ = geometry_of(80, 24);
  for (size_t index : diff::display_order(input_.set)) {
    const diff::Change& change = input_.set.changes[index];
    FileItem item;
    item.change = static_cast<uint32_t>(index);
    if (!input_.early) item.summary = input_.decisions.summary(change);
    if (!diff::is_listed(change, input_.ignored, {}) &&
        !item.summary.approves) {
      ++not_listed_;
      continue;
    }
    if (!input_.early) item.look = input_.looked.at(change);
    item.seen = item.look == Look::kSame;
    undecided_ += item.summary.undecided;
    approved_ += item.summary.approves;
    unseen_dangers_ += change.is_danger() && !item.seen;
    items_.push_back(item);
  }
  if (!items_.empty()) open_file(0);
}

const diff::Change& ReviewModel::change_of(size_t item) const {
  if (auto known = known_.find(item); known != known_.end())
    return *known->second;
  return input_.set.changes[items_[item].change];
}

void ReviewModel::resize(int columns, int rows) {
  geometry_ = geometry_of(columns, rows);
  if (empty()) return;
  // Notes are wrapped to the pane: the cursor stays on what it was on.
  auto hunk = current_hunk();
  size_t into = 0;
  if (hunk)
    while (into < open_.cursor &&
           open_.rows[open_.cursor - into].kind != Row::Kind::kHunk)
      into++;
  build_notes();
  build_rows();
  if (hunk)
    for (size_t i = 0; i < open_.rows.size(); i++)
      if (open_.rows[i].kind == Row::Kind::kHunk && open_.rows[i].hunk == *hunk)
        open_.cursor = i + into;
  go_to(open_.cursor);
  move_file(0);
}

void ReviewModel::forget_place() {
  if (empty()) return;
  places_[open_.item] = {open_.cursor, open_.top, open_.split};
}

void ReviewModel::open_file(size_t item) {
  if (item != open_.item && open_.loaded) forget_place();
  open_ = OpenFile{};
  open_.item = item;
  auto place = places_.find(item);
  if (place != places_.end()) open_.split = place->second.split;
  open_.loaded = input_.files.get(items_[item].change);
  fill_open();
}

void ReviewModel::fill_open() {
  take_look();
  const diff::Change& change = change_of(open_.item);
  const LoadedFile* loaded = open_.loaded.get();
  open_.decision = input_.decisions.get(
      change, loaded != nullptr && loaded->text ? &*loaded->text : nullptr);
  poll_makers();
  build_notes();
  build_hunks();
  build_rows();
  auto place = places_.find(open_.item);
  if (place != places_.end()) {
    open_.top = place->second.top;
    go_to(place->second.cursor);
    return;
  }
  // At the first hunk without a verdict, unless that would push what is said
  // about the file (its dangers) off the screen.
  size_t first = 0;
  for (size_t i = 0; i < open_.rows.size(); i++) {
    if (open_.rows[i].kind != Row::Kind::kHunk) continue;
    if (first == 0) first = i;
    if (hunk_verdict(open_.rows[i].hunk) != Verdict::kNone) continue;
    first = i;
    break;
  }
  bool near = first + 1 < static_cast<size_t>(geometry_.text_rows);
  go_to(near || !change.is_danger() ? first : 0);
}

void ReviewModel::build_notes() {
  open_.notes.clear();
  const diff::Change& change = change_of(open_.item);
  auto width = static_cast<size_t>(geometry_.text_columns);
  auto add = [&](std::string_view raw, diff::Level level) {
    for (std::string& row : wrap(raw, width))
      open_.notes.push_back({std::move(row), level});
  };
  if (display_width(escape(change.shown_path())) + 14 > width)
    add(change.shown_path(), diff::Level::kInfo);
  for (const diff::Risk& risk : change.risks) {
    const char* word = risk.level == diff::Level::kDanger ? "DANGER"
                       : risk.level == diff::Level::kWarn ? "warning"
                                                          : "note";
    add(fmt::format("{} {}: {}", word, risk.code, risk.message), risk.level);
  }
  if (items_[open_.item].summary.stale)
    add("what you approved here has changed since: decide again",
        diff::Level::kWarn);
  if (change.drift) add("drift: " + *change.drift, diff::Level::kWarn);
  std::string what(name_of(change.kind));
  if (change.lines_added.value_or(0) + change.lines_deleted.value_or(0) > 0)
    what += fmt::format(", +{} -{}", change.lines_added.value_or(0),
                        change.lines_deleted.value_or(0));
  what += fmt::format(", {}", print_size(change.size()));
  if (change.ignored) what += ", ignored by git";
  if (change.command != 0)
    what += fmt::format(", by command {}", change.command);
  if (items_[open_.item].look == Look::kChanged)
    what += ", changed since you last looked";
  add(what, diff::Level::kInfo);
  if (change.detaches_links)
    add("has other hard links, which keep the old content", diff::Level::kInfo);
  if (change.link_to)
    add("hard link of " + change.link_to->str(), diff::Level::kInfo);
  if (!open_.decision.reason.empty())
    add("rejected because: " + open_.decision.reason, diff::Level::kInfo);
  if (!open_.loaded) {
    add("reading the file ...", diff::Level::kInfo);
    return;
  }
  for (const std::string& note : open_.loaded->notes)
    add(note, diff::Level::kInfo);
}

void ReviewModel::build_hunks() {
  open_.hunks.clear();
  if (!open_.loaded || !open_.loaded->text) return;
  const diff::Change& change = change_of(open_.item);
  const diff::TextDiff& text = *open_.loaded->text;
  if (has_parts(change) && change.mode_changed)
    open_.hunks.push_back({.hunk = {}, .mode = true, .fresh = false});
  bool changed = items_[open_.item].look == Look::kChanged;
  auto add = [&](diff::Hunk&& hunk) {
    bool fresh = false;
    for (size_t e = 0; changed && !fresh && e < hunk.edit_count; e++)
      fresh = !input_.looked.has_edit(change, text, hunk.first_edit + e);
    open_.hunks.push_back(
        {.hunk = std::move(hunk), .mode = false, .fresh = fresh});
  };
  for (diff::Hunk& hunk : diff::make_hunks(text, context_)) {
    auto at = open_.split.lower_bound(hunk.first_edit);
    bool apart =
        at != open_.split.end() && *at < hunk.first_edit + hunk.edit_count;
    if (!apart) {
      add(std::move(hunk));
      continue;
    }
    for (diff::Hunk& piece : diff::split_hunk(text, hunk, context_))
      add(std::move(piece));
  }
}

void ReviewModel::build_rows() {
  open_.rows.clear();
  for (uint32_t i = 0; i < open_.notes.size(); i++)
    open_.rows.push_back({open_.notes[i].level == diff::Level::kInfo
                              ? Row::Kind::kNote
                              : Row::Kind::kRisk,
                          Row::kNone, i});
  for (uint32_t h = 0; h < open_.hunks.size(); h++) {
    open_.rows.push_back({Row::Kind::kBlank, Row::kNone, 0});
    add_hunk_rows(h);
  }
}

diff::Level ReviewModel::level_of_line(uint32_t line) const {
  for (const diff::Risk& risk : change_of(open_.item).risks)  // gravest first
    if (risk.line == line) return risk.level;
  return diff::Level::kInfo;
}

void ReviewModel::add_hunk_rows(uint32_t hunk) {
  open_.rows.push_back({Row::Kind::kHunk, hunk, 0});
  const std::vector<diff::Line>& lines = open_.hunks[hunk].hunk.lines;
  uint32_t line = open_.hunks[hunk].hunk.new_start;
  for (uint32_t i = 0; i < lines.size(); i++) {
    const bool stands = lines[i].origin != '-';
    open_.rows.push_back({Row::Kind::kLine, hunk, i,
                          stands ? level_of_line(line) : diff::Level::kInfo});
    line += stands;
    if (!lines[i].text.ends_with('\n'))
      open_.rows.push_back({Row::Kind::kNoEnd, hunk, i});
  }
}

// After a change of context or a split: the cursor goes to the hunk that has
// `edit`.
void ReviewModel::rebuild(std::optional<size_t> edit) {
  build_hunks();
  build_rows();
  size_t to = std::min(open_.cursor, open_.rows.size() - 1);
  for (size_t i = 0; edit && i < open_.rows.size(); i++) {
    if (open_.rows[i].kind != Row::Kind::kHunk) continue;
    const HunkView& view = open_.hunks[open_.rows[i].hunk];
    if (!view.mode && *edit >= view.hunk.first_edit &&
        *edit < view.hunk.first_edit + view.hunk.edit_count)
      to = i;
  }
  go_to(to);
}

bool ReviewModel::busy() const {
  return search_.has_value() || (!empty() && !open_.loaded);
}

void ReviewModel::poll() {
  if (empty()) return;
  if (!open_.loaded) {
    open_.loaded = input_.files.get(items_[open_.item].change);
    if (open_.loaded) fill_open();
  }
  if (search_) step_search();
}

bool ReviewModel::awaits_makers() const {
  return input_.makers != nullptr && !empty() && !open_.makers &&
         open_.loaded && open_.loaded->text &&
         change_of(open_.item).command != 0;
}

void ReviewModel::poll_makers() {
  if (awaits_makers())
    open_.makers = input_.makers->get(items_[open_.item].change);
}

std::vector<uint32_t> ReviewModel::hunk_makers(size_t hunk) const {
  const HunkView& view = open_.hunks[hunk];
  if (view.mode || !open_.makers || !open_.loaded->text ||
      open_.makers->edits.size() != open_.loaded->text->edits.size())
    return {};
  return open_.makers->of(view.hunk.first_edit, view.hunk.edit_count);
}

// A search may have led into the middle of the file, and a screen of one row
// has room for its name alone.
bool ReviewModel::shows_danger() const {
  if (geometry_.rows < 2) return false;
  size_t end = std::min(open_.rows.size(),
                        open_.top + static_cast<size_t>(geometry_.text_rows));
  for (size_t i = open_.top; i < end; i++)
    if (open_.rows[i].kind == Row::Kind::kRisk &&
        open_.notes[open_.rows[i].index].level == diff::Level::kDanger)
      return true;
  return false;
}

void ReviewModel::shown() {
  if (empty() || !open_.loaded || mode_ == Mode::kPopup) return;
  if (input_.early && !known_.contains(open_.item)) return;
  if (!geometry_.two_panes && list_focus_) return;
  FileItem& item = items_[open_.item];
  const diff::Change& change = change_of(open_.item);
  if (change.is_danger() && !shows_danger()) return;
  if (!item.seen && change.is_danger()) unseen_dangers_--;
  if (!item.seen || item.look != Look::kSame) {
    const auto& text = open_.loaded->text;
    if (looked_.at(change) != Look::kSame) {
      looked_.mark(change, text ? &*text : nullptr);
      dirty_ = true;
    }
  }
  item.seen = true;
}

Wish ReviewModel::take_wish() { return std::exchange(wish_, Wish::kNone); }

void ReviewModel::popup(std::string title, std::vector<std::string> lines) {
  popup_title_ = std::move(title);
  popup_lines_ = std::move(lines);
  popup_top_ = 0;
  mode_ = Mode::kPopup;
}

void ReviewModel::press(Key key) {
  // Any key ends a search that goes on, and is taken for itself.
  search_.reset();
  if (mode_ == Mode::kBrowse) {
    status_.clear();
    browse(key);
  } else {
    type(key);
  }
}

}  // namespace stoplog::cli
