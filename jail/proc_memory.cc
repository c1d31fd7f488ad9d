// SPDX-License-Identifier: Apache-2.0
#include "jail/proc_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "base/sys_file.h"

namespace stoplog::jail {
namespace {

constexpr uint64_t kMaxFile = 1 << 20;
// Of a process with more mappings all that is shared counts as its own.
constexpr uint64_t kMaxMaps = 4 << 20;
// Two lines of 150 bytes for each segment that there can be.
constexpr uint64_t kMaxSegments = 2 << 20;
constexpr size_t kMaxDescriptors = 1 << 18;
// How much may grow unseen between two looks.
constexpr uint64_t kGrowth = 4 << 20;
constexpr std::chrono::seconds kAtLeast{1};

// "NAME:   123 kB", in bytes.
uint64_t kilobytes(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == text.npos) return 0;
  uint64_t value = 0;
  std::istringstream in(std::string(text.substr(at + name.size(), 32)));
  in >> value;
  return value * 1024;
}

// Memory that is shared without a file (MAP_SHARED | MAP_ANONYMOUS): the
// mappings of "/dev/zero (deleted)".
uint64_t shared_without_file(const std::string& maps) {
  constexpr std::string_view kName = "/dev/zero (deleted)\n";
  uint64_t total = 0;
  for (size_t at = maps.find(kName); at != maps.npos;
       at = maps.find(kName, at + 1))
    total += kilobytes(std::string_view(maps).substr(at, 512), "\nPss:");
  return total;
}

uint64_t resident_size(pid_t pid) {
  auto text =
      sys::read_file(AT_FDCWD, fmt::format("/proc/{}/statm", pid), kMaxFile);
  if (!text) return 0;
  uint64_t whole = 0, resident = 0;
  std::istringstream in(*text);
  in >> whole >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t machine_shmem() {
  auto text = sys::read_file(AT_FDCWD, "/proc/meminfo", kMaxFile);
  return text ? kilobytes(*text, "\nShmem:") : 0;
}

using Seen = std::set<std::pair<dev_t, ino_t>>;

uint64_t memory_files_of(pid_t pid, Seen& seen, size_t& looked) {
  const std::string path = fmt::format("/proc/{}/fd", pid);
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), &::closedir);
  if (!dir) return 0;
  constexpr std::string_view kName = "/memfd:";
  uint64_t total = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    if (entry->d_name[0] == '.' || ++looked > kMaxDescriptors) continue;
    char link[kName.size()];
    const ssize_t length =
        ::readlinkat(::dirfd(dir.get()), entry->d_name, link, sizeof link);
    // Nothing else is looked at closer: it may be a file of our own mount.
    if (length != sizeof link || std::string_view(link, sizeof link) != kName)
      continue;
    struct stat stat{};
    if (::fstatat(::dirfd(dir.get()), entry->d_name, &stat, 0) < 0) continue;
    if (seen.emplace(stat.st_dev, stat.st_ino).second)
      total += static_cast<uint64_t>(stat.st_blocks) * 512;
  }
  return total;
}

}  // namespace

uint64_t own_memory_of(const std::string& rollup, const std::string& maps) {
  const uint64_t all = kilobytes(rollup, "\nPss:");
  const uint64_t shared = kilobytes(rollup, "\nPss_Shmem:");
  return all - std::min(all, shared) +
         (maps.empty() ? shared : shared_without_file(maps));
}

uint64_t own_memory(const std::vector<pid_t>& pids) {
  uint64_t total = 0;
  for (pid_t pid : pids) {
    auto read = [&](const char* name, uint64_t limit) {
      return sys::read_file(AT_FDCWD, fmt::format("/proc/{}/{}", pid, name),
                            limit);
    };
    auto rollup = read("smaps_rollup", kMaxFile);
    // Not ours to look into, or gone: the resident size is never too small.
    if (!rollup || rollup->find("\nPss:") == std::string::npos) {
      total += resident_size(pid);
      continue;
    }
    std::string maps;
    if (kilobytes(*rollup, "\nPss_Shmem:") > 0)
      if (auto text = read("smaps", kMaxMaps)) maps = std::move(*text);
    total += own_memory_of(*rollup, maps);
  }
  return total;
}

uint64_t segment_memory() {
  auto text = sys::read_file(AT_FDCWD, "/proc/sysvipc/shm", kMaxSegments);
  if (!text) return 0;
  std::istringstream in(*text);
  std::string line;
  std::getline(in, line);
  uint64_t total = 0;
  while (std::getline(in, line)) {
    // Its last two columns: resident, and swapped out.
    std::istringstream fields(line);
    uint64_t before = 0, last = 0;
    for (uint64_t value; fields >> value; last = value) before = last;
    total += before + last;
  }
  return total;
}

uint64_t MemoryFiles::measure(const std::vector<pid_t>& pids) {
  const uint64_t machine = machine_shmem();
  const auto now = Clock::now();
  if (machine < machine_) machine_ = machine;
  if (machine < machine_ + kGrowth && now < last_ + kAtLeast) return bytes_;
  machine_ = machine;
  last_ = now;
  Seen seen;
  size_t looked = 0;
  bytes_ = 0;
  for (pid_t pid : pids) bytes_ += memory_files_of(pid, seen, looked);
  return bytes_;
}

}  // namespace stoplog::jail
