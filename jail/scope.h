// SPDX-License-Identifier: Apache-2.0
// A control group from the user's systemd, for a session whose own group is
// not the user's to divide (a login by ssh or on a console): a transient scope
// with Delegate=yes, asked for over the user's bus by busctl(1), which every
// systemd has; a library for one call would be loaded by every daemon.
//
//   if (enter_scope(find_scope_means())) places = find_cgroups();
//
// enter_scope() moves this process into the scope and there into a group
// "daemon" of its own: a group that has processes cannot hand controllers down.
// The scope ends with the last process in it. Once a process, about 10 ms.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace stoplog::jail {

struct ScopeMeans {
  std::string busctl;  // the program; "": there is none
  std::string bus;     // the user's bus, a socket; "": there is none
  bool empty() const { return busctl.empty() || bus.empty(); }
};
// Nothing for root, who needs no scope.
ScopeMeans find_scope_means();

// busctl's arguments for a scope `name` around `pid`.
std::vector<std::string> scope_call(const std::string& name, pid_t pid);

// False: no means, refused, or not done in time. Then nothing has changed, or
// we are in a scope that does not help: either way polling is left.
bool enter_scope(const ScopeMeans& means,
                 std::chrono::milliseconds patience = std::chrono::seconds(3));

}  // namespace stoplog::jail
