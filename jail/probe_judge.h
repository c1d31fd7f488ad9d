// SPDX-License-Identifier: Apache-2.0
// What `doctor` says of each wall, from what was found: a verdict, what follows
// from it, what to do. No function here asks the machine, so that every answer
// can be had on any machine; jail/probe asks.
#pragma once

#include <optional>
#include <string>

#include "jail/limits.h"
#include "jail/probe.h"

namespace stoplog::jail {

// Settings are as their file has them, "" where there is none.
struct NamespaceFacts {
  std::string refused;  // the kind that was: "user", "mount"…; "": none
  std::string reason;   // and why
  std::string most;     // user.max_user_namespaces
  std::string unprivileged_clone;  // kernel.unprivileged_userns_clone
  std::string apparmor;  // kernel.apparmor_restrict_unprivileged_userns
};
Check judge_namespaces(const NamespaceFacts& facts);

struct AppArmorFacts {
  bool enabled = false;
  std::string restricts;  // kernel.apparmor_restrict_unprivileged_userns
  std::string profile;    // of this process: "unconfined", "stoplog (…)"
  bool root = false;
};
Check judge_apparmor(const AppArmorFacts& facts);

Check judge_seccomp(bool filters);
Check judge_landlock(int abi);
Check judge_cgroups(const LimitMeans& means);

// What became of a command in a real jail: "" when it ran.
struct TrialFacts {
  bool tried = false;
  std::string failure;
  bool root = false;
};
// Why root cannot make its jail's user, and what to do.
inline constexpr char kFewIdsHint[] =
    "this is a user namespace, a container's, with too few users: map 4096 in "
    "a row into it (65536 are usual), or run stoplog outside of it";
Check judge_trial(const TrialFacts& trial, const NamespaceFacts& facts);

}  // namespace stoplog::jail
