// SPDX-License-Identifier: Apache-2.0
// The review as a state machine without a terminal: files, hunks, a cursor,
// decisions with undo, search; keys go in, rows come out.
//
//   ReviewModel model({.set = set, .decisions = store, .files = source, ...});
//   model.resize(80, 24);
//   model.press('y');                    // or key::kDown; see review_keys.h
//   draw(layout(model)); model.shown();  // what was drawn counts as seen
//   if (model.take_wish() == Wish::kCommit) ...
//
// Only the file under the cursor is loaded; the cost of a key does not depend
// on the number of files (searching and jumping walk the list, in steps). What
// it borrows must outlive it. One thread. Nothing here fails: what could not be
// done is said in status().
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/review_decisions.h"
#include "cli/review_file.h"
#include "cli/review_keys.h"
#include "cli/review_looked.h"
#include "cli/review_makers.h"
#include "diff/change_set.h"
#include "diff/hunks.h"

namespace stoplog::cli {

struct ReviewInput {
  const diff::ChangeSet& set;
  DecisionStore& decisions;
  FileSource& files;
  Looked looked;      // from the last time
  std::string title;  // the draft's name
  // What a command of the timeline was; one line, raw.
  std::function<std::string(uint32_t)> command_text;
  bool can_commit = true;
  // List the files that git ignores, too; as `status`, it only counts them.
  bool ignored = false;
  // Which command made which hunk; null: nobody looks for it.
  MakerSource* makers = nullptr;
  // The set is what can be told before contents are read (diff::Early), and
  // `files` look at what is opened: that can be decided, and counts as seen,
  // when it was looked at; commit is closed. Another model goes on from this
  // one. Nothing is written to `decisions`.
  bool early = false;
};

enum class Mode { kBrowse, kSearch, kReason, kConfirm, kPopup };
enum class Wish { kNone, kLeave, kCommit };

// One line of the list.
struct FileItem {
  uint32_t change = 0;  // of ChangeSet::changes
  Summary summary;
  Look look = Look::kNever;  // against the last time
  bool seen = false;         // shown, now or then, as it is
};

struct HunkView {
  diff::Hunk hunk;     // empty for the mode's
  bool mode = false;   // stands for the change of mode
  bool fresh = false;  // not there when last looked at
};

// One line of the hunk pane.
struct Row {
  enum class Kind : uint8_t {
    kNote,   // notes[index]: what kind of change, modes, targets
    kRisk,   // notes[index]
    kBlank,  // between parts
    kHunk,   // the head of hunks[hunk]
    kLine,   // hunks[hunk].hunk.lines[index]
    kNoEnd,  // "no newline at end of file" after such a line
  };
  static constexpr uint32_t kNone = UINT32_MAX;
  Kind kind = Kind::kNote;
  uint32_t hunk = kNone;
  uint32_t index = 0;
  // Of a line that a risk of the file is about.
  diff::Level level = diff::Level::kInfo;
};

struct Note {
  std::string text;  // safe, fits the pane
  diff::Level level = diff::Level::kInfo;
};

struct OpenFile {
  size_t item = 0;
  std::shared_ptr<const LoadedFile> loaded;  // null: being read
  std::shared_ptr<const FileMakers> makers;  // null: not known, or not yet
  FileDecision decision;
  std::set<size_t> split;  // edits that are shown as hunks of their own
  std::vector<Note> notes;
  std::vector<HunkView> hunks;
  std::vector<Row> rows;
  size_t cursor = 0;
  size_t top = 0;
  size_t shift = 0;  // columns scrolled to the right
};

// How the screen is divided; see review_layout.h for what goes where.
struct Geometry {
  int columns = 80, rows = 24;
  bool two_panes = true;
  int list_columns = 0, list_rows = 0;
  int text_columns = 0, text_rows = 0;
};
Geometry geometry_of(int columns, int rows);

class ReviewModel {
 public:
  explicit ReviewModel(ReviewInput input);

  // Takes the reader on from an early model of the same draft: what the cursor
  // was on stays where it is on the screen, and what is being typed goes on.
  // What was decided there counts here where the change is the very one that
  // was shown, with no more risk to it; how many are not is returned, and said.
  size_t go_on_from(const ReviewModel& early);
  // Of an early one: how many files were decided on.
  size_t decided_early() const;
  // Of an early one: how many changes were looked at.
  void set_progress(size_t done, size_t total);
  size_t looked_at() const { return looked_at_; }
  size_t to_look_at() const { return to_look_at_; }
  bool is_early() const { return input_.early; }
  bool is_looked_at(size_t item) const {
    return !input_.early || known_.contains(item);
  }

  void resize(int columns, int rows);
  void press(Key key);
  // The open file is being read, or a search goes on: call poll() soon.
  bool busy() const;
  void poll();
  // The makers of the open file's hunks are being looked for: call this when
  // they may have come.
  bool awaits_makers() const;
  void poll_makers();
  // What is on the screen now was drawn.
  void shown();
  Wish take_wish();
  void say(std::string status) { status_ = std::move(status); }
  void popup(std::string title, std::vector<std::string> lines);

