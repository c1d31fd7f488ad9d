// SPDX-License-Identifier: Apache-2.0
// Where results and words go.
//
//   Output out(ColorMode::kAuto);
//   out.start_pager();                 // only when stdout is a terminal
//   out.write(text); out.note("3 changes");
//   return out.finish();
//
// Results go to stdout through one buffer, flushed by finish() or the
// destructor; everything else to stderr, unbuffered. Nothing here escapes:
// callers do, with base/escape.h, when terminal() says so. A reader that went
// away (EPIPE, a pager that was left) is no error: stdout goes dead silently.
// What cannot be written for another reason is failure(), which ends the
// program with an error, unless done() said that this would tell a lie.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/child.h"
#include "base/result.h"

namespace stoplog::cli {

enum class ColorMode { kAuto, kAlways, kNever };

class Output {
 public:
  explicit Output(ColorMode mode);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void set_color(ColorMode mode);
  bool terminal() const { return terminal_; }  // stdout is for eyes
  bool color() const { return color_; }        // on stdout
  bool error_color() const { return error_color_; }
  unsigned width() const;  // columns of the terminal, 80 when unknown

  void write(std::string_view text);
  bool dead() const { return dead_; }  // whoever read stdout is gone
  const std::optional<Error>& failure() const { return failure_; }
  // "the commit": the real tree has it, and an exit code of an error would mean
  // that nothing was written.
  void done(std::string what) { done_ = std::move(what); }
  const std::string& done() const { return done_; }
  // One line to stderr: "stoplog: text".
  void note(std::string_view text);
  void hint(std::string_view text);
  // Text of several lines to stderr, as it is.
  void say(std::string_view text);
  void error(const Error& error);
  // After the output of a program that may have left the terminal of stderr in
  // the middle of a sequence, or showing nothing: what follows is seen.
  void settle_terminal();

  // $STOPLOG_PAGER, $PAGER, else less -FRX where there is one; "" or "cat" is
  // none.
  void start_pager();
  void flush();
  void finish();

 private:
  bool terminal_ = false;
  bool color_ = false;
  bool error_color_ = false;
  bool dead_ = false;
  std::optional<Error> failure_;
  std::string done_;
  std::string buffer_;
  int fd_ = 1;
  Fd pipe_;
  std::optional<Child> pager_;
};

// Asks on the terminal; false when there is none, or for anything but yes.
bool can_ask();
bool ask_yes(std::string_view question);

}  // namespace stoplog::cli
