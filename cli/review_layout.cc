// SPDX-License-Identifier: Apache-2.0
#include "cli/review_layout.h"

#include <algorithm>
#include <span>

#include "base/escape.h"
#include "cli/review_text.h"
#include "cli/review_words.h"

namespace stoplog::cli {
namespace {

struct Marks {
  std::string_view approved, rejected, partial, bar, more, arrow;
};
constexpr Marks kUnicode = {"✓", "✗", "±", "│", "…", "▸"};
constexpr Marks kAscii = {"y", "x", "~", "|", ">", ">"};

char letter_of(diff::Kind kind) {
  switch (kind) {
    case diff::Kind::kAdded:
      return 'A';
    case diff::Kind::kModified:
      return 'M';
    case diff::Kind::kDeleted:
      return 'D';
    case diff::Kind::kRenamed:
      return 'R';
    case diff::Kind::kMode:
      return 'm';
    case diff::Kind::kType:
      return 'T';
  }
  return '?';
}

// Four columns at most: 1234, 12k, 1M.
std::string short_count(uint64_t n) {
  if (n < 1000) return fmt::format("{}", n);
  if (n < 1'000'000) return fmt::format("{}k", n / 1000);
  return fmt::format("{}M", n / 1'000'000);
}

class Painter {
 public:
  Painter(const ReviewModel& model, const LayoutOptions& options)
      : model_(model),
        marks_(options.ascii ? kAscii : kUnicode),
        g_(model.geometry()) {
    frame_.columns = g_.columns;
    frame_.rows.resize(static_cast<size_t>(g_.rows));
  }

  Frame paint() {
    bool bars = g_.rows >= 4;
    int body = bars ? 1 : 0;
    if (bars) title();
    if (model_.empty()) {
      put(body, 0, "nothing is held: there is nothing to review", Ink::kPlain);
    } else if (g_.two_panes) {
      list(body, 0);
      for (int i = 0; i < g_.list_rows; i++)
        put(body + i, g_.list_columns, marks_.bar, Ink::kFaint);
      file(body, g_.list_columns + 1);
    } else if (model_.list_focus()) {
      list(body, 0);
    } else {
      file(body, 0);
    }
    if (bars || !model_.status().empty() || model_.mode() != Mode::kBrowse)
      status();
    if (model_.mode() == Mode::kPopup) popup();
    return std::move(frame_);
  }

 private:
  void put(int row, int column, std::string_view text, Ink ink,
           bool reverse = false) {
    if (row < 0 || row >= g_.rows || column >= g_.columns) return;
    // Our own words too are cut where the screen ends.
    auto room = static_cast<size_t>(g_.columns - column);
    std::string cut = slice(text, 0, room, 1).text;
    frame_.rows[static_cast<size_t>(row)].push_back(
        {column, std::move(cut), ink, reverse});
  }

  void title() {
    std::string left = fmt::format(" review {}", escape(model_.title()));
    std::string right =
        model_.is_early()
            ? fmt::format("looking at {} of {} changes", model_.looked_at(),
                          model_.to_look_at())
            : fmt::format("{} of {} undecided", model_.undecided(),
                          model_.items().size());
    if (model_.unseen_dangers() > 0 && !model_.is_early())
      right += fmt::format(", {} danger{} not seen", model_.unseen_dangers(),
                           model_.unseen_dangers() == 1 ? "" : "s");
    auto columns = static_cast<size_t>(g_.columns);
    if (model_.not_listed() > 0 && columns >= 60)
      right += fmt::format(", {} ignored", model_.not_listed());
    right += " ";
    size_t taken = display_width(right) + 1;
    left = pad(fit(left, columns > taken ? columns - taken : 0),
               columns > taken ? columns - taken : 0);
    put(0, 0, pad(left + " " + right, columns), Ink::kStrong, true);
  }

  void list(int row, int column) {
    size_t count = model_.items().size();
    for (int i = 0; i < g_.list_rows; i++) {
      size_t item = model_.list_top() + static_cast<size_t>(i);
      if (item >= count) return;
      list_line(row + i, column, item);
    }
  }

