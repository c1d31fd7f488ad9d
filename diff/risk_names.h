// SPDX-License-Identifier: Apache-2.0
// Risks that a path alone tells: a table of names, each with a code, a level,
// why it matters and one line for the reader. Pure; any thread.
//
// A pattern is a name at any depth ("Makefile"), the end of a name
// ("*.code-workspace"), or the end of a path beneath directories at any depth
// (".github/workflows/*", one component a star; a final "**" is everything
// beneath).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "diff/change_set.h"

namespace stoplog::diff {

struct NameRule {
  std::string_view code;
  Level level;
  std::string_view patterns;  // separated by spaces
  std::string_view message;
  std::string_view why;
};

std::span<const NameRule> name_rules();
// The rules whose patterns match, each once, in the table's order.
std::vector<const NameRule*> match_names(const RelPath& path);
// The rules that something beneath `directory` would match because it lies
// there: ".github" has "ci", for ".github/workflows/x.yml".
std::vector<const NameRule*> match_beneath(const RelPath& directory);

}  // namespace stoplog::diff
