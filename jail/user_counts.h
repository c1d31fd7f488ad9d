// SPDX-License-Identifier: Apache-2.0
// What the kernel counts for a user, in the jail and outside of it alike: used
// up inside, it would be gone for the user's own programs. The jail gets a
// part.
//
//   auto counts = plan_user_counts(read_user_counts());   // the daemon
//   TRY(set_user_count(count));            // the zygote, in its namespace
//   TRY(limit_shares());                   // each command
//
// Counts of /proc/sys/user are kept for each user namespace and its parents, so
// a lower one in the jail's holds all commands of a draft together. The
// resource limits are counted the same way since Linux 5.14; before, with the
// user's own programs, and a command may find its part used up by those.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace stoplog::jail {

struct UserCount {
  std::string name;  // of /proc/sys/user
  uint64_t most = 0;
};

// What is allowed outside, by name; what this kernel does not count is missing.
std::map<std::string, uint64_t> read_user_counts();
std::vector<UserCount> plan_user_counts(
    const std::map<std::string, uint64_t>& outside);
Status set_user_count(const UserCount& count);

// The part of a resource limit that a command may have of what the user has.
uint64_t share_of(uint64_t limit, uint64_t parts);
// Pending signals (and timers), locked memory, bytes of message queues.
Status limit_shares();
// How many processes a draft may have of the user's; 0: as many as there are.
uint64_t process_share();

}  // namespace stoplog::jail
