// SPDX-License-Identifier: Apache-2.0
#include "fs/warm.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <string_view>
#include <thread>

#include "base/sys_file.h"
#include "base/sys_node.h"

namespace stoplog::fs {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::string_view, 12> kCold = {
    "node_modules", "target", "build", "dist",  ".venv", "venv",
    "__pycache__",  ".cache", ".tox",  "_deps", ".next", ".gradle"};

// An agent may have made any tree: names that wait are few and short.
constexpr size_t kMostWaiting = 10'000;
constexpr size_t kLongestPath = 1024;

struct Walk {
  size_t most = 0;
  Warmed done;
  std::deque<std::string> left;

  // Asks for the names of one directory, and for what of each the answer did
  // not bring along.
  Status visit(int root, const std::string& path) {
    Fd dir = TRY(sys::open_beneath(root, path.empty() ? "." : path,
                                   O_RDONLY | O_DIRECTORY | O_NONBLOCK));
    if (TRY(sys::fstat(dir.get())).dev != device) return {};
    ++done.directories;
    std::vector<std::string> others;
    TRY(sys::list_dir(
        dir.get(), [&](std::string_view name, unsigned char type, uint64_t) {
          if (done.nodes >= most) return;
          ++done.nodes;
          if (type != DT_DIR)
            others.emplace_back(name);
          else if (left.size() < kMostWaiting && path.size() < kLongestPath &&
                   !is_left_cold(path, name))
            left.push_back(path.empty() ? std::string(name)
                                        : path + "/" + std::string(name));
        }));
    // To be read gave it another access time, which the kernel asks for once.
    (void)sys::fstat(dir.get());
    for (const std::string& name : others) (void)sys::statat(dir.get(), name);
    return {};
  }

  uint64_t device = 0;
};

}  // namespace

bool is_left_cold(std::string_view parent, std::string_view name) {
  if (std::ranges::find(kCold, name) != kCold.end()) return true;
  return name == "objects" && (parent == ".git" || parent.ends_with("/.git"));
}

Result<Warmed> warm(const std::string& mount, const WarmLimits& limits) {
  Fd root = TRY(sys::openat(AT_FDCWD, mount, O_RDONLY | O_DIRECTORY));
  Walk walk{.most = limits.nodes, .done = {}, .left = {""}};
  walk.device = TRY(sys::fstat(root.get())).dev;
  while (!walk.left.empty() && walk.done.nodes < walk.most) {
    std::string path = std::move(walk.left.front());
    walk.left.pop_front();
    auto began = Clock::now();
    if (auto seen = walk.visit(root.get(), path); !seen) {
      // The mount has ended.
      if (seen.error().err() == ENOTCONN || seen.error().err() == ECONNABORTED)
        return std::unexpected(std::move(seen).error());
    }
    if (limits.rest)
      std::this_thread::sleep_for(std::min<Clock::duration>(
          2 * (Clock::now() - began), std::chrono::milliseconds(100)));
  }
  return walk.done;
}

}  // namespace stoplog::fs
