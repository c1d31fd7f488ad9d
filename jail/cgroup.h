// SPDX-License-Identifier: Apache-2.0
// One command's control groups, of either version.
//
//   const CgroupPlaces places = find_cgroups();             // once a process
//   CgroupSet set = CgroupSet::create(places, "stoplog-812-1");
//   ... its init joins through set.join_fds() or set.clone_fd() ...
//   set.limit_memory(1 << 30); ... set.usage() ... set.remove();
//
// Version 1: a group per controller beneath the daemon's own. Version 2: one
// group beside the daemon's own (its parent has the controllers switched on) or
// beneath it. A controller that cannot be had is simply not in the set: the
// trial is the mkdir itself, and the caller falls back to polling. A process
// joins by writing "0" to `tasks` itself: being moved by another one costs 7 ms
// (a grace period), joining 50 us. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog::jail {

enum class Controller : uint8_t { kMemory, kPids, kCpu, kCpuacct };
constexpr size_t kControllers = 4;

// The directories in which groups may be made; empty where there is none.
struct CgroupPlaces {
  std::string v1[kControllers];
  std::vector<std::string> v2;  // to be tried in this order
  bool empty() const;
};
// `mountinfo` and `cgroup` are the texts of those files in /proc/self.
CgroupPlaces parse_cgroups(const std::string& mountinfo,
                           const std::string& cgroup);
CgroupPlaces find_cgroups();
// Removes groups that a killed daemon left: "stoplog-...", that nobody holds a
// lock on. What died with it may still be leaving them: they are asked again
// until `patience` is over.
void sweep_cgroups(const CgroupPlaces& places,
                   std::chrono::milliseconds patience = {});

struct CgroupUsage {
  std::optional<uint64_t> cpu_us;
  std::optional<uint64_t> user_us;
  std::optional<uint64_t> system_us;
  std::optional<uint64_t> memory_peak;
  std::optional<uint64_t> pids_peak;
  uint64_t oom_kills = 0;
  uint64_t pids_refused = 0;
};

// A group's directory. The files that every command needs are opened when the
// group is made, ahead of the command that waits for them.
class GroupFiles {
 public:
  GroupFiles() = default;
  explicit GroupFiles(Fd dir) : dir_(std::move(dir)) {}
  int get() const { return dir_.get(); }
  explicit operator bool() const { return static_cast<bool>(dir_); }
  void keep_open(const char* name, int flags);
  Status write(std::string_view name, const std::string& value) const;
  // Up to `out.size()` bytes of its beginning; none when it cannot be read.
  size_t read(std::string_view name, std::span<char> out) const;

 private:
  struct Open {
    const char* name;
    Fd fd;
  };
  int opened(std::string_view name) const;  // or -1
  Fd dir_;
  std::vector<Open> open_;
};

class CgroupSet {
 public:
  CgroupSet() = default;
  // `make` stands for mkdir in tests that play the kernel of version 2.
  using MakeGroup = std::function<Status(int parent, const std::string& name)>;
  static CgroupSet create(const CgroupPlaces& places, const std::string& name,
                          const MakeGroup& make = {});
  CgroupSet(CgroupSet&&) noexcept = default;
  CgroupSet& operator=(CgroupSet&&) noexcept = default;
  ~CgroupSet() { remove(); }

  bool has(Controller controller) const;
  int version() const { return version_; }  // 0: none at all
  // Version 1: files to which the joining process writes "0".
  Result<std::vector<Fd>> join_fds() const;
  // Version 2: for CLONE_INTO_CGROUP; -1 for version 1.
  int clone_fd() const { return v2_.get(); }

  Status limit_memory(uint64_t bytes);
  Status limit_pids(uint64_t count);
  Status limit_cpus(double cpus);
  CgroupUsage usage() const;
  // False while something still lives in it; asks again until `patience` is
  // over, since processes need a moment to die.
  bool remove(std::chrono::milliseconds patience = {});

 private:
  struct Group {
    std::string path;
    GroupFiles dir;
  };
  const Group* group(Controller controller) const;
  bool remove_now();
  void open_ahead();
  bool make_v2(const std::string& parent, const std::string& name,
               const MakeGroup& make);
  int version_ = 0;
  GroupFiles v2_;
  std::string v2_path_;
  bool v2_has_[kControllers] = {};
  Group v1_[kControllers];
};

}  // namespace stoplog::jail
