// SPDX-License-Identifier: Apache-2.0
#include "jail/proc_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <memory>
#include <optional>
#include <sstream>

#include "base/sys_file.h"
#include "base/sys_process.h"

namespace stoplog::jail {
namespace {

constexpr uint64_t kMaxFile = 1 << 20;
constexpr int kMaxDepth = 1 << 20;  // more than there can be processes

std::optional<std::string> read_proc(const std::string& path) {
  auto text = sys::read_file(AT_FDCWD, path, kMaxFile);
  if (!text) return std::nullopt;
  return std::move(*text);
}

// Fields of /proc/PID/stat from the third on; the second may hold anything.
std::vector<std::string> stat_fields(pid_t pid) {
  auto text = read_proc(fmt::format("/proc/{}/stat", pid));
  if (!text) return {};
  std::istringstream in(text->substr(text->rfind(')') + 1));
  std::vector<std::string> fields;
  for (std::string field; in >> field;) fields.push_back(std::move(field));
  return fields;
}

uint64_t field_number(const std::vector<std::string>& fields, size_t number) {
  uint64_t value = 0;
  if (number < 3 || number - 3 >= fields.size()) return 0;
  const std::string& text = fields[number - 3];
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void add_children(pid_t pid, std::vector<pid_t>& out) {
  const std::string tasks = fmt::format("/proc/{}/task", pid);
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(tasks.c_str()),
                                          &::closedir);
  if (!dir) return;
  while (const dirent* entry = ::readdir(dir.get())) {
    if (entry->d_name[0] == '.') continue;
    auto text = read_proc(tasks + "/" + entry->d_name + "/children");
    if (!text) continue;
    std::istringstream in(*text);
    for (pid_t child; in >> child;) out.push_back(child);
  }
}

}  // namespace

std::string process_mark(pid_t pid) {
  return fmt::format("{}-{}", pid, field_number(stat_fields(pid), 22));
}

Result<pid_t> pid_of(int pidfd) {
  auto text = TRY(sys::read_file(
      AT_FDCWD, fmt::format("/proc/self/fdinfo/{}", pidfd), kMaxFile));
  const size_t at = text.find("\nPid:");
  pid_t pid = -1;
  if (at != std::string::npos) {
    std::istringstream in(text.substr(at + 5));
    in >> pid;
  }
  if (pid <= 0) return fail_errno(ESRCH);
  return pid;
}

std::vector<pid_t> descendants(pid_t init) {
  std::vector<pid_t> found;
  add_children(init, found);
  for (size_t i = 0; i < found.size(); ++i) add_children(found[i], found);
  return found;
}

Result<Fd> open_descendant(pid_t pid, pid_t init) {
  Fd fd = TRY(sys::pidfd_open(pid));
  // Up the line of parents, which is short or our own doing.
  pid_t at = pid;
  for (int steps = 0; at > 1 && at != init && steps < kMaxDepth; ++steps)
    at = static_cast<pid_t>(field_number(stat_fields(at), 4));
  if (at != init || pid == init) return fail_errno(ESRCH);
  // Still not reaped: so the number was its own all the time that we looked.
  TRY(sys::pidfd_send_signal(fd.get(), 0));
  return fd;
}

void ProcessTimes::see(pid_t pid, uint64_t started, uint64_t used_us) {
  Seen& seen = seen_[pid];
  if (seen.started != started) seen = {.started = started};
  if (used_us <= seen.used_us) return;
  total_us_ += used_us - seen.used_us;
  seen.used_us = used_us;
}

TreeUsage measure_tree(pid_t init, ProcessTimes* times) {
  static const auto kTick = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  static const auto kPage = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  TreeUsage usage;
  usage.pids = descendants(init);
  usage.processes = usage.pids.size();
  uint64_t user = 0, system = 0;
  auto add = [&](pid_t pid) {
    const auto fields = stat_fields(pid);
    const uint64_t own = field_number(fields, 14) + field_number(fields, 15);
    if (times != nullptr)
      times->see(pid, field_number(fields, 22), own * (1000000 / kTick));
    user += field_number(fields, 14) + field_number(fields, 16);
    system += field_number(fields, 15) + field_number(fields, 17);
    if (pid != init) usage.resident += field_number(fields, 24) * kPage;
  };
  for (pid_t pid : usage.pids) add(pid);
  add(init);
  usage.user_us = user * (1000000 / kTick);
  usage.system_us = system * (1000000 / kTick);
  usage.cpu_us = usage.user_us + usage.system_us;
  return usage;
}

}  // namespace stoplog::jail
