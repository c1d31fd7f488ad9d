// SPDX-License-Identifier: Apache-2.0
// The review on a terminal: paints frames with ncurses, reads keys, watches
// signals and the file loader, until the reader leaves or commits.
//
//   ReviewEnd end = TRY(run_review(std::move(request)));
//   if (end.signal != 0) return 128 + end.signal;
//
// The terminal is put back on every way out: return, error, exception,
// Ctrl-C, SIGTERM, SIGHUP, Ctrl-Z and a crash. Decisions are saved when the
// reader pauses and on every way out but a crash. Blocks; call it from the main
// thread while no other thread runs. Fails when standard input or output is no
// terminal, or one that cannot move its cursor.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/review_decisions.h"
#include "cli/review_early.h"
#include "cli/review_looked.h"
#include "cli/review_makers.h"
#include "diff/change_set.h"

namespace stoplog::cli {

// What came of a commit that was asked for on the screen. When it was done the
// review ends; when not, it goes on and shows `message`.
struct CommitReply {
  bool done = false;
  std::string message;  // raw
};

struct ReviewRequest {
  const diff::ChangeSet& set;
  DecisionStore& decisions;
  Looked looked;
  std::string title;
  std::function<std::string(uint32_t)> command_text;
  // The same checks as the command `commit`; called with decisions saved and
  // the screen left. Unset: the review cannot commit.
  std::function<CommitReply()> commit;
  // Keeps what was looked at; called where decisions are saved.
  std::function<void(const Looked&)> save_looked;
  // Which commands made the hunks of a change; called on another thread, may
  // give up when told so. Unset: nobody knows.
  std::function<std::optional<FileMakers>(const diff::Change&,
                                          const std::function<bool()>&)>
      makers;
  bool color = true;
  bool ignored = false;  // list the files that git ignores, too
  LookAtOne look = {};   // of an early one
};

struct ReviewEnd {
  bool committed = false;
  int signal = 0;       // that ended it; SIGINT for Ctrl-C
  std::string message;  // of the commit; raw
  size_t undecided = 0, approved = 0;
};

Result<ReviewEnd> run_review(ReviewRequest request);

// The same when what is to be reviewed must first be looked for, which
// `prepare` does, on another thread, and may tell how far it is, and what is to
// be reviewed before all of it is known (cli/review_early.h). When it takes a
// moment the screen is there meanwhile, with that to be read and decided.
// Nullopt: there is nothing to review. Leaving the screen meanwhile leaves the
// process at once, so that `prepare` must be reading alone; who decided
// something waits for it, without the screen, and it is kept.
struct ReviewStart {
  std::string title;
  bool color = true;
  bool ignored = false;  // as ReviewRequest has it
  std::function<Result<std::optional<ReviewRequest>>(const diff::Progress&,
                                                     const TellEarly&)>
      prepare;
};
Result<std::optional<ReviewEnd>> run_review(const ReviewStart& start);

}  // namespace stoplog::cli
