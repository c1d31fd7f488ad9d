// SPDX-License-Identifier: Apache-2.0
// What may stand at the end of a command line, for the shells' completions:
// from the table of commands, so that it cannot go out of step with it.
//
//   Completion c = complete_line({"diff", "--fr"});     // the last is typed
//   c.fill == Fill::kWords; c.words == {{"--from", "MARK"}}
//
// Only what depends on the table is decided here; drafts, marks, paths and
// commits are named by `fill` and looked up by the command `__complete`. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace stoplog::cli {

enum class Fill {
  kWords,     // those in Completion::words, and no others
  kFiles,     // of the file system, which the shell knows
  kDirs,      //
  kCommand,   // a command line of its own begins
  kDrafts,    // of the workspace
  kMarks,     // of the draft
  kPaths,     // that changed, relative to the current directory
  kMarkPath,  // MARK:PATH, or a path that changed
  kCommits,   // of the workspace
  kPresets,   // of the policy
};

struct Candidate {
  std::string word;
  std::string about;  // one line, may be empty
  bool operator==(const Candidate&) const = default;
};

struct Completion {
  Fill fill = Fill::kWords;
  std::vector<Candidate> words;
  std::string prefix;  // stands before every word: "--from=" of "--from=@"
  std::string typed;   // what the rest must begin with
  // Global options that were given, for looking things up.
  Globals globals;
  std::string directory;  // of -C, or empty
};

// `words` without the program's name; the last is the one being typed.
Completion complete_line(std::span<const std::string> words);

}  // namespace stoplog::cli
