// SPDX-License-Identifier: Apache-2.0
// Small file operations, each timed by itself, for the benchmark: an
// interpreter would cost more than what is measured.
//
// usage: bench_ops WHAT DIR COUNT
//   create   COUNT files of 4 KiB: open(O_CREAT), write, close
//   read     open, read 4 KiB, close of COUNT files that `create` made
//   append   COUNT writes of 4 KiB to one file
//   unlink   COUNT unlinks of what `create` made
//   stat     COUNT lstat calls of what `create` made
// Prints nanoseconds: "total min median p99 max".
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

void check(bool ok, const char* what) {
  if (!ok) die(what);
}

char g_block[4096];

std::string name_of(int i) { return "f" + std::to_string(i); }

void create(int dir, int i) {
  int fd =
      ::openat(dir, name_of(i).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  check(fd >= 0, "create");
  check(::write(fd, g_block, sizeof g_block) == sizeof g_block, "write");
  ::close(fd);
}

void read(int dir, int i) {
  int fd = ::openat(dir, name_of(i).c_str(), O_RDONLY | O_CLOEXEC);
  check(fd >= 0, "open");
  check(::read(fd, g_block, sizeof g_block) > 0, "read");
  ::close(fd);
}

void run(int count, const std::function<void(int)>& operation) {
  std::vector<long> each;
  each.reserve(static_cast<size_t>(count));
  auto begin = Clock::now();
  auto last = begin;
  for (int i = 0; i < count; ++i) {
    operation(i);
    auto now = Clock::now();
    each.push_back(static_cast<long>((now - last).count()));
    last = now;
  }
  std::sort(each.begin(), each.end());
  std::printf("%ld %ld %ld %ld %ld\n",
              static_cast<long>((last - begin).count()), each.front(),
              each[each.size() / 2], each[each.size() * 99 / 100], each.back());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || std::atoi(argv[3]) <= 0) {
    std::fputs("usage: bench_ops create|read|append|unlink|stat DIR COUNT\n",
               stderr);
    return 2;
  }
  std::string what = argv[1];
  int count = std::atoi(argv[3]);
  int dir = ::open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  check(dir >= 0, argv[2]);
  if (what == "create") {
    run(count, [&](int i) { create(dir, i); });
  } else if (what == "read") {
    run(count, [&](int i) { read(dir, i); });
  } else if (what == "unlink") {
    run(count, [&](int i) {
      check(::unlinkat(dir, name_of(i).c_str(), 0) == 0, "unlink");
    });
  } else if (what == "stat") {
    run(count, [&](int i) {
      struct stat s{};
      check(::fstatat(dir, name_of(i).c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0,
            "stat");
    });
  } else if (what == "append") {
    int fd =
        ::openat(dir, "log", O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
    check(fd >= 0, "log");
    run(count, [&](int) {
      check(::write(fd, g_block, sizeof g_block) == sizeof g_block, "write");
    });
  } else {
    return 2;
  }
  return 0;
}
