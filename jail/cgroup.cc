// SPDX-License-Identifier: Apache-2.0
#include "jail/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <memory>
#include <sstream>

#include "base/sys_file.h"

namespace stoplog::jail {
namespace {

constexpr std::array kNames = {"memory", "pids", "cpu", "cpuacct"};
constexpr uint64_t kMaxFile = 64 << 10;

size_t index(Controller controller) { return static_cast<size_t>(controller); }

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// The whole of a small file of the kernel's, which comes with one read: a
// command's end waits for seven of them. "" when it cannot be read.
class Small {
 public:
  Small(const GroupFiles& dir, const char* name)
      : size_(dir.read(name, text_)) {}
  std::string_view text() const { return {text_.data(), size_}; }
  // The number behind `key` in a file of "key number" lines.
  std::optional<uint64_t> at(std::string_view key) const {
    for (std::string_view rest = text(); !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      if (line.size() > key.size() && line.starts_with(key) &&
          line[key.size()] == ' ')
        return parse_number(line.substr(key.size() + 1));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
    return std::nullopt;
  }

 private:
  std::array<char, 4096> text_;
  size_t size_;
};

std::optional<uint64_t> read_value(const GroupFiles& dir, const char* name) {
  return parse_number(Small(dir, name).text());
}

bool has_word(const std::string& list, std::string_view word, char separator) {
  std::istringstream words(list);
  for (std::string item; std::getline(words, item, separator);)
    if (item == word) return true;
  return false;
}

// `path` of /proc/self/cgroup, seen through a mount of the subtree `root`.
std::optional<std::string> place(const std::string& mount,
                                 const std::string& root, std::string path) {
  if (root != "/") {
    if (!path.starts_with(root)) return std::nullopt;
    path = path.substr(root.size());
  }
  if (path.find("/..") != std::string::npos) return std::nullopt;
  if (path == "/") path.clear();
  return mount + path;
}

// Opens a group that was just made and locks it, so that nobody's sweep takes
// it for a dead one's. Fails when one was faster.
Result<Fd> open_group(const std::string& path) {
  Fd dir = TRY(sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
  TRY(sys::flock(dir.get(), LOCK_SH));
  TRY(sys::openat(dir.get(), "cgroup.procs", O_RDONLY));
  return dir;
}

// Tries until it is done or `patience` is over.
bool until_done(std::chrono::milliseconds patience,
                const std::function<bool()>& attempt) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + patience;
  for (int pause_ms = 1; !attempt(); pause_ms = std::min(2 * pause_ms, 20)) {
    if (Clock::now() >= end) return false;
    ::poll(nullptr, 0, pause_ms);
  }
  return true;
}

// False when a dead daemon's group still holds somebody.
bool sweep_place(const std::string& parent) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(parent.c_str()),
                                          &::closedir);
  if (!dir) return true;
  bool done = true;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with("stoplog-")) continue;
    auto group =
        sys::openat(::dirfd(dir.get()), entry->d_name, O_RDONLY | O_DIRECTORY);
    // A living owner holds its lock; a pid would say nothing to someone in
    // another pid namespace.
    if (!group || !sys::flock(group->get(), LOCK_EX | LOCK_NB)) continue;
    // Only ever removes an empty group; a living one answers EBUSY.
    if (::unlinkat(::dirfd(dir.get()), entry->d_name, AT_REMOVEDIR) < 0 &&
        errno == EBUSY)
      done = false;
  }
  return done;
}

}  // namespace

void GroupFiles::keep_open(const char* name, int flags) {
  // One that is not there is looked for, and told of, when it is needed.
  if (auto fd = sys::openat(dir_.get(), name, flags))
    open_.push_back({name, std::move(*fd)});
}

int GroupFiles::opened(std::string_view name) const {
  for (const Open& file : open_)
    if (name == file.name) return file.fd.get();
  return -1;
}

