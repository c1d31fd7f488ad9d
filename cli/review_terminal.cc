// SPDX-License-Identifier: Apache-2.0
#include "cli/review_terminal.h"

// Without it ncurses' macros (move, erase, timeout…) take our names.
#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <langinfo.h>
#include <ncurses.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include "base/escape.h"

// Of <term.h>, whose macros (columns, lines…) no other header survives.
extern "C" int setupterm(const char* term, int fd, int* problem);
extern "C" int tputs(const char* text, int lines, int (*put)(int));

namespace stoplog::cli {
namespace {

constexpr int kIn = STDIN_FILENO;
constexpr int kOut = STDOUT_FILENO;
constexpr int kEscapeDelayMs = 25;

// Whether the terminal takes UTF-8. A locale that is asked for but not
// installed (containers, ssh) still tells what the terminal speaks.
bool choose_locale() {
  auto is_utf8 = [] {
    return std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
  };
  if (std::setlocale(LC_CTYPE, "") != nullptr && is_utf8()) return true;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string_view text = value;
    bool asked = text.ends_with("UTF-8") || text.ends_with("utf8");
    return asked && std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr && is_utf8();
  }
  return false;
}

// tputs() takes a function without context.
std::string sequence;
int collect(int c) {
  sequence.push_back(static_cast<char>(c));
  return c;
}

// What leaves the full screen, for the moment of a crash.
std::string leave_sequence() {
  sequence.clear();
  for (const char* name : {"sgr0", "cnorm", "rmcup"}) {
    const char* text = ::tigetstr(name);
    if (text == nullptr || text == reinterpret_cast<char*>(-1)) continue;
    ::tputs(text, 1, collect);
  }
  return sequence;
}

bool can_move_cursor() {
  const char* text = ::tigetstr("cup");
  return text != nullptr && text != reinterpret_cast<char*>(-1);
}

short pair_of(Ink ink) { return static_cast<short>(static_cast<int>(ink) + 1); }

void init_colors() {
  ::start_color();
  ::use_default_colors();
  auto set = [](Ink ink, short color) { ::init_pair(pair_of(ink), color, -1); };
  set(Ink::kAdded, COLOR_GREEN);
  set(Ink::kRemoved, COLOR_RED);
  set(Ink::kHead, COLOR_CYAN);
  set(Ink::kDanger, COLOR_RED);
  set(Ink::kWarn, COLOR_YELLOW);
  set(Ink::kApproved, COLOR_GREEN);
  set(Ink::kRejected, COLOR_RED);
}

attr_t attributes_of(Ink ink) {
  switch (ink) {
    case Ink::kPlain:
    case Ink::kAdded:
    case Ink::kRemoved:
    case Ink::kApproved:
    case Ink::kRejected:
      return A_NORMAL;
    case Ink::kFaint:
      return A_DIM;
    case Ink::kStrong:
    case Ink::kHead:
    case Ink::kDanger:
    case Ink::kWarn:
      return A_BOLD;
  }
  return A_NORMAL;
}

bool has_color(Ink ink) {
  return ink != Ink::kPlain && ink != Ink::kFaint && ink != Ink::kStrong;
}

Key key_of(wint_t code) {
  switch (code) {
    case KEY_UP:
      return key::kUp;
    case KEY_DOWN:
      return key::kDown;
    case KEY_LEFT:
      return key::kLeft;
    case KEY_RIGHT:
      return key::kRight;
    case KEY_PPAGE:
      return key::kPageUp;
    case KEY_NPAGE:
      return key::kPageDown;
    case KEY_HOME:
      return key::kHome;
    case KEY_END:
      return key::kEnd;
    case KEY_BACKSPACE:
      return key::kBackspace;
    case KEY_ENTER:
      return key::kEnter;
    default:
      return key::kOther;
  }
}

// A byte, or a key that terminfo names.
Key read_code(int wait_ms) {
  ::wtimeout(stdscr, wait_ms);
  int code = ::wgetch(stdscr);
  // resizeterm() puts one before what is typed next, which may answer a
  // question: nobody pressed it.
  while (code == KEY_RESIZE) code = ::wgetch(stdscr);
  if (code == ERR) return KeyReader::kNone;
  return code < 0x100 ? static_cast<Key>(code)
                      : key_of(static_cast<wint_t>(code));
}

// One span, a column at a time: where this machine's idea of a character's
// width is not ours, the columns after it still are.
void paint_span(int row, const Span& span, bool ascii) {
  int column = span.column;
  std::string_view rest = span.text;
  while (!rest.empty()) {
    Decoded decoded = take_utf8(rest);
    int width = width_of(decoded.c);
    std::wstring text(1, static_cast<wchar_t>(decoded.c));
    bool strange = ::wcwidth(text[0]) > width || ::wcwidth(text[0]) < 1;
    if (strange || (ascii && decoded.c >= 0x80)) text[0] = L'?';
    while (!rest.empty()) {
      std::string_view next = rest;
      Decoded mark = take_utf8(next);
      if (width_of(mark.c) != 0) break;
      rest = next;
      if (!ascii && ::wcwidth(static_cast<wchar_t>(mark.c)) == 0)
        text.push_back(static_cast<wchar_t>(mark.c));
    }
    ::mvaddwstr(row, column, text.c_str());
    column += width;
  }
}

}  // namespace

