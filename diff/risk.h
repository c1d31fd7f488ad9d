// SPDX-License-Identifier: Apache-2.0
// What a change could do to the person who takes it. One table of rules, each
// with a code, a level, what it matches and why it matters (risk_rules.cc);
// the user's policy may add globs and raise levels, never lower them.
//
// danger: cannot be taken back, or runs on the host without being asked.
// warn:   runs when asked, or hides something from a reader.
// info:   worth a word.
//
// Pure but for the facts of git that were asked before; content is what the
// caller read, at most kTextLimit bytes a side.
#pragma once

#include <optional>
#include <string_view>

#include "diff/change_set.h"
#include "diff/git_facts.h"
#include "diff/hunks.h"

namespace stoplog::diff {

// A change with as much of its content as was read. An unset text of an
// existing file means: too large to look at.
struct Subject {
  const Change& change;
  std::optional<std::string_view> old_text;
  std::optional<std::string_view> new_text;
  // Their line differences, when they have any that were looked for.
  const TextDiff* diff = nullptr;
  // Deletions: whether git has this very content.
  bool restorable = false;
  std::string_view real_root;  // absolute links beneath it stay inside
  const fs::View& view;        // of what stands beside it
};

// All rules that match, gravest first; policy rules included.
std::vector<Risk> assess(const Subject& subject,
                         const std::vector<PolicyRule>& policy);
// Those alone that names and the policy tell, whatever the contents are.
std::vector<Risk> assess_names(const Subject& subject,
                               const std::vector<PolicyRule>& policy);
// The policy's alone, gravest first again: for a row whose risks are known.
void assess_policy(Change& change, const std::vector<PolicyRule>& policy);
// The same for what the rules of the whole set found.
void raise_levels(ChangeSet& set, const std::vector<PolicyRule>& policy);
// Rules that need the whole set: names that differ in case only.
void assess_set(ChangeSet& set, const fs::View& view);

// For documentation and tests: every code there is.
struct RuleInfo {
  std::string_view code;
  Level level;
  std::string_view why;
};
std::vector<RuleInfo> risk_rules();

}  // namespace stoplog::diff