  const std::vector<FileItem>& items() const { return items_; }
  const diff::Change& change_of(size_t item) const;
  bool empty() const { return items_.empty(); }
  size_t current() const { return open_.item; }
  const OpenFile& open() const { return open_; }
  size_t list_top() const { return list_top_; }
  bool list_focus() const { return list_focus_; }
  const Geometry& geometry() const { return geometry_; }
  Mode mode() const { return mode_; }
  const std::string& entry() const { return entry_; }    // being typed
  const std::string& status() const { return status_; }  // safe
  const std::string& popup_title() const { return popup_title_; }
  const std::vector<std::string>& popup_lines() const { return popup_lines_; }
  size_t popup_top() const { return popup_top_; }
  const std::string& title() const { return input_.title; }
  const std::string& pattern() const { return pattern_; }
  unsigned context() const { return context_; }
  const Looked& looked() const { return looked_; }

  Verdict hunk_verdict(size_t hunk) const;  // kNone also when mixed
  bool hunk_mixed(size_t hunk) const;
  // The commands that made it, as FileMakers has them; empty: not known.
  std::vector<uint32_t> hunk_makers(size_t hunk) const;
  std::optional<size_t> current_hunk() const;
  size_t undecided() const { return undecided_; }
  size_t approved() const { return approved_; }
  size_t unseen_dangers() const { return unseen_dangers_; }
  size_t not_listed() const { return not_listed_; }  // ignored by git
  std::optional<size_t> first_unseen_danger() const;
  // Changed by a decision since the last call; the caller saves.
  bool take_dirty() { return std::exchange(dirty_, false); }

 private:
  struct Place {
    size_t cursor, top;
    std::set<size_t> split;
  };
  struct Deed {
    size_t item;
    std::shared_ptr<const LoadedFile> loaded;
    FileDecision before, after;
    size_t cursor;
  };
  struct Search {
    size_t next = 0;  // files gone through
    bool forward = true;
  };
  // Of an early one: what a decision was made on, and what it was before.
  struct Made {
    std::shared_ptr<const LoadedFile> loaded;
    FileDecision before;
  };

  // review_model.cc
  void open_file(size_t item);
  void fill_open();
  void build_notes();
  void build_hunks();
  void build_rows();
  void add_hunk_rows(uint32_t hunk);
  void rebuild(std::optional<size_t> edit);
  void forget_place();
  bool shows_danger() const;
  diff::Level level_of_line(uint32_t line) const;  // of the new text

  // review_early.cc
  bool is_closed(Key key);
  void take_look();
  FileDecision decided_at(size_t item) const;
  std::unordered_map<size_t, size_t> same_items(const ReviewModel& early) const;
  size_t carry(const ReviewModel& early);
  std::optional<size_t> item_at(const RelPath& path) const;
  void stand_as(const OpenFile& before);

  // review_move.cc
  void browse(Key key);
  bool move(Key key);
  void move_line(ptrdiff_t by);
  void move_hunk(bool forward);
  void move_file(ptrdiff_t by);
  void go_to(size_t row);
  void go_to_hunk(size_t row);
  void scroll_into_view();
  void next_undecided(bool forward);
  bool undecided_hunk(bool forward, bool from_here);
  bool undecided_here() const;
  void next_danger();
  void next_new();
  void change_context(bool more);
  std::optional<size_t> find_item(const std::function<bool(size_t)>& good,
                                  bool forward) const;
  void show_about();
  void add_hunk_makers(const std::function<void(std::string_view)>& add) const;
  std::string command_text(uint32_t command) const;
  void show_help();

  // review_decide.cc
  bool may_decide();
  void decide_hunk(Verdict verdict, const std::string& reason);
  void decide_rest(Verdict verdict, const std::string& reason);
  void ask_reason(bool rest);
  void split();
  void perform(FileDecision after);
  void apply(size_t item, const std::shared_ptr<const LoadedFile>& loaded,
             const FileDecision& decision);
  void undo();
  void redo();
  void ask_commit();

  // review_search.cc
  void type(Key key);
  void finish_entry();
  void start_search(bool forward);
  bool search_rows(bool forward, size_t from);
  bool search_file(size_t item);
  void step_search();

  ReviewInput input_;
  Looked looked_;
  Geometry geometry_;
  std::vector<FileItem> items_;
  OpenFile open_;
  std::unordered_map<size_t, Place> places_;
  size_t list_top_ = 0;
  bool list_focus_ = false;
  unsigned context_ = 3;

  Mode mode_ = Mode::kBrowse;
  Wish wish_ = Wish::kNone;
  std::string entry_, status_, pattern_;
  bool reason_for_rest_ = false;
  std::string popup_title_;
  std::vector<std::string> popup_lines_;
  size_t popup_top_ = 0;
  std::optional<Search> search_;

  std::deque<Deed> undo_, redo_;
  size_t undecided_ = 0, approved_ = 0, unseen_dangers_ = 0;
  size_t not_listed_ = 0;
  // Of an early one: how far the work is, what was looked at by itself, and
  // what was decided; by item.
  size_t looked_at_ = 0, to_look_at_ = 0;
  std::unordered_map<size_t, std::shared_ptr<const diff::Change>> known_;
  std::map<size_t, Made> made_;
  bool dirty_ = false;
};

}  // namespace stoplog::cli
