// SPDX-License-Identifier: Apache-2.0
#include "jail/user_counts.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/sys_file.h"

namespace stoplog::jail {
namespace {

constexpr uint64_t kMaxFile = 64;
constexpr uint64_t kParts = 4;
// A queue of the default size takes a tenth of the usual limit: of a quarter
// there would be two.
constexpr uint64_t kQueueParts = 2;
// Half: a user with few processes shall not lose half of his builds, too.
constexpr uint64_t kProcessParts = 2;

struct Shared {
  const char* name;  // of /proc/sys/user
  const char* host;  // what holds for the whole machine
};
constexpr std::array<Shared, 2> kShared = {{
    {"max_inotify_instances", "/proc/sys/fs/inotify/max_user_instances"},
    {"max_inotify_watches", "/proc/sys/fs/inotify/max_user_watches"},
}};
// Not to be had at all: the system call filter says the same.
constexpr std::array kForbidden = {"max_user_namespaces", "max_fanotify_groups",
                                   "max_fanotify_marks"};

std::string count_path(const std::string& name) {
  return "/proc/sys/user/" + name;
}

std::optional<uint64_t> read_number(const std::string& path) {
  auto text = sys::read_file(AT_FDCWD, path, kMaxFile);
  if (!text) return std::nullopt;
  uint64_t value = 0;
  const char* end = text->data() + text->size();
  if (std::from_chars(text->data(), end, value).ec != std::errc())
    return std::nullopt;
  return value;
}

}  // namespace

std::map<std::string, uint64_t> read_user_counts() {
  std::map<std::string, uint64_t> counts;
  for (const char* name : kForbidden)
    if (auto value = read_number(count_path(name))) counts[name] = *value;
  for (const Shared& shared : kShared) {
    auto value = read_number(count_path(shared.name));
    if (!value) continue;
    // In a namespace of its own a container has no limit there but the
    // machine's.
    counts[shared.name] =
        std::min(*value, read_number(shared.host).value_or(*value));
  }
  return counts;
}

std::vector<UserCount> plan_user_counts(
    const std::map<std::string, uint64_t>& outside) {
  // Whatever could be read: without this one the wall does not stand.
  std::vector<UserCount> plan = {{.name = kForbidden[0], .most = 0}};
  for (const char* name : kForbidden)
    if (name != kForbidden[0] && outside.contains(name))
      plan.push_back({.name = name, .most = 0});
  for (const Shared& shared : kShared)
    if (auto found = outside.find(shared.name); found != outside.end())
      plan.push_back(
          {.name = shared.name, .most = share_of(found->second, kParts)});
  return plan;
}

Status set_user_count(const UserCount& count) {
  Fd file = TRY(sys::openat(AT_FDCWD, count_path(count.name), O_WRONLY));
  return sys::write_full(file.get(), std::to_string(count.most));
}

uint64_t share_of(uint64_t limit, uint64_t parts) {
  if (limit == RLIM_INFINITY || limit == 0) return limit;
  return std::max<uint64_t>(1, limit / parts);
}

Status limit_shares() {
  struct Part {
    __rlimit_resource resource;
    uint64_t parts;
  };
  constexpr std::array<Part, 3> kLimits = {{{RLIMIT_SIGPENDING, kParts},
                                            {RLIMIT_MEMLOCK, kParts},
                                            {RLIMIT_MSGQUEUE, kQueueParts}}};
  for (const auto& [resource, parts] : kLimits) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) < 0) return fail_errno(errno);
    // The soft one is what the user's own programs are held to.
    const uint64_t most = share_of(limit.rlim_cur, parts);
    if (most == RLIM_INFINITY) continue;
    limit.rlim_cur = limit.rlim_max = most;
    if (::setrlimit(resource, &limit) < 0) return fail_errno(errno);
  }
  return {};
}

uint64_t process_share() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
    return 0;
  return share_of(limit.rlim_cur, kProcessParts);
}

}  // namespace stoplog::jail
