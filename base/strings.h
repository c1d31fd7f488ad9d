// SPDX-License-Identifier: Apache-2.0
// Small string helpers that the standard library lacks. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoplog {

// "a,,b" at ',' is {"a", "", "b"}; an empty text is {""}.
std::vector<std::string_view> split(std::string_view text, char separator);
// Without spaces, tabs, CR and LF at both ends.
std::string_view trim(std::string_view text);
// RFC 4648 with padding: for names that are not UTF-8, in JSON.
std::string base64(std::string_view bytes);
// The candidate that a mistyped word is nearest to (at most a third of its
// length in edits, transpositions counting one), or empty: for "did you mean".
std::string_view nearest(std::string_view word,
                         const std::vector<std::string_view>& candidates);

}  // namespace stoplog
