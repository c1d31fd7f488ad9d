// SPDX-License-Identifier: Apache-2.0
// The caller's own terminal while a command uses it through a pty.
//
//   std::string shape = TRY(terminal_shape(0));   // modes and size, as bytes
//   TRY(shape_pty(master, shape));        // before the command starts: what it
//                                         // sets itself must not be undone
//   Terminal terminal = TRY(Terminal::take(0, master));   // raw from here on,
//                                                 // unless in the background
//   terminal.resize();            // at SIGWINCH
//   terminal.release(); raise(SIGTSTP); terminal.retake();
//
//   terminal.await_answers(1);    // at the end of a command that asked it
//
// The modes are put back by release(), by the destructor, and, when this
// process is killed with -9, by a small guardian process that waits for our
// end. One at a time in a process.
#pragma once

#include <termios.h>

#include <string>
#include <string_view>

#include "base/child.h"
#include "base/fd.h"
#include "base/result.h"

namespace stoplog::jail {

Result<std::string> terminal_shape(int own);
// kInvalid when the bytes are not a shape.
Status shape_pty(int master, std::string_view shape);

class Terminal {
 public:
  // `own` is the caller's terminal, `master` the pty's; both borrowed. kKept: a
  // program behind a pipe writes there, too, and its lines are to begin at the
  // margin; those of the pty, which have their carriage returns, do so anyway.
  enum class Output { kRaw, kKept };
  static Result<Terminal> take(int own, int master,
                               Output output = Output::kRaw);
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&&) = delete;
  ~Terminal();

  // Raw again, when this process is in the foreground; else nothing.
  Status retake();
  void release();
  // Reads away, for half a second at most, what the terminal still answers to
  // the command: it is asked something itself, on `screen`, and answers in
  // order.
  void await_answers(int screen) const;
  bool taken() const { return raw_; }
  void resize() const;
  int fd() const { return own_; }

 private:
  Terminal(int own, int master) : own_(own), master_(master) {}
  void start_guardian();
  int own_ = -1;
  int master_ = -1;
  Output output_ = Output::kRaw;
  termios saved_{};
  bool raw_ = false;
  Fd guardian_;  // closing it without a word makes the guardian restore
  pid_t guardian_pid_ = -1;
};

}  // namespace stoplog::jail