  // "▸ ✓!M src/main.c        +3 -1 #4"
  void list_line(int row, int column, size_t item) {
    const FileItem& entry = model_.items()[item];
    const diff::Change& change = model_.change_of(item);
    bool here = item == model_.current();
    bool lit = here && model_.list_focus();
    put(row, column, here ? marks_.arrow : " ", Ink::kStrong, lit);
    auto [mark, ink] = mark_of(entry.summary.standing);
    put(row, column + 1, mark, ink, lit);
    bool danger = change.is_danger();
    bool warn = change.level() == diff::Level::kWarn;
    Ink risk = danger ? Ink::kDanger : warn ? Ink::kWarn : Ink::kPlain;
    put(row, column + 2, danger ? "!" : warn ? "?" : " ", risk, lit);
    put(row, column + 3, entry.look == Look::kChanged ? "*" : " ", Ink::kStrong,
        lit);
    put(row, column + 4, std::string(1, letter_of(change.kind)),
        change.is_deletion() ? Ink::kRemoved : Ink::kPlain, lit);
    std::string counts = counts_of(change);
    int room = g_.list_columns - 6 - static_cast<int>(counts.size()) - 1;
    if (room < 8) {  // the name before the numbers
      counts.clear();
      room = std::max(g_.list_columns - 6, 1);
    }
    put(row, column + 5,
        " " + pad(fit_path(change.shown_path(), static_cast<size_t>(room)),
                  static_cast<size_t>(room)),
        danger ? Ink::kDanger
        : here ? Ink::kStrong
               : Ink::kPlain,
        lit);
    if (!counts.empty())
      put(row, column + 6 + room, " " + counts, Ink::kFaint, lit);
  }

  static std::string counts_of(const diff::Change& change) {
    std::string out;
    uint64_t plus = change.lines_added.value_or(0);
    uint64_t minus = change.lines_deleted.value_or(0);
    if (plus + minus > 0)
      out = fmt::format("+{} -{}", short_count(plus), short_count(minus));
    else if (change.binary)
      out = "bin";
    if (change.command != 0) out += fmt::format(" #{}", change.command);
    return out;
  }

  std::pair<std::string_view, Ink> mark_of(Standing standing) const {
    switch (standing) {
      case Standing::kNone:
        return {" ", Ink::kPlain};
      case Standing::kApproved:
        return {marks_.approved, Ink::kApproved};
      case Standing::kPartial:
        return {marks_.partial, Ink::kStrong};
      case Standing::kRejected:
        return {marks_.rejected, Ink::kRejected};
    }
    return {" ", Ink::kPlain};
  }

  void file(int row, int column) {
    const OpenFile& open = model_.open();
    const diff::Change& change = model_.change_of(open.item);
    std::string_view word = word_of(model_.items()[open.item].summary.standing);
    bool known = model_.is_looked_at(open.item);
    std::string right = fmt::format(" {}", !known         ? ""
                                           : word.empty() ? "undecided"
                                                          : word);
    auto columns = static_cast<size_t>(g_.text_columns);
    size_t room = columns > right.size() ? columns - right.size() : 0;
    put(row, column, pad(fit_path(change.shown_path(), room), room),
        change.is_danger() ? Ink::kDanger : Ink::kStrong);
    put(row, column + static_cast<int>(room), right,
        mark_of(model_.items()[open.item].summary.standing).second);
    for (int i = 0; i < g_.text_rows; i++) {
      size_t at = open.top + static_cast<size_t>(i);
      if (at >= open.rows.size()) break;
      file_line(row + 1 + i, column, at);
    }
  }

  void file_line(int row, int column, size_t at) {
    const OpenFile& open = model_.open();
    const Row& line = open.rows[at];
    bool lit = at == open.cursor && !model_.list_focus();
    auto columns = static_cast<size_t>(g_.text_columns);
    auto fill = [&](std::string text, Ink ink) {
      put(row, column, lit ? pad(std::move(text), columns) : text, ink, lit);
    };
    switch (line.kind) {
      case Row::Kind::kBlank:
        return fill("", Ink::kPlain);
      case Row::Kind::kNote:
        return fill(open.notes[line.index].text, Ink::kFaint);
      case Row::Kind::kRisk: {
        const Note& note = open.notes[line.index];
        return fill(note.text, note.level == diff::Level::kDanger ? Ink::kDanger
                                                                  : Ink::kWarn);
      }
      case Row::Kind::kNoEnd:
        return fill("\\ no newline at end of file", Ink::kFaint);
      case Row::Kind::kHunk:
        return hunk_head(row, column, line.hunk, lit);
      case Row::Kind::kLine:
        break;
    }
    const diff::Line& text = open.hunks[line.hunk].hunk.lines[line.index];
    Ink ink = line.level == diff::Level::kDanger ? Ink::kDanger
              : line.level == diff::Level::kWarn ? Ink::kWarn
              : text.origin == '+'               ? Ink::kAdded
              : text.origin == '-'               ? Ink::kRemoved
                                                 : Ink::kPlain;
    size_t room = columns > 2 ? columns - 2 : 1;
    Piece piece = slice(text.text, open.shift, room);
    std::string shown(1, text.origin);
    shown += piece.text;
    put(row, column, lit ? pad(std::move(shown), columns) : shown, ink, lit);
    mark_words(row, column + 1, line, room, ink, lit);
    if (piece.more)
      put(row, column + g_.text_columns - 1, marks_.more, Ink::kStrong, true);
  }

