// SPDX-License-Identifier: Apache-2.0
#include "fs/warm.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

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
  Walk(const WarmLimits& given, int at, uint64_t on)
      : limits(given), root(at), device(on) {}

  const WarmLimits& limits;
  int root;
  uint64_t device;
  Warmed done;
  std::deque<std::string> left;
  std::vector<std::byte> buffer;

  bool full() const { return done.nodes >= limits.nodes; }

  // Asks for the names of one directory; what is known of each comes along.
  // Puts its directories on the list, and into `files` the others if wanted.
  Result<Fd> visit(const std::string& path, std::vector<std::string>* files) {
    Fd dir = TRY(sys::open_beneath(root, path.empty() ? "." : path,
                                   O_RDONLY | O_DIRECTORY | O_NONBLOCK));
    if (TRY(sys::fstat(dir.get())).dev != device) return dir;
    ++done.directories;
    TRY(sys::list_dir(
        dir.get(), [&](std::string_view name, unsigned char type, uint64_t) {
          if (full()) return;
          ++done.nodes;
          if (type == DT_REG && files != nullptr)
            files->emplace_back(name);
          else if (type == DT_DIR && left.size() < kMostWaiting &&
                   path.size() < kLongestPath && !is_left_cold(path, name))
            left.push_back(path.empty() ? std::string(name)
                                        : path + "/" + std::string(name));
        }));
    // To be read gave it another access time, which the kernel asks for once.
    (void)sys::fstat(dir.get());
    return dir;
  }

  Status read(int dir, const std::string& name) {
    Fd file = TRY(sys::openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    const sys::Stat found = TRY(sys::fstat(file.get()));
    if (!S_ISREG(found.mode) || found.dev != device || found.size == 0 ||
        found.size > limits.largest || done.bytes + found.size > limits.bytes)
      return {};
    buffer.resize(limits.largest);
    done.bytes += TRY(
        sys::pread_full(file.get(), std::span(buffer).first(found.size), 0));
    (void)sys::fstat(file.get());  // as above
    return {};
  }

  // All of the mount from the top, names or contents.
  Status go(bool contents) {
    left = {""};
    done.nodes = done.directories = 0;
    while (!left.empty() && !full()) {
      const std::string path = std::move(left.front());
      left.pop_front();
      const auto began = Clock::now();
      std::vector<std::string> files;
      auto dir = visit(path, contents ? &files : nullptr);
      // The mount has ended.
      if (!dir &&
          (dir.error().err() == ENOTCONN || dir.error().err() == ECONNABORTED))
        return std::unexpected(std::move(dir).error());
      if (dir)
        for (const std::string& name : files) (void)read(dir->get(), name);
      if (limits.rest)
        std::this_thread::sleep_for(std::min<Clock::duration>(
            2 * (Clock::now() - began), std::chrono::milliseconds(100)));
    }
    return {};
  }
};

}  // namespace

bool is_left_cold(std::string_view parent, std::string_view name) {
  if (std::ranges::find(kCold, name) != kCold.end()) return true;
  return name == "objects" && (parent == ".git" || parent.ends_with("/.git"));
}

Result<Warmed> warm(const std::string& mount, const WarmLimits& limits) {
  Fd root = TRY(sys::openat(AT_FDCWD, mount, O_RDONLY | O_DIRECTORY));
  Walk walk(limits, root.get(), TRY(sys::fstat(root.get())).dev);
  TRY(walk.go(false));
  if (limits.bytes > 0) TRY(walk.go(true));
  return walk.done;
}

}  // namespace stoplog::fs
