// SPDX-License-Identifier: Apache-2.0
// Secrets in a text: keys and tokens of the well-known kinds by their shape,
// and values of high entropy that are assigned to a name like "password".
// Pure; linear in the text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoplog::diff {

struct Secret {
  std::string_view what;   // "a GitHub token"
  std::string_view value;  // into the text
};

// `what` of the last when the text has more beginnings of secrets than can be
// read in linear time: nobody knows then what else is in it.
inline constexpr std::string_view kUnreadSecrets =
    "more that looks like secrets than could be read";

// kWellKnown: keys and tokens alone, without assignments.
enum class SecretKinds { kAll, kWellKnown };
// At most `limit` of them.
std::vector<Secret> find_secrets(std::string_view text, size_t limit,
                                 SecretKinds kinds = SecretKinds::kAll);

double entropy(std::string_view text);  // bits per byte

}  // namespace stoplog::diff
