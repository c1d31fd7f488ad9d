// SPDX-License-Identifier: Apache-2.0
// The part of ReviewModel that bridges the time until contents are known: what
// is closed meanwhile, and how the reader is taken on from there.
#include <algorithm>

#include "base/escape.h"
#include "cli/review_model.h"
#include "cli/review_text.h"
#include "cli/words.h"

namespace stoplog::cli {

void ReviewModel::set_progress(size_t done, size_t total) {
  looked_at_ = done;
  to_look_at_ = std::max(total, items_.size());
}

// Decisions are bound to hashes that are not taken yet, and a danger that is
// not known must not be approved unseen.
bool ReviewModel::is_closed(Key key) {
  if (!input_.early || key >= 0x80 ||
      std::string_view("yxaduUcw").find(static_cast<char>(key)) ==
          std::string_view::npos)
    return false;
  say(fmt::format("not before every change was looked at: {} of {} so far",
                  looked_at_, to_look_at_));
  return true;
}

std::optional<size_t> ReviewModel::item_at(const RelPath& path) const {
  for (size_t i = 0; i < items_.size(); i++)
    if (change_of(i).path == path) return i;
  return std::nullopt;
}

// The cursor on the same line of the same hunk, as far down the screen as it
// was. What is said above the hunks may have grown.
void ReviewModel::stand_as(const OpenFile& before) {
  open_.shift = before.shift;
  if (!open_.loaded || before.cursor >= before.rows.size()) return;
  const Row& was = before.rows[before.cursor];
  if (was.hunk == Row::kNone) return;
  for (size_t i = 0; i < open_.rows.size(); i++) {
    const Row& row = open_.rows[i];
    if (row.kind != was.kind || row.hunk != was.hunk || row.index != was.index)
      continue;
    size_t down = before.cursor - before.top;
    open_.top = i > down ? i - down : 0;
    go_to(i);
    return;
  }
}

void ReviewModel::go_on_from(const ReviewModel& early) {
  resize(early.geometry_.columns, early.geometry_.rows);
  mode_ = early.mode_;
  entry_ = early.entry_;
  pattern_ = early.pattern_;
  popup_title_ = early.popup_title_;
  popup_lines_ = early.popup_lines_;
  popup_top_ = early.popup_top_;
  list_focus_ = early.list_focus_;
  context_ = early.context_;
  if (empty() || early.empty()) return;
  const OpenFile& before = early.open_;
  const RelPath& path = early.change_of(before.item).path;
  auto item = item_at(path);
  if (!item) {
    move_file(static_cast<ptrdiff_t>(before.item));
    say("not changed after all: " + fit_path(path.str(), 40));
    return;
  }
  if (before.loaded) places_[*item] = {before.cursor, before.top, before.split};
  open_file(*item);
  stand_as(before);
  size_t down = before.item - early.list_top_;
  list_top_ = *item > down ? *item - down : 0;
  move_file(0);
  if (early.search_)
    search_ = Search{.next = 0, .forward = early.search_->forward};
  bool is_here = change_of(*item).is_danger() && !items_[*item].seen;
  if (unseen_dangers_ > size_t{is_here})
    say(fmt::format("every change was looked at: {}; ! goes there",
                    plural(unseen_dangers_, "danger")));
}

}  // namespace stoplog::cli
