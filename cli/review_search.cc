// SPDX-License-Identifier: Apache-2.0
// The typing and searching part of ReviewModel. A search goes through the
// lines of the open file, then file by file through names and changed lines,
// some files a step, so that it can be ended by a key.
#include <algorithm>

#include "base/escape.h"
#include "cli/review_model.h"
#include "cli/review_text.h"

namespace stoplog::cli {
namespace {

constexpr size_t kFilesAStep = 32;
constexpr size_t kMaxEntry = 500;

void erase_last(std::string& text) {
  while (!text.empty()) {
    auto byte = static_cast<unsigned char>(text.back());
    text.pop_back();
    if ((byte & 0xc0) != 0x80) return;
  }
}

bool text_matches(const diff::TextDiff& text, std::string_view pattern) {
  for (const diff::Edit& edit : text.edits) {
    if (matches(text.old_lines.range(edit.old_line, edit.old_count), pattern))
      return true;
    if (matches(text.new_lines.range(edit.new_line, edit.new_count), pattern))
      return true;
  }
  return false;
}

}  // namespace

void ReviewModel::type(Key key) {
  if (mode_ == Mode::kPopup) {
    size_t most = popup_lines_.size();
    if (key == 'j' || key == key::kDown || key == ' ')
      popup_top_ = std::min(popup_top_ + 1, most > 0 ? most - 1 : 0);
    else if (key == 'k' || key == key::kUp)
      popup_top_ -= popup_top_ > 0;
    else
      mode_ = Mode::kBrowse;
    return;
  }
  if (mode_ == Mode::kConfirm) {
    mode_ = Mode::kBrowse;
    if (key == 'y' || key == 'Y')
      wish_ = Wish::kCommit;
    else
      say("not committed");
    return;
  }
  if (key == key::kEscape) {
    if (std::exchange(mode_, Mode::kBrowse) == Mode::kReason)
      say("not rejected");
  } else if (key == key::kEnter || key == '\r') {
    finish_entry();
  } else if (key == key::kBackspace || key == 127 || key == 8) {
    erase_last(entry_);
  } else if (key == 21) {  // Ctrl-U
    entry_.clear();
  } else if (key < key::kUp && key >= ' ' && entry_.size() < kMaxEntry) {
    append_utf8(entry_, static_cast<char32_t>(key));
  }
}

void ReviewModel::finish_entry() {
  Mode mode = std::exchange(mode_, Mode::kBrowse);
  if (mode == Mode::kReason) {
    std::string reason = std::exchange(entry_, "");
    if (reason_for_rest_)
      decide_rest(Verdict::kRejected, reason);
    else
      decide_hunk(Verdict::kRejected, reason);
    return;
  }
  if (!entry_.empty()) pattern_ = std::exchange(entry_, "");
  start_search(true);
}

void ReviewModel::start_search(bool forward) {
  if (pattern_.empty()) {
    say("nothing to search for: / asks");
    return;
  }
  list_focus_ = false;
  if (search_rows(forward, open_.cursor)) return;
  search_ = Search{.next = 0, .forward = forward};
  step_search();
}

// Rows after (before) `from` in the open file; moves there when found.
bool ReviewModel::search_rows(bool forward, size_t from) {
  auto text_of = [&](const Row& row) -> std::string_view {
    switch (row.kind) {
      case Row::Kind::kNote:
      case Row::Kind::kRisk:
        return open_.notes[row.index].text;
      case Row::Kind::kLine:
        return open_.hunks[row.hunk].hunk.lines[row.index].text;
      case Row::Kind::kHunk:
        return open_.hunks[row.hunk].hunk.header;
      default:
        return {};
    }
  };
  size_t count = open_.rows.size();
  for (size_t step = 1; step <= count; step++) {
    if (forward ? from + step >= count : step > from) return false;
    size_t i = forward ? from + step : from - step;
    if (!matches(text_of(open_.rows[i]), pattern_)) continue;
    go_to(i);
    return true;
  }
  return false;
}

// Whether this file is the next match; false also while it is being read.
bool ReviewModel::search_file(size_t item) {
  const diff::Change& change = change_of(item);
  if (matches(change.shown_path(), pattern_)) return true;
  if (change.git || change.binary || change.too_large) return false;
  auto loaded = input_.files.get(items_[item].change);
  if (!loaded) {
    search_->next--;  // again at the next step
    return false;
  }
  return loaded->text && text_matches(*loaded->text, pattern_);
}

void ReviewModel::step_search() {
  size_t count = items_.size();
  for (size_t n = 0; n < kFilesAStep; n++) {
    if (search_->next >= count) {
      search_.reset();
      say("no match: " + fit(escape(pattern_), 40));
      return;
    }
    size_t before = search_->next++;
    size_t step = search_->next;
    bool forward = search_->forward;
    size_t item = forward ? (open_.item + step) % count
                          : (open_.item + count - step % count) % count;
    if (!search_file(item)) {
      if (search_->next == before) break;  // being read
      continue;
    }
    bool wrapped = forward ? item <= open_.item : item >= open_.item;
    search_.reset();
    if (item != open_.item)
      move_file(static_cast<ptrdiff_t>(item) -
                static_cast<ptrdiff_t>(open_.item));
    go_to(forward ? 0 : open_.rows.size());
    search_rows(forward, open_.cursor);
    say(wrapped ? "search went round" : "");
    return;
  }
  say(fmt::format("searching: {} of {} files; any key ends it", search_->next,
                  count));
}

}  // namespace stoplog::cli