Status GroupFiles::write(std::string_view name,
                         const std::string& value) const {
  if (int fd = opened(name); fd >= 0) return sys::write_full(fd, value);
  Fd fd = TRY(sys::openat(dir_.get(), std::string(name), O_WRONLY));
  return sys::write_full(fd.get(), value);
}

size_t GroupFiles::read(std::string_view name, std::span<char> out) const {
  Fd own;
  int fd = opened(name);
  if (fd < 0) {
    auto found = sys::openat(dir_.get(), std::string(name), O_RDONLY);
    if (!found) return 0;
    own = std::move(*found);
    fd = own.get();
  }
  const ssize_t n = ::pread(fd, out.data(), out.size(), 0);
  return n > 0 ? static_cast<size_t>(n) : 0;
}

bool CgroupPlaces::empty() const {
  return v2.empty() &&
         std::all_of(std::begin(v1), std::end(v1),
                     [](const std::string& path) { return path.empty(); });
}

CgroupPlaces parse_cgroups(const std::string& mountinfo,
                           const std::string& cgroup) {
  CgroupPlaces places;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    // id parent dev ROOT MOUNTPOINT options [fields] - TYPE source SUPEROPTIONS
    std::istringstream fields(line);
    std::string skip, root, mount, type, source, options;
    fields >> skip >> skip >> skip >> root >> mount;
    while (fields >> skip && skip != "-") {
    }
    fields >> type >> source >> options;
    if (type != "cgroup" && type != "cgroup2") continue;
    std::istringstream own(cgroup);
    for (std::string entry; std::getline(own, entry);) {
      const size_t first = entry.find(':');
      const size_t second = entry.find(':', first + 1);
      if (second == std::string::npos) continue;
      const std::string list = entry.substr(first + 1, second - first - 1);
      auto at = place(mount, root, entry.substr(second + 1));
      if (!at) continue;
      if (type == "cgroup2" && list.empty()) {
        // Beside us first: a group with processes cannot hand controllers down.
        if (*at != mount) places.v2.push_back(at->substr(0, at->rfind('/')));
        places.v2.push_back(*at);
      }
      for (size_t i = 0; type == "cgroup" && i < kControllers; ++i)
        if (has_word(list, kNames[i], ',') && has_word(options, kNames[i], ','))
          places.v1[i] = *at;
    }
  }
  return places;
}

CgroupPlaces find_cgroups() {
  auto mountinfo = sys::read_file(AT_FDCWD, "/proc/self/mountinfo", 4 << 20);
  auto cgroup = sys::read_file(AT_FDCWD, "/proc/self/cgroup", kMaxFile);
  if (!mountinfo || !cgroup) return {};
  return parse_cgroups(*mountinfo, *cgroup);
}

void sweep_cgroups(const CgroupPlaces& places,
                   std::chrono::milliseconds patience) {
  std::vector<std::string> parents = places.v2;
  parents.insert(parents.end(), std::begin(places.v1), std::end(places.v1));
  std::erase(parents, "");
  until_done(patience, [&] {
    return std::count_if(parents.begin(), parents.end(), sweep_place) ==
           std::ssize(parents);
  });
}

