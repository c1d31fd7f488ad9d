// SPDX-License-Identifier: Apache-2.0
// One change looked at: did it really change, is it text, how many lines, what
// are its hashes, what risk is in its content. Reads each side once when it
// fits kTextLimit, else streams. Independent of other changes, so many can run
// at once.
#pragma once

#include "diff/change_set.h"
#include "diff/git_facts.h"
#include "diff/hunks.h"

namespace stoplog::diff {

struct ExamineContext {
  const fs::View& view;
  const DiffOptions& options;
  GitFacts& facts;
  SearchBudget* search = nullptr;  // of line differences; null: no bound
};

// Sets content_changed, mode_changed, binary, too_large, lines_*, hashes and
// risks. For an ignored file that is held back only the first two, and the
// risks of its name.
Status examine(Change& change, const ExamineContext& context);

// What examine() sets as far as it can be told without reading: two files with
// content are supposed to differ. No hashes, no counts, and of the risks those
// that names and the policy tell.
void suppose(Change& change, const ExamineContext& context);

// What kind of change the two sides make, once examined; nullopt: none.
std::optional<Kind> kind_of(const Change& change);

}  // namespace stoplog::diff
