// SPDX-License-Identifier: Apache-2.0
// How long a commit takes beside `cp -a` of the same files and a sync.
//
//   bench_commit DIR [FILES] [replace|create]
//
// Works in DIR/stoplog-bench-commit, which it makes and removes. Prints one
// line of JSON: milliseconds of the copy, of the commit until durable and until
// its stage is clean, of the renames alone, and of the undo.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/sys_file.h"
#include "gate/gate.h"

namespace {

using namespace stoplog;
using Clock = std::chrono::steady_clock;
using Millis = std::chrono::duration<double, std::milli>;

void make_files(const std::string& top, int count, const std::string& tag) {
  for (int i = 0; i < count; ++i) {
    std::string dir = top + "/d" + std::to_string(i / 100);
    if (i % 100 == 0) std::filesystem::create_directories(dir);
    std::ofstream(dir + "/f" + std::to_string(i))
        << tag << i
        << std::string(static_cast<size_t>(1000 + i * 37 % 3000),
                       static_cast<char>('a' + i % 26));
  }
}

Fd open_dir(const std::string& path) {
  auto fd = sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  return fd ? std::move(*fd) : Fd();
}

double run(const std::string& command) {
  auto start = Clock::now();
  if (std::system(command.c_str()) != 0) std::exit(1);
  return Millis(Clock::now() - start).count();
}

int fail_with(const Error& error) {
  std::fprintf(stderr, "bench_commit: %s\n", error.text().c_str());
  return 1;
}

int measure(const std::string& top, int count, bool create) {
  for (const char* dir : {"/ws", "/draft", "/state", "/objects"})
    std::filesystem::create_directories(top + dir);
  if (!create) make_files(top + "/ws", count, "old");
  make_files(top + "/draft", count, "new");
  run("sync -f " + top);
  double copy =
      run("cp -a " + top + "/draft " + top + "/copy && sync -f " + top);
  Fd root = open_dir(top + "/ws"), side = open_dir(top + "/draft");
  Fd state = open_dir(top + "/state"), objects = open_dir(top + "/objects");
  auto store = snapshot::ObjectStore::open(objects.get());
  if (!store) return fail_with(store.error());
  auto view = fs::view_of_directories(root.get(), side.get());
  auto set = diff::build_change_set(*view, {});
  if (!set) return fail_with(set.error());
  gate::Plan plan;
  gate::ApproveRequest all;
  all.all = all.danger = true;
  if (auto done = gate::approve(plan, *set, all); !done)
    return fail_with(done.error());
  gate::Ground ground{
      .root = root.get(), .state = state.get(), .objects = &*store};
  auto result =
      gate::commit({.ground = ground, .set = &*set, .plan = &plan, .meta = {}});
  if (!result) return fail_with(result.error());
  auto start = Clock::now();
  auto undone = gate::undo({.ground = ground, .number = {}, .meta = {}});
  double undo = Millis(Clock::now() - start).count();
  if (!undone) return fail_with(undone.error());
  const gate::Timing& t = result->timing;
  std::printf(
      "{\"files\":%d,\"kind\":\"%s\",\"copy_sync_ms\":%.1f,"
      "\"durable_ms\":%.1f,\"clean_ms\":%.1f,\"switch_ms\":%.1f,"
      "\"undo_ms\":%.1f,\"durable_ratio\":%.2f,\"clean_ratio\":%.2f}\n",
      count, create ? "create" : "replace", copy, Millis(t.durable).count(),
      Millis(t.total).count(), Millis(t.switched - t.stage).count(), undo,
      Millis(t.durable).count() / copy, Millis(t.total).count() / copy);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: bench_commit DIR [FILES] [replace|create]\n");
    return 2;
  }
  std::string top = std::string(argv[1]) + "/stoplog-bench-commit";
  int count = argc > 2 ? std::atoi(argv[2]) : 10000;
  bool create = argc > 3 && std::string(argv[3]) == "create";
  std::filesystem::remove_all(top);
  int status = measure(top, count, create);
  std::filesystem::remove_all(top);
  return status;
}