bool CgroupSet::make_v2(const std::string& parent, const std::string& name,
                        const MakeGroup& make) {
  auto found = sys::openat(AT_FDCWD, parent, O_PATH | O_DIRECTORY);
  if (!found) return false;
  const GroupFiles at(std::move(*found));
  // Where the controllers belong to version 1, there is nothing to be had.
  auto offered = sys::read_file(at.get(), "cgroup.controllers", kMaxFile);
  if (!offered || (offered->find("memory") == std::string::npos &&
                   offered->find("pids") == std::string::npos))
    return false;
  // Fails where it is not ours or already so; the controllers file tells.
  for (const char* enable : {"+memory", "+pids", "+cpu"})
    (void)at.write("cgroup.subtree_control", enable);
  if (!make(at.get(), name)) return false;
  v2_path_ = parent + "/" + name;
  auto dir = open_group(v2_path_);
  // A sweep was faster than our lock.
  if (!dir && make(at.get(), name)) dir = open_group(v2_path_);
  if (!dir) {
    (void)sys::unlinkat(at.get(), name, AT_REMOVEDIR);
    v2_path_.clear();
    return false;
  }
  auto controllers = sys::read_file(dir->get(), "cgroup.controllers", kMaxFile);
  std::string list = controllers ? *controllers : "";
  std::replace(list.begin(), list.end(), '\n', ' ');
  for (size_t i = 0; i < kControllers; ++i)
    v2_has_[i] = has_word(list, kNames[i], ' ');
  // CPU use is counted in every group of version 2.
  v2_has_[index(Controller::kCpuacct)] = true;
  if (!v2_has_[index(Controller::kMemory)] &&
      !v2_has_[index(Controller::kPids)]) {
    (void)sys::unlinkat(at.get(), name, AT_REMOVEDIR);
    v2_path_.clear();
    return false;
  }
  v2_ = GroupFiles(std::move(*dir));
  version_ = 2;
  open_ahead();
  return true;
}

CgroupSet CgroupSet::create(const CgroupPlaces& places, const std::string& name,
                            const MakeGroup& make) {
  const MakeGroup own = [](int parent, const std::string& made) {
    return sys::mkdirat(parent, made, 0755);
  };
  CgroupSet set;
  for (const std::string& parent : places.v2)
    if (set.make_v2(parent, name, make ? make : own)) return set;
  for (size_t i = 0; i < kControllers; ++i) {
    if (places.v1[i].empty()) continue;
    // cpu and cpuacct are often one hierarchy: then the second finds the
    // first's group.
    const std::string path = places.v1[i] + "/" + name;
    Result<Fd> dir = fail_errno(EACCES);
    for (int tries = 0; tries < 3 && !dir; ++tries) {
      auto made = sys::mkdirat(AT_FDCWD, path, 0755);
      if (!made && made.error().err() != EEXIST) break;
      dir = open_group(path);
    }
    if (!dir) continue;
    set.v1_[i] = {path, GroupFiles(std::move(*dir))};
    set.version_ = 1;
  }
  set.open_ahead();
  return set;
}

