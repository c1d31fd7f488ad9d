// SPDX-License-Identifier: Apache-2.0
// How each key of a policy file is read and merged: a table from "limits.time"
// to a function that checks the kind of the value and puts it into a Policy,
// loosely (the user's file) or only when it tightens (the workspace's).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "draft/policy.h"

namespace stoplog::draft {

enum class Merge { kSet, kTighten };

struct KeyContext {
  Policy& policy;
  const TomlValue& value;
  std::string origin;  // "config.toml:3:7"
  Merge merge = Merge::kSet;
};

struct KeySpec {
  std::string_view key;   // "limits.time"
  std::string_view kind;  // for messages: "a duration such as \"30m\""
  // False when the value is of the wrong kind; warnings go to the policy.
  Result<bool> (*apply)(const KeyContext&);
};

std::span<const KeySpec> policy_keys();

}  // namespace stoplog::draft
