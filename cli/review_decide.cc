// SPDX-License-Identifier: Apache-2.0
// The decisions' part of ReviewModel: verdicts, split, undo, commit.
#include <algorithm>

#include "base/escape.h"
#include "cli/review_model.h"
#include "cli/review_text.h"

namespace stoplog::cli {
namespace {

constexpr size_t kMaxUndo = 1000;
constexpr size_t kMaxReason = 500;

// The decision with a verdict for each edit, where the change can have parts.
FileDecision in_parts(const diff::Change& change, const LoadedFile& loaded,
                      FileDecision decision) {
  if (!decision.parts.empty() || !has_parts(change) || !loaded.text)
    return decision;
  decision.parts.assign(loaded.text->edits.size(), decision.whole);
  decision.mode = decision.whole;
  return decision;
}

void add_reason(FileDecision& decision, const std::string& reason) {
  if (reason.empty() || decision.reason.find(reason) != std::string::npos)
    return;
  if (!decision.reason.empty()) decision.reason += "; ";
  decision.reason += reason;
  if (decision.reason.size() > kMaxReason) decision.reason.resize(kMaxReason);
}

}  // namespace

Verdict ReviewModel::hunk_verdict(size_t hunk) const {
  const FileDecision& d = open_.decision;
  if (d.parts.empty()) return d.whole;
  const HunkView& view = open_.hunks[hunk];
  if (view.mode) return d.mode;
  if (hunk_mixed(hunk)) return Verdict::kNone;
  return d.parts[view.hunk.first_edit];
}

bool ReviewModel::hunk_mixed(size_t hunk) const {
  const FileDecision& d = open_.decision;
  const HunkView& view = open_.hunks[hunk];
  if (d.parts.empty() || view.mode) return false;
  for (size_t e = 1; e < view.hunk.edit_count; e++)
    if (d.parts[view.hunk.first_edit + e] != d.parts[view.hunk.first_edit])
      return true;
  return false;
}

bool ReviewModel::may_decide() {
  if (open_.loaded) return true;
  say("the file is still being read");
  return false;
}

void ReviewModel::decide_hunk(Verdict verdict, const std::string& reason) {
  if (!may_decide()) return;
  const diff::Change& change = change_of(open_.item);
  FileDecision after = in_parts(change, *open_.loaded, open_.decision);
  if (after.parts.empty()) {
    after.whole = verdict;
  } else {
    auto hunk = current_hunk();
    if (!hunk) {
      say("no hunk here: J goes to the next one");
      return;
    }
    const HunkView& view = open_.hunks[*hunk];
    if (view.mode) after.mode = verdict;
    for (size_t e = 0; e < view.hunk.edit_count; e++)
      after.parts[view.hunk.first_edit + e] = verdict;
  }
  if (verdict == Verdict::kRejected) add_reason(after, reason);
  perform(normalized(change, std::move(after)));
  next_undecided(true);
}

void ReviewModel::decide_rest(Verdict verdict, const std::string& reason) {
  if (!may_decide()) return;
  if (!items_[open_.item].summary.undecided) {
    say("nothing is undecided in this file; u undoes a decision");
    return;
  }
  const diff::Change& change = change_of(open_.item);
  FileDecision after = in_parts(change, *open_.loaded, open_.decision);
  auto fill = [&](Verdict& v) {
    if (v == Verdict::kNone) v = verdict;
  };
  if (after.parts.empty()) fill(after.whole);
  for (Verdict& part : after.parts) fill(part);
  if (change.mode_changed && !after.parts.empty()) fill(after.mode);
  if (verdict == Verdict::kRejected) add_reason(after, reason);
  perform(normalized(change, std::move(after)));
  next_undecided(true);
}

void ReviewModel::ask_reason(bool rest) {
  if (!may_decide()) return;
  bool whole = !has_parts(change_of(open_.item)) || !open_.loaded->text;
  if (!rest && !whole && !current_hunk()) {
    say("no hunk here: J goes to the next one");
    return;
  }
  reason_for_rest_ = rest;
  entry_.clear();
  mode_ = Mode::kReason;
}

void ReviewModel::split() {
  auto hunk = current_hunk();
  if (!hunk || open_.hunks[*hunk].hunk.edit_count < 2 ||
      !has_parts(change_of(open_.item))) {
    say("this cannot be split further");
    return;
  }
  size_t first = open_.hunks[*hunk].hunk.first_edit;
  size_t count = open_.hunks[*hunk].hunk.edit_count;
  open_.split.insert(first);
  rebuild(first);
  say(fmt::format("split into {} hunks", count));
}

// A new decision on the open file, which can be undone.
void ReviewModel::perform(FileDecision after) {
  if (after == open_.decision) return;
  if (input_.early)
    made_.try_emplace(open_.item, Made{open_.loaded, open_.decision});
  undo_.push_back({.item = open_.item,
                   .loaded = open_.loaded,
                   .before = open_.decision,
                   .after = after,
                   .cursor = open_.cursor});
  if (undo_.size() > kMaxUndo) undo_.pop_front();
  redo_.clear();
  apply(open_.item, open_.loaded, after);
}

void ReviewModel::apply(size_t item,
                        const std::shared_ptr<const LoadedFile>& loaded,
                        const FileDecision& decision) {
  const diff::Change& change = change_of(item);
  input_.decisions.put(change, loaded->text ? &*loaded->text : nullptr,
                       decision);
  FileItem& entry = items_[item];
  undecided_ -= entry.summary.undecided;
  approved_ -= entry.summary.approves;
  entry.summary = summarize(change, decision);
  undecided_ += entry.summary.undecided;
  approved_ += entry.summary.approves;
  dirty_ = true;
  if (item != open_.item) return;
  bool reason_changed = open_.decision.reason != decision.reason;
  open_.decision = decision;
  if (!reason_changed) return;
  // The reason is a note, so that rows move: the cursor stays on its line.
  size_t before = open_.notes.size();
  build_notes();
  build_rows();
  go_to(open_.cursor + open_.notes.size() - before);
}

void ReviewModel::undo() {
  if (undo_.empty()) {
    say("nothing to undo");
    return;
  }
  Deed deed = std::move(undo_.back());
  undo_.pop_back();
  move_file(static_cast<ptrdiff_t>(deed.item) -
            static_cast<ptrdiff_t>(open_.item));
  apply(deed.item, deed.loaded, deed.before);
  go_to(deed.cursor);
  say("undone: " + fit_path(change_of(deed.item).shown_path(), 40));
  redo_.push_back(std::move(deed));
}

void ReviewModel::redo() {
  if (redo_.empty()) {
    say("nothing to redo");
    return;
  }
  Deed deed = std::move(redo_.back());
  redo_.pop_back();
  move_file(static_cast<ptrdiff_t>(deed.item) -
            static_cast<ptrdiff_t>(open_.item));
  apply(deed.item, deed.loaded, deed.after);
  go_to(deed.cursor);
  say("done again: " + fit_path(change_of(deed.item).shown_path(), 40));
  undo_.push_back(std::move(deed));
}

std::optional<size_t> ReviewModel::first_unseen_danger() const {
  for (size_t i = 0; i < items_.size(); i++)
    if (!items_[i].seen && change_of(i).is_danger()) return i;
  return std::nullopt;
}

void ReviewModel::ask_commit() {
  if (!input_.can_commit) {
    say("this review cannot commit");
    return;
  }
  if (auto danger = first_unseen_danger()) {
    std::string more = unseen_dangers_ > 1
                           ? fmt::format(" and {} more", unseen_dangers_ - 1)
                           : std::string();
    say(fmt::format("commit is closed: danger not seen: {}{}; ! goes there",
                    fit_path(change_of(*danger).shown_path(), 30), more));
    return;
  }
  if (approved_ == 0) {
    say("nothing is approved yet: y approves a hunk, a the rest of a file");
    return;
  }
  mode_ = Mode::kConfirm;
}

}  // namespace stoplog::cli
