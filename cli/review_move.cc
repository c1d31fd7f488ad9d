// SPDX-License-Identifier: Apache-2.0
// The cursor's part of ReviewModel: lines, hunks, files, what is undecided,
// dangerous or new.
#include <algorithm>

#include "base/escape.h"
#include "cli/review_model.h"
#include "cli/review_text.h"

namespace stoplog::cli {
namespace {

constexpr unsigned kMaxContext = 100;
constexpr size_t kShift = 20;

}  // namespace

void ReviewModel::browse(Key key) {
  if (key == 'q' || key == 'Q') {
    wish_ = Wish::kLeave;
    return;
  }
  if (key == '?') {
    show_help();
    return;
  }
  if (empty() || is_closed(key)) return;
  if (move(key)) return;
  switch (key) {
    case 'y':
      decide_hunk(Verdict::kApproved, "");
      break;
    case 'x':
      ask_reason(false);
      break;
    case 'a':
      decide_rest(Verdict::kApproved, "");
      break;
    case 'd':
      ask_reason(true);
      break;
    case 's':
      split();
      break;
    case 'u':
      undo();
      break;
    case 'U':
      redo();
      break;
    case 'c':
      ask_commit();
      break;
    case '/':
      entry_.clear();
      mode_ = Mode::kSearch;
      break;
    case 'm':
    case 'M':
      start_search(key == 'm');
      break;
    case 'i':
      show_about();
      break;
    case key::kEscape:
      list_focus_ = false;
      break;
    default:
      if (key < key::kUp) say("no such key; ? shows them");
  }
}

// True when the key was one of movement.
bool ReviewModel::move(Key key) {
  ptrdiff_t page = std::max(1, geometry_.text_rows - 1);
  switch (key) {
    case 'j':
    case key::kDown:
      list_focus_ ? move_file(1) : move_line(1);
      return true;
    case 'k':
    case key::kUp:
      list_focus_ ? move_file(-1) : move_line(-1);
      return true;
    case ' ':
    case key::kPageDown:
      list_focus_ ? move_file(page) : move_line(page);
      return true;
    case 'b':
    case key::kPageUp:
      list_focus_ ? move_file(-page) : move_line(-page);
      return true;
    case 'g':
    case key::kHome:
      list_focus_ ? move_file(-std::ssize(items_)) : go_to(0);
      return true;
    case 'G':
    case key::kEnd:
      list_focus_ ? move_file(std::ssize(items_)) : go_to(open_.rows.size());
      return true;
    case 'J':
    case 'K':
      move_hunk(key == 'J');
      return true;
    case '[':
    case ']':
      move_file(key == ']' ? 1 : -1);
      return true;
    case 'n':
    case 'N':
      next_undecided(key == 'n');
      return true;
    case '!':
      next_danger();
      return true;
    case 'w':
      next_new();
      return true;
    case '{':
    case '}':
      change_context(key == '}');
      return true;
    case 'l':
    case key::kRight:
      open_.shift += kShift;
      return true;
    case 'h':
    case key::kLeft:
      open_.shift -= std::min(open_.shift, kShift);
      return true;
    case key::kTab:
      list_focus_ = !list_focus_;
      return true;
    case key::kEnter:
      list_focus_ ? void(list_focus_ = false) : move_line(1);
      return true;
    default:
      return false;
  }
}

void ReviewModel::go_to(size_t row) {
  open_.cursor = open_.rows.empty() ? 0 : std::min(row, open_.rows.size() - 1);
  scroll_into_view();
}

// To the head of a hunk, with as much of it as fits below.
void ReviewModel::go_to_hunk(size_t row) {
  go_to(row);
  size_t end = row + 1;
  while (end < open_.rows.size() &&
         open_.rows[end].hunk == open_.rows[row].hunk)
    end++;
  auto height = static_cast<size_t>(geometry_.text_rows);
  if (end > open_.top + height)
    open_.top = end - row >= height ? row : end - height;
}

void ReviewModel::scroll_into_view() {
  auto height = static_cast<size_t>(geometry_.text_rows);
  if (open_.cursor < open_.top) open_.top = open_.cursor;
  if (open_.cursor >= open_.top + height) open_.top = open_.cursor - height + 1;
  size_t last = open_.rows.size() > height ? open_.rows.size() - height : 0;
  open_.top = std::min(open_.top, last);
}

void ReviewModel::move_line(ptrdiff_t by) {
  ptrdiff_t to = static_cast<ptrdiff_t>(open_.cursor) + by;
  go_to(static_cast<size_t>(std::max<ptrdiff_t>(to, 0)));
}

std::optional<size_t> ReviewModel::current_hunk() const {
  if (open_.cursor >= open_.rows.size()) return std::nullopt;
  uint32_t hunk = open_.rows[open_.cursor].hunk;
  if (hunk == Row::kNone) return std::nullopt;
  return hunk;
}

void ReviewModel::move_hunk(bool forward) {
  list_focus_ = false;
  auto is_head = [&](size_t i) {
    return open_.rows[i].kind == Row::Kind::kHunk;
  };
  std::optional<size_t> to;
  if (forward) {
    for (size_t i = open_.cursor + 1; i < open_.rows.size() && !to; i++)
      if (is_head(i)) to = i;
  } else {
    for (size_t i = open_.cursor; i > 0 && !to; i--)
      if (is_head(i - 1)) to = i - 1;
  }
  if (!to) {
    if (!forward) go_to(0);
    say(forward ? "the last hunk of this file; ] is the next file"
                : "the first hunk of this file; [ is the file before");
    return;
  }
  go_to_hunk(*to);
}

void ReviewModel::move_file(ptrdiff_t by) {
  ptrdiff_t last = std::ssize(items_) - 1;
  ptrdiff_t from = static_cast<ptrdiff_t>(open_.item);
  ptrdiff_t to = std::clamp<ptrdiff_t>(from + by, 0, last);
  if (to != from) {
    open_file(static_cast<size_t>(to));
  } else if (by != 0) {
    say(by > 0 ? "the last file" : "the first file");
  }
  auto height = static_cast<size_t>(geometry_.list_rows);
  if (open_.item < list_top_) list_top_ = open_.item;
  if (open_.item >= list_top_ + height) list_top_ = open_.item - height + 1;
  // A screen that grew has room for those above.
  list_top_ =
      std::min(list_top_, items_.size() > height ? items_.size() - height : 0);
}

std::optional<size_t> ReviewModel::find_item(
    const std::function<bool(size_t)>& good, bool forward) const {
  size_t count = items_.size();
  for (size_t step = 1; step <= count; step++) {
    size_t i = forward ? (open_.item + step) % count
                       : (open_.item + count - step) % count;
    if (good(i)) return i;
  }
  return std::nullopt;
}

bool ReviewModel::undecided_hunk(bool forward, bool from_here) {
  auto is_open = [&](size_t i) {
    return open_.rows[i].kind == Row::Kind::kHunk &&
           (hunk_verdict(open_.rows[i].hunk) == Verdict::kNone);
  };
  if (forward) {
    for (size_t i = open_.cursor + !from_here; i < open_.rows.size(); i++)
      if (is_open(i)) return go_to_hunk(i), true;
  } else {
    size_t from = open_.cursor;
    // The head of the hunk that the cursor is in is not "before" it.
    while (from > 0 && !from_here &&
           open_.rows[from].kind != Row::Kind::kHunk &&
           open_.rows[from].hunk != Row::kNone)
      from--;
    for (size_t i = from; i > 0; i--)
      if (is_open(i - 1)) return go_to_hunk(i - 1), true;
  }
  return false;
}

bool ReviewModel::undecided_here() const {
  const Row& row = open_.rows[open_.cursor];
  return row.kind == Row::Kind::kHunk &&
         hunk_verdict(row.hunk) == Verdict::kNone;
}

void ReviewModel::next_undecided(bool forward) {
  list_focus_ = false;
  if (undecided_hunk(forward, false)) return;
  auto item =
      find_item([&](size_t i) { return items_[i].summary.undecided; }, forward);
  if (!item) {
    say(approved_ > 0 ? "everything is decided: c commits what is approved"
                      : "everything is decided, nothing is approved");
    return;
  }
  const bool other = *item != open_.item;
  if (other)
    move_file(static_cast<ptrdiff_t>(*item) -
              static_cast<ptrdiff_t>(open_.item));
  if (open_.rows.empty() || open_.hunks.empty()) return;
  // Opened at its first undecided hunk, with its dangers above that.
  if (forward && other && open_.top == 0 && undecided_here()) return;
  go_to(forward ? 0 : open_.rows.size());
  undecided_hunk(forward, true);
}

// In this file the lines that are dangers first, as far as they are known and
// once what is said of them was shown.
void ReviewModel::next_danger() {
  const bool told = !empty() && (items_[open_.item].seen || shows_danger());
  for (size_t i = open_.cursor + 1; told && i < open_.rows.size(); i++) {
    if (open_.rows[i].level != diff::Level::kDanger) continue;
    list_focus_ = false;
    return go_to(i);
  }
  auto is_danger = [&](size_t i) { return change_of(i).is_danger(); };
  auto item = find_item(
      [&](size_t i) { return !items_[i].seen && is_danger(i); }, true);
  if (!item) item = find_item(is_danger, true);
  if (!item) {
    say("there is no danger in this change set");
    return;
  }
  move_file(static_cast<ptrdiff_t>(*item) - static_cast<ptrdiff_t>(open_.item));
  list_focus_ = false;
  go_to(0);
}

void ReviewModel::next_new() {
  if (input_.looked.size() == 0) {
    say("you look at this draft for the first time: all of it is new");
    return;
  }
  auto item =
      find_item([&](size_t i) { return items_[i].look != Look::kSame; }, true);
  if (!item) {
    say("nothing changed since you last looked");
    return;
  }
  move_file(static_cast<ptrdiff_t>(*item) - static_cast<ptrdiff_t>(open_.item));
  list_focus_ = false;
  for (size_t i = 0; i < open_.rows.size(); i++)
    if (open_.rows[i].kind == Row::Kind::kHunk &&
        open_.hunks[open_.rows[i].hunk].fresh)
      return go_to_hunk(i);
}

void ReviewModel::change_context(bool more) {
  if (more ? context_ >= kMaxContext : context_ == 0) {
    say(fmt::format("{} lines of context is the {}", context_,
                    more ? "most" : "least"));
    return;
  }
  context_ = more ? context_ + 1 : context_ - 1;
  std::optional<size_t> edit;
  if (auto hunk = current_hunk(); hunk && !open_.hunks[*hunk].mode)
    edit = open_.hunks[*hunk].hunk.first_edit;
  rebuild(edit);
  // Places in other files were counted with another context.
  for (auto& [item, place] : places_) place.cursor = place.top = 0;
  say(fmt::format("{} lines of context", context_));
}

std::string ReviewModel::command_text(uint32_t command) const {
  return input_.command_text ? input_.command_text(command) : std::string();
}

void ReviewModel::add_hunk_makers(
    const std::function<void(std::string_view)>& add) const {
  auto hunk = current_hunk();
  if (!hunk || change_of(open_.item).command == 0) return;
  if (awaits_makers()) {
    add("which command made this hunk is being looked for");
    return;
  }
  std::vector<uint32_t> makers = hunk_makers(*hunk);
  for (uint32_t command : makers)
    if (command != 0)
      add(fmt::format("this hunk was made by command {}: {}", command,
                      command_text(command)));
  if (std::ranges::find(makers, 0u) != makers.end())
    add(makers.size() == 1 ? "this hunk was made before the commands that "
                             "could be looked at"
                           : "and some of it before");
}

void ReviewModel::show_about() {
  const diff::Change& change = change_of(open_.item);
  std::vector<std::string> lines;
  auto width = static_cast<size_t>(std::clamp(geometry_.columns - 6, 10, 90));
  auto add = [&](std::string_view raw) {
    for (std::string& row : wrap(raw, width)) lines.push_back(std::move(row));
  };
  add(change.shown_path());
  add(fmt::format("{}, {}", name_of(change.kind),
                  items_[open_.item].summary.standing == Standing::kNone
                      ? "undecided"
                      : word_of(items_[open_.item].summary.standing)));
  if (change.command == 0)
    add("which command made it is not known");
  else
    add(fmt::format("last changed by command {}: {}", change.command,
                    command_text(change.command)));
  add_hunk_makers(add);
  for (const diff::Risk& risk : change.risks)
    add(fmt::format("{} {}: {}", name_of(risk.level), risk.code, risk.message));
  if (change.drift) add("drift: " + *change.drift);
  if (change.old_sha256) add("sha256 before: " + hex(*change.old_sha256));
  if (change.new_sha256) add("sha256 after:  " + hex(*change.new_sha256));
  popup("about this file", std::move(lines));
}

void ReviewModel::show_help() {
  std::vector<std::string> lines;
  auto width = static_cast<size_t>(std::max(geometry_.columns - 9, 10));
  for (const HelpLine& line : kHelpText) {
    std::string_view keys = line.keys;
    for (const std::string& row : wrap(line.text, width)) {
      lines.push_back(fmt::format("{:<4} {}", keys, row));
      keys = "";
    }
  }
  popup("keys", std::move(lines));
}

}  // namespace stoplog::cli