Result<std::unique_ptr<Terminal>> Terminal::open(const Options& options) {
  if (!sys::is_terminal(kIn) || !sys::is_terminal(kOut))
    return std::unexpected(
        Error(Code::kUsage, "the review screen needs a terminal")
            .with_hint(
                "`stoplog approve -p` asks line by line, `stoplog approve "
                "PATH` not at all"));
  std::unique_ptr<Terminal> out(new Terminal);
  out->ascii_ = !choose_locale();
  int problem = 0;
  if (::setupterm(nullptr, kOut, &problem) != OK || !can_move_cursor()) {
    const char* term = std::getenv("TERM");
    return std::unexpected(
        Error(Code::kUsage,
              fmt::format("this terminal ({}) cannot show a full screen",
                          term != nullptr ? escape(term) : "TERM is not set"))
            .with_hint("`stoplog approve -p` asks line by line"));
  }
  out->before_ = sys::TerminalState::take(kIn);
  out->guard_.emplace(kOut, out->before_, leave_sequence());
  if (::newterm(nullptr, stdout, stdin) == nullptr)
    return fail(Code::kUsage, "cannot start the screen on this terminal");
  ::set_escdelay(kEscapeDelayMs);
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(stdscr, true);
  // It would be the beginning of a report alone, and the rest of it keys.
  ::keyok(KEY_MOUSE, false);
  out->keys_.emplace(read_code, !out->ascii_);
  ::curs_set(0);
  out->color_ = options.color && ::has_colors();
  if (out->color_) init_colors();
  out->fit_window();
  return out;
}

Terminal::~Terminal() {
  if (stdscr != nullptr && !::isendwin()) leave();
}

void Terminal::paint(const Frame& frame) {
  ::werase(stdscr);
  for (size_t row = 0; row < frame.rows.size(); row++) {
    for (const Span& span : frame.rows[row]) {
      attr_t attributes = attributes_of(span.ink);
      if (span.reverse) attributes |= A_REVERSE;
      if (span.mark) attributes |= A_BOLD | A_UNDERLINE;
      short pair = color_ && has_color(span.ink) ? pair_of(span.ink) : short{0};
      ::attr_set(attributes, pair, nullptr);
      paint_span(static_cast<int>(row), span, ascii_);
    }
  }
  ::attr_set(A_NORMAL, 0, nullptr);
  ::curs_set(frame.cursor ? 1 : 0);
  if (frame.cursor)
    ::move(frame.cursor->row, frame.cursor->column);
  else
    ::move(static_cast<int>(frame.rows.size()) - 1, 0);
  ::refresh();
}

Key Terminal::read_key() { return keys_->next(); }

void Terminal::fit_window() {
  auto size = sys::window_size(kOut);
  if (size) ::resizeterm(size->rows, size->columns);
  ::clearok(stdscr, true);
}

int Terminal::columns() const { return COLS; }
int Terminal::rows() const { return LINES; }

void Terminal::leave() {
  ::curs_set(1);
  // Where there is no second screen ours stays above what follows, which is to
  // begin on an empty line.
  ::move(LINES - 1, 0);
  ::clrtoeol();
  ::refresh();
  ::endwin();
  before_.put_back();
}

void Terminal::enter() {
  before_ = sys::TerminalState::take(kIn);
  ::refresh();
  fit_window();
}

void Terminal::suspend() {
  leave();
  sys::stop_self();
  enter();
}

}  // namespace stoplog::cli