  // Over the line that begins at `column`, in which `room` columns are shown.
  void mark_words(int row, int column, const Row& line, size_t room, Ink ink,
                  bool lit) {
    const OpenFile& open = model_.open();
    const std::vector<diff::Line>& lines = open.hunks[line.hunk].hunk.lines;
    auto other = partner(lines, line.index);
    if (!other) return;
    std::string_view text = lines[line.index].text;
    auto part = changed_part(text, lines[*other].text);
    if (!part) return;
    constexpr size_t kAll = 1 << 16;  // columns of a line that is compared
    size_t begin = slice(text.substr(0, part->begin), 0, kAll).width;
    size_t end = slice(text.substr(0, part->end), 0, kAll).width;
    begin = std::max(begin, open.shift);
    end = std::min(end, open.shift + room);
    if (begin >= end) return;
    put(row, column + static_cast<int>(begin - open.shift),
        slice(text, begin, end - begin).text, ink, lit);
    frame_.rows[static_cast<size_t>(row)].back().mark = true;
  }

  // "@@ -1,3 +1,4 @@ main()           approved", or "mode 100644 -> 100755"
  void hunk_head(int row, int column, size_t index, bool lit) {
    const HunkView& view = model_.open().hunks[index];
    const diff::Change& change = model_.change_of(model_.current());
    std::string left;
    if (view.mode)
      left =
          change.before->mode != change.after->mode
              ? fmt::format("@@ mode {} -> {}", diff::mode_text(*change.before),
                            diff::mode_text(*change.after))
              : std::string("@@ owner or attributes");
    else
      left =
          fmt::format("@@ -{},{} +{},{} @@ {}", view.hunk.old_start,
                      view.hunk.old_lines, view.hunk.new_start,
                      view.hunk.new_lines, slice(view.hunk.header, 0, 80).text);
    Verdict verdict = model_.hunk_verdict(index);
    std::string right = verdict == Verdict::kApproved   ? " approved"
                        : verdict == Verdict::kRejected ? " rejected"
                        : model_.hunk_mixed(index)      ? " mixed"
                                                        : "";
    if (view.fresh) right = " new" + right;
    if (std::string by = makers_text(model_.hunk_makers(index)); !by.empty())
      right = " " + by + right;
    auto columns = static_cast<size_t>(g_.text_columns);
    size_t room = columns > right.size() ? columns - right.size() : 0;
    put(row, column, pad(fit(left, room), room), Ink::kHead, lit);
    if (!right.empty())
      put(row, column + static_cast<int>(room), right,
          verdict == Verdict::kApproved   ? Ink::kApproved
          : verdict == Verdict::kRejected ? Ink::kRejected
                                          : Ink::kStrong,
          lit);
  }

  void status() {
    int row = g_.rows - 1;
    auto columns = static_cast<size_t>(g_.columns);
    put(row, 0, std::string(columns, ' '), Ink::kPlain);
    switch (model_.mode()) {
      case Mode::kSearch:
        return entry("/");
      case Mode::kReason:
        return entry(columns >= 60 ? "reason (Enter: reject, Esc: not): "
                                   : "reason: ");
      case Mode::kConfirm:
        return question(fmt::format("commit {} file{}{}", model_.approved(),
                                    model_.approved() == 1 ? "" : "s",
                                    held_back()));
      case Mode::kBrowse:
      case Mode::kPopup:
        break;
    }
    if (!model_.status().empty())
      return put(row, 0, fit(model_.status(), columns), Ink::kStrong);
    static constexpr std::string_view kHints[] = {
        "y approve  x reject  a/d rest of file  s split  n undecided  ] file  "
        "! danger  / search  u undo  c commit  q leave  ? help",
        "y approve  x reject  a/d rest of file  n undecided  ] file  "
        "u undo  c commit  q leave  ? help",
        "y approve  x reject  a/d rest  n next  ] file  c commit  q leave  "
        "? help",
        "y approve  x reject  n next  c commit  q leave  ? help",
        "y x a d n ] c q  ? help",
        "? help"};
    static constexpr std::string_view kEarly[] = {
        "y approve  x reject  a/d rest of file  ] file  u undo  q leave  "
        "? help  commit opens when all was looked at",
        "y approve  x reject  ] file  q leave  ? help  "
        "commit when all was looked at",
        "y x a d ] q  ? help", "? help"};
    for (std::string_view hint :
         model_.is_early() ? std::span<const std::string_view>(kEarly)
                           : std::span<const std::string_view>(kHints))
      if (hint.size() <= columns) return put(row, 0, hint, Ink::kFaint);
  }

