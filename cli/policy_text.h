// SPDX-License-Identifier: Apache-2.0
// The policy in words: lines for `policy show`, explanations for `policy
// check`, samples for `policy init`. Pure but for explain(), which looks
// whether a path exists in the workspace.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "draft/policy.h"
#include "draft/workspace.h"

namespace stoplog::cli {

struct PolicyLine {
  std::string key;    // "limits.time"
  std::string value;  // as TOML
  std::string origin;
};
std::vector<PolicyLine> policy_lines(const draft::Policy& policy);

struct Explanation {
  std::string kind;     // "path", "host", "command"
  std::string verdict;  // "masked", "allowed", …
  std::vector<std::string> reasons;
};
// What is a path: whatever has a '/' or exists in the workspace; a host:
// whatever else has a '.' or ':' and is a host's name; else a command. A
// program outside of the workspace, by its whole path, is one, too.
Result<Explanation> explain(const draft::Policy& policy,
                            const draft::Workspace& workspace,
                            const std::string& subject);

extern const std::string_view kUserSample;
extern const std::string_view kWorkspaceSample;

}  // namespace stoplog::cli
