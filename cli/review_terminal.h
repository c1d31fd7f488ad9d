// SPDX-License-Identifier: Apache-2.0
// The terminal in full-screen use, by ncurses and nothing of it outside of this
// file's pair: entered by open(), put back by the destructor, by
// std::terminate and by a crash.
//
//   Terminal terminal = TRY(Terminal::open({.color = true}));
//   terminal.paint(frame);
//   while (Key key = terminal.read_key()) ...      // 0: none waiting
//
// One at a time in a process; main thread. In a locale that is not UTF-8,
// characters beyond ASCII are painted as '?': ascii() tells the layout.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "base/sys_terminal.h"
#include "cli/key_reader.h"
#include "cli/review_layout.h"

namespace stoplog::cli {

class Terminal {
 public:
  struct Options {
    bool color = true;
  };
  static Result<std::unique_ptr<Terminal>> open(const Options& options);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void paint(const Frame& frame);
  // The next key that was pressed, 0 when there is none. What the terminal
  // sends without a key being pressed is kOther (key_reader.h).
  Key read_key();
  // Takes the window's size as it is now.
  void fit_window();
  int columns() const;
  int rows() const;
  bool ascii() const { return ascii_; }
  // Gives the terminal back for a while, and takes it again.
  void leave();
  void enter();
  // Leaves the screen, stops the process as Ctrl-Z does, and comes back.
  void suspend();

 private:
  Terminal() = default;
  bool color_ = false;
  bool ascii_ = false;
  std::optional<KeyReader> keys_;
  sys::TerminalState before_;
  std::optional<sys::CrashGuard> guard_;
};

}  // namespace stoplog::cli