  // The keys that answer are seen, however narrow the window.
  void question(const std::string& what) {
    constexpr std::string_view kKeys = "? y/n ";
    auto columns = static_cast<size_t>(g_.columns);
    size_t room = columns > kKeys.size() ? columns - kKeys.size() : 0;
    put(g_.rows - 1, 0, fit(fit(what, room) + std::string(kKeys), columns),
        Ink::kStrong);
  }

  std::string held_back() const {
    size_t held = model_.items().size() - model_.approved();
    return held == 0 ? "" : fmt::format(", hold back {}", held);
  }

  void entry(std::string_view prompt) {
    int row = g_.rows - 1;
    put(row, 0, prompt, Ink::kStrong);
    int begin = static_cast<int>(prompt.size());
    auto room = static_cast<size_t>(std::max(g_.columns - begin - 1, 1));
    std::string text = fit(escape(model_.entry()), room, Cut::kStart);
    put(row, begin, text, Ink::kPlain);
    frame_.cursor = {begin + static_cast<int>(display_width(text)), row};
  }

  void popup() {
    const std::vector<std::string>& lines = model_.popup_lines();
    size_t widest = display_width(model_.popup_title());
    for (const std::string& line : lines)
      widest = std::max(widest, display_width(line));
    int width = std::min(static_cast<int>(widest) + 4, g_.columns);
    int height =
        std::min(static_cast<int>(lines.size()) + 2, std::max(g_.rows - 1, 1));
    int left = (g_.columns - width) / 2;
    int top = std::max((g_.rows - 1 - height) / 2, 0);
    auto across = static_cast<size_t>(width);
    size_t visible = static_cast<size_t>(std::max(height - 2, 0));
    size_t first =
        std::min(model_.popup_top(),
                 lines.size() > visible ? lines.size() - visible : 0);
    put(top, left, pad(fit("  " + model_.popup_title(), across), across),
        Ink::kStrong, true);
    for (size_t i = 0; i < visible; i++) {
      std::string text = first + i < lines.size() ? lines[first + i] : "";
      put(top + 1 + static_cast<int>(i), left,
          pad(fit("  " + text, across), across), Ink::kPlain, true);
    }
    bool more = first + visible < lines.size();
    if (height >= 2)
      put(top + height - 1, left,
          pad(fit(more ? "  j: more, any other key: back" : "  any key: back",
                  across),
              across),
          Ink::kFaint, true);
  }

  const ReviewModel& model_;
  const Marks& marks_;
  const Geometry& g_;
  Frame frame_;
};

}  // namespace

Frame layout(const ReviewModel& model, const LayoutOptions& options) {
  return Painter(model, options).paint();
}

std::string to_text(const Frame& frame) {
  std::string out;
  for (const std::vector<Span>& spans : frame.rows) {
    // One cell a column; the second of a wide character is empty.
    std::vector<std::string> cells(static_cast<size_t>(frame.columns), " ");
    for (const Span& span : spans) {
      auto at = static_cast<size_t>(span.column);
      std::string_view rest = span.text;
      size_t last = at;
      while (!rest.empty()) {
        std::string_view before = rest;
        Decoded decoded = take_utf8(rest);
        auto width = static_cast<size_t>(width_of(decoded.c));
        std::string_view bytes = before.substr(0, before.size() - rest.size());
        if (width == 0) {
          cells[last] += bytes;
          continue;
        }
        if (at + width > cells.size()) break;
        cells[at] = bytes;
        for (size_t i = 1; i < width; i++) cells[at + i].clear();
        last = at;
        at += width;
      }
    }
    std::string line;
    for (const std::string& cell : cells) line += cell;
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

}  // namespace stoplog::cli
