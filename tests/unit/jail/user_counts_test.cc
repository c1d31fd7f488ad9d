// SPDX-License-Identifier: Apache-2.0
#include "jail/user_counts.h"

#include <sys/resource.h>

#include "catch_shim.h"

using namespace stoplog::jail;

namespace {

uint64_t most(const std::vector<UserCount>& plan, const std::string& name) {
  for (const UserCount& count : plan)
    if (count.name == name) return count.most;
  return UINT64_MAX;
}

}  // namespace

TEST_CASE("a jail gets a quarter of the inotify instances and watches") {
  const auto plan = plan_user_counts({{"max_inotify_instances", 128},
                                      {"max_inotify_watches", 8192},
                                      {"max_fanotify_groups", 128}});
  CHECK(most(plan, "max_inotify_instances") == 32);
  CHECK(most(plan, "max_inotify_watches") == 2048);
  CHECK(most(plan, "max_fanotify_groups") == 0);
  CHECK(most(plan, "max_fanotify_marks") == UINT64_MAX);
}

TEST_CASE("user namespaces are forbidden whatever could be read") {
  const auto plan = plan_user_counts({});
  REQUIRE(plan.size() == 1);
  CHECK(plan[0].name == "max_user_namespaces");
  CHECK(plan[0].most == 0);
}

TEST_CASE("a part of a limit is never nothing and never less than forever") {
  CHECK(share_of(4, 4) == 1);
  CHECK(share_of(3, 4) == 1);
  CHECK(share_of(0, 4) == 0);
  CHECK(share_of(RLIM_INFINITY, 4) == RLIM_INFINITY);
}
