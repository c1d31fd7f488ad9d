// SPDX-License-Identifier: Apache-2.0
// RuleSet: which paths of the workspace are hidden, masked, read-only or
// denied. Pure decisions by path; the tree applies them to every route that
// leads to a node (its name, its origin in the real tree, its other links).
//
//   auto rules = TRY(RuleSet::create({.hide = {"secrets/**"}, ...}));
//   rules->rule("secrets/key", false) == Rule::kHide
//
// Patterns are Globs; one that matches a directory holds for all beneath it.
// Where several match, the strictest holds; there are no exceptions.
//
// Default masks cover files that look like secrets by their name (.env, keys,
// password stores) unless git has them: what it has is in every clone.
// A mask is for what the real tree has; the draft may make such files itself.
// Immutable; any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/glob.h"
#include "base/result.h"
#include "fs/tree_types.h"

namespace stoplog::fs {

struct RulesSpec {
  std::vector<std::string> hide{};
  std::vector<std::string> mask{};
  std::vector<std::string> read_only{};
  std::vector<std::string> deny{};
  bool default_masks = true;
  // Has git what the real tree has at this path? Null: nothing is tracked.
  // Called for names that look like a secret only; from any thread.
  std::function<bool(std::string_view path)> tracked{};
};

class RuleSet : public PathRules {
 public:
  // kInvalid names the pattern that is not one.
  static Result<std::unique_ptr<RuleSet>> create(RulesSpec spec);

  bool empty() const override;
  bool hides() const override;
  Rule rule(std::string_view path, bool is_directory) const override;
  Rule evaded(std::string_view from, std::string_view to) const override;
  std::string_view mask_content(std::string_view path) const override;

 private:
  RuleSet() = default;
  Rule rule_beneath(std::string_view directory) const;

  uint64_t serial_ = 0;  // no other set of this process has it
  std::vector<std::pair<Rule, Glob>> globs_;  // strictest first
  bool default_masks_ = false;
  std::function<bool(std::string_view)> tracked_;
};

// By its last component alone; the same list `stoplog doctor` may show.
bool looks_like_secret(std::string_view path);

}  // namespace stoplog::fs
