// SPDX-License-Identifier: Apache-2.0
// The part of ReviewModel that bridges the time until every change was looked
// at: what is closed meanwhile, and how the reader is taken on from there.
#include <algorithm>

#include "base/escape.h"
#include "cli/review_model.h"
#include "cli/review_text.h"
#include "cli/words.h"
#include "diff/canonical.h"

namespace stoplog::cli {

void ReviewModel::set_progress(size_t done, size_t total) {
  looked_at_ = done;
  to_look_at_ = std::max(total, items_.size());
}

// A decision is bound to the hashes of what was shown, and a danger that is not
// known must not be approved unseen: what is open was looked at by itself, or
// waits. A commit needs the dangers of all.
bool ReviewModel::is_closed(Key key) {
  if (!input_.early || key >= 0x80) return false;
  auto is_one_of = [&](std::string_view keys) {
    return keys.find(static_cast<char>(key)) != keys.npos;
  };
  bool decides = is_one_of("yxad");
  if (decides && (!open_.loaded || known_.contains(open_.item))) return false;
  if (decides && open_.loaded->unchanged) {
    say("not changed after all: there is nothing to decide");
    return true;
  }
  if (!decides && !is_one_of("cw")) return false;
  say(fmt::format("not before every change was looked at: {} of {} so far",
                  looked_at_, to_look_at_));
  return true;
}

// The open file, read, as it was looked at by itself: that is the change now.
void ReviewModel::take_look() {
  if (!input_.early || !open_.loaded || known_.contains(open_.item)) return;
  FileItem& item = items_[open_.item];
  undecided_ -= item.summary.undecided;
  unseen_dangers_ -= change_of(open_.item).is_danger() && !item.seen;
  if (const auto& change = open_.loaded->change) {
    known_.emplace(open_.item, change);
    item.summary = input_.decisions.summary(*change);
    item.look = input_.looked.at(*change);
    item.seen = item.look == Look::kSame;
  } else if (open_.loaded->unchanged) {
    item.summary.undecided = false;
  }
  undecided_ += item.summary.undecided;
  approved_ += item.summary.approves;
  unseen_dangers_ += change_of(open_.item).is_danger() && !item.seen;
}

FileDecision ReviewModel::decided_at(size_t item) const {
  const auto& text = made_.at(item).loaded->text;
  return input_.decisions.get(change_of(item), text ? &*text : nullptr);
}

size_t ReviewModel::decided_early() const {
  return static_cast<size_t>(std::ranges::count_if(made_, [&](const auto& m) {
    return decided_at(m.first) != m.second.before;
  }));
}

// What was looked at there, and is here the very change that was shown. All
// changes together may tell more of one: where it was moved from, what it is a
// link of, what is dangerous about several.
std::unordered_map<size_t, size_t> ReviewModel::same_items(
    const ReviewModel& early) const {
  std::unordered_map<std::string_view, size_t> wanted;
  for (const auto& [item, change] : early.known_)
    wanted.emplace(change->path.str(), item);
  std::unordered_map<size_t, size_t> same;
  for (size_t i = 0; i < items_.size() && !wanted.empty(); i++) {
    const diff::Change& now = change_of(i);
    auto at = wanted.find(now.path.str());
    if (at == wanted.end()) continue;
    const diff::Change& then = early.change_of(at->second);
    bool more = std::ranges::any_of(now.risks, [&](const diff::Risk& risk) {
      return risk.level != diff::Level::kInfo &&
             std::ranges::find(then.risks, risk) == then.risks.end();
    });
    if (!more && diff::change_digest(now) == diff::change_digest(then))
      same.emplace(at->second, i);
  }
  return same;
}

// What was seen and decided there; returns how many decisions do not count.
size_t ReviewModel::carry(const ReviewModel& early) {
  std::unordered_map<size_t, size_t> same = same_items(early);
  for (const auto& [there, here] : same) {
    FileItem& item = items_[here];
    if (!early.items_[there].seen || item.seen) continue;
    unseen_dangers_ -= change_of(here).is_danger();
    item.seen = true;
    looked_.take(early.looked_, change_of(here));
    dirty_ = true;
  }
  size_t lost = 0;
  for (const auto& [there, made] : early.made_) {
    FileDecision decision = early.decided_at(there);
    if (decision == made.before) continue;
    if (same.contains(there))
      apply(same.at(there), made.loaded, decision);
    else
      lost++;
  }
  for (auto [from, to] :
       {std::pair(&early.undo_, &undo_), std::pair(&early.redo_, &redo_)})
    for (Deed deed : *from) {
      auto here = same.find(deed.item);
      if (here == same.end()) continue;
      deed.item = here->second;
      to->push_back(std::move(deed));
    }
  return lost;
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

size_t ReviewModel::go_on_from(const ReviewModel& early) {
  resize(early.geometry_.columns, early.geometry_.rows);
  mode_ = early.mode_;
  entry_ = early.entry_;
  reason_for_rest_ = early.reason_for_rest_;
  pattern_ = early.pattern_;
  popup_title_ = early.popup_title_;
  popup_lines_ = early.popup_lines_;
  popup_top_ = early.popup_top_;
  list_focus_ = early.list_focus_;
  context_ = early.context_;
  size_t lost = carry(early);
  if (empty() || early.empty()) return lost;
  const OpenFile& before = early.open_;
  const RelPath& path = early.change_of(before.item).path;
  auto item = item_at(path);
  if (!item) {
    // A reason that was being typed was of that file.
    if (mode_ == Mode::kReason) mode_ = Mode::kBrowse;
    move_file(static_cast<ptrdiff_t>(before.item));
    say("not changed after all: " + fit_path(path.str(), 40));
    return lost;
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
  if (lost > 0)
    say(fmt::format("{} to be decided again: more is known of {} now",
                    plural(lost, "file"), lost == 1 ? "it" : "them"));
  else if (unseen_dangers_ > size_t{is_here})
    say(fmt::format("every change was looked at: {}; ! goes there",
                    plural(unseen_dangers_, "danger")));
  return lost;
}

}  // namespace stoplog::cli
