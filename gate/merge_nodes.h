// SPDX-License-Identifier: Apache-2.0
// Three sides of one thing as plain data: the base as the draft saw it, the
// real one as it is now, the draft's. What each side changed comes along; what
// both changed, and not alike, has no answer. Mode and access lists are one
// thing, the owner another, each further attribute one of its own.
#pragma once

#include <string>

#include "gate/node.h"

namespace stoplog::gate {

struct Sides {
  const Node& base;
  const Node& real;
  const Node& draft;
};

// Whose content the merge has; kBoth: it takes the three contents to tell.
enum class Whose { kReal, kDraft, kBoth };
Whose content_of(const Sides& sides);

// Mode, owner and attributes into `merged`; what was changed on both sides, in
// words for a person, or "".
std::string merge_attributes(const Sides& sides, Node& merged);

}  // namespace stoplog::gate
