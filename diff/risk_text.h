// SPDX-License-Identifier: Apache-2.0
// Risks that lie in the content of a text: secrets that were added, characters
// that a reader does not see, lines that nobody can read. One pass over the
// lines that were added and a few around them; what the old text has too is not
// new. Pure; time is linear in the text.
#pragma once

#include <string_view>
#include <vector>

#include "diff/change_set.h"
#include "diff/hunks.h"

namespace stoplog::diff {

// `old_text` is empty for a new file. Without `diff`, their line differences,
// all between common head and tail counts as added.
std::vector<Risk> risks_of_text(std::string_view old_text,
                                std::string_view new_text,
                                const TextDiff* diff = nullptr);

// The same for what is no text: keys and tokens that were added.
std::vector<Risk> risks_of_bytes(std::string_view old_bytes,
                                 std::string_view new_bytes);

}  // namespace stoplog::diff
