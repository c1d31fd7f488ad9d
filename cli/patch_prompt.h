// SPDX-License-Identifier: Apache-2.0
// `approve -p`: the review hunk by hunk without a screen, with the keys of
// `git add -p`, on any terminal or from a pipe.
//
//   PromptEnd end = TRY(run_patch_prompt({.set = set, .decisions = store,
//                                         .input = 0, .output = 1}));
//
// Files come in the order of the review: dangers and deletions first. After
// each answer the decisions are saved, so that Ctrl-C loses none. Answers are
// lines; the end of input is `q`. What is shown is escaped, whatever `output`
// is. One thread; the descriptors are borrowed.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/review_decisions.h"
#include "cli/review_makers.h"
#include "diff/change_set.h"

namespace stoplog::cli {

struct PromptRequest {
  const diff::ChangeSet& set;
  DecisionStore& decisions;
  int input = 0;
  int output = 1;
  bool color = false;
  unsigned context = 3;
  // These and what lies beneath; empty: all but what git ignores.
  std::vector<RelPath> paths;
  bool ignored = false;  // that, too
  std::function<std::string(uint32_t)> command_text;
  // Which commands made the edits of a text; unset: not known.
  std::function<std::optional<FileMakers>(const diff::Change&)> makers;
  bool decided_too = false;  // also what has a verdict already
};

struct PromptEnd {
  size_t asked = 0;    // files that there was something to ask about
  size_t decided = 0;  // answers that changed a decision
  bool quit = false;   // before the end
};

Result<PromptEnd> run_patch_prompt(const PromptRequest& request);

}  // namespace stoplog::cli