void CgroupSet::open_ahead() {
  auto keep = [](GroupFiles& dir, std::initializer_list<const char*> names,
                 int flags) {
    if (!dir) return;
    for (const char* name : names) dir.keep_open(name, flags);
  };
  keep(v2_, {"memory.max", "memory.swap.max", "memory.oom.group", "pids.max"},
       O_WRONLY);
  keep(v2_,
       {"cpu.stat", "memory.peak", "pids.peak", "memory.events", "pids.events"},
       O_RDONLY);
  GroupFiles& memory = v1_[index(Controller::kMemory)].dir;
  keep(memory, {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"},
       O_WRONLY);
  keep(memory, {"memory.max_usage_in_bytes", "memory.oom_control"}, O_RDONLY);
  GroupFiles& pids = v1_[index(Controller::kPids)].dir;
  keep(pids, {"pids.max"}, O_WRONLY);
  keep(pids, {"pids.peak", "pids.events"}, O_RDONLY);
  keep(v1_[index(Controller::kCpuacct)].dir,
       {"cpuacct.usage", "cpuacct.usage_user", "cpuacct.usage_sys"}, O_RDONLY);
}

const CgroupSet::Group* CgroupSet::group(Controller controller) const {
  const Group& found = v1_[index(controller)];
  return found.dir ? &found : nullptr;
}

bool CgroupSet::has(Controller controller) const {
  if (version_ == 2) return v2_has_[index(controller)];
  return group(controller) != nullptr;
}

Result<std::vector<Fd>> CgroupSet::join_fds() const {
  std::vector<Fd> fds;
  std::string seen;
  for (const Group& one : v1_) {
    if (!one.dir || one.path == seen) continue;
    seen = one.path;
    fds.push_back(TRY(sys::openat(one.dir.get(), "tasks", O_WRONLY)));
  }
  return fds;
}

Status CgroupSet::limit_memory(uint64_t bytes) {
  const std::string value = fmt::format("{}", bytes);
  if (version_ == 2) {
    TRY(v2_.write("memory.max", value));
    // Without swap accounting in this kernel the files are absent.
    (void)v2_.write("memory.swap.max", "0");
    return v2_.write("memory.oom.group", "1");
  }
  const GroupFiles& dir = v1_[index(Controller::kMemory)].dir;
  TRY(dir.write("memory.limit_in_bytes", value));
  (void)dir.write("memory.memsw.limit_in_bytes", value);
  return {};
}

Status CgroupSet::limit_pids(uint64_t count) {
  // init is in the group too.
  const std::string value = fmt::format("{}", count + 1);
  const GroupFiles& dir =
      version_ == 2 ? v2_ : v1_[index(Controller::kPids)].dir;
  return dir.write("pids.max", value);
}

Status CgroupSet::limit_cpus(double cpus) {
  constexpr double kPeriod = 100000;
  const auto quota =
      std::max<uint64_t>(1000, static_cast<uint64_t>(cpus * kPeriod + 0.5));
  if (version_ == 2)
    return v2_.write("cpu.max", fmt::format("{} 100000", quota));
  const GroupFiles& dir = v1_[index(Controller::kCpu)].dir;
  TRY(dir.write("cpu.cfs_period_us", "100000"));
  return dir.write("cpu.cfs_quota_us", fmt::format("{}", quota));
}

CgroupUsage CgroupSet::usage() const {
  CgroupUsage usage;
  if (version_ == 2) {
    const GroupFiles& dir = v2_;
    const Small cpu(dir, "cpu.stat");
    usage.cpu_us = cpu.at("usage_usec");
    usage.user_us = cpu.at("user_usec");
    usage.system_us = cpu.at("system_usec");
    usage.memory_peak = read_value(dir, "memory.peak");
    usage.pids_peak = read_value(dir, "pids.peak");
    usage.oom_kills = Small(dir, "memory.events").at("oom_kill").value_or(0);
    usage.pids_refused = Small(dir, "pids.events").at("max").value_or(0);
    return usage;
  }
  if (const Group* cpu = group(Controller::kCpuacct)) {
    auto micros = [&](const char* name) -> std::optional<uint64_t> {
      auto ns = read_value(cpu->dir, name);
      if (!ns) return std::nullopt;
      return *ns / 1000;
    };
    usage.cpu_us = micros("cpuacct.usage");
    usage.user_us = micros("cpuacct.usage_user");
    usage.system_us = micros("cpuacct.usage_sys");
  }
  if (const Group* memory = group(Controller::kMemory)) {
    const GroupFiles& dir = memory->dir;
    usage.memory_peak = read_value(dir, "memory.max_usage_in_bytes");
    usage.oom_kills =
        Small(dir, "memory.oom_control").at("oom_kill").value_or(0);
  }
  if (const Group* pids = group(Controller::kPids)) {
    const GroupFiles& dir = pids->dir;
    usage.pids_peak = read_value(dir, "pids.peak");
    usage.pids_refused = Small(dir, "pids.events").at("max").value_or(0);
  }
  return usage;
}

bool CgroupSet::remove(std::chrono::milliseconds patience) {
  return until_done(patience, [this] { return remove_now(); });
}

bool CgroupSet::remove_now() {
  bool gone = true;
  auto drop = [&](std::string& path, GroupFiles& dir) {
    if (path.empty()) return;
    if (::rmdir(path.c_str()) < 0 && errno != ENOENT) {
      gone = false;
      return;
    }
    path.clear();
    dir = {};
  };
  for (Group& one : v1_) drop(one.path, one.dir);
  drop(v2_path_, v2_);
  return gone;
}

}  // namespace stoplog::jail
