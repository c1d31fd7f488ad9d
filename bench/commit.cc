// SPDX-License-Identifier: Apache-2.0
// How long a commit takes beside `cp -a` of the same files and a sync.
//
//   bench_commit DIR [FILES] [replace|create] [ROUNDS]
//
// Works in DIR/stoplog-bench-commit, which it makes and removes. Copy and
// commit take turns, ROUNDS (3) times; one line of JSON with the medians:
// milliseconds of the copy, of the commit's parts, until durable and until its
// stage is clean, of the undo, and the ratios of these to the copy of the same
// round. The switch is from before the first rename until after the last; what
// is held still before it and looked at after it is "guard".
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

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

struct Round {
  double copy = 0, verify = 0, stage = 0, switched = 0, guard = 0, durable = 0,
         clean = 0, undo = 0;
};

int measure(const std::string& top, int count, bool create, Round& round) {
  for (const char* dir : {"/ws", "/draft", "/state", "/objects"})
    std::filesystem::create_directories(top + dir);
  if (!create) make_files(top + "/ws", count, "old");
  make_files(top + "/draft", count, "new");
  run("sync -f " + top);
  // What was changed in this moment is read twice by a commit; a real tree was
  // not.
  std::this_thread::sleep_for(std::chrono::seconds(4));
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
  round = {.copy = copy,
           .verify = Millis(t.verify).count(),
           .stage = Millis(t.stage - t.verify).count(),
           .switched = Millis(t.mixed).count(),
           .guard = Millis(t.switched - t.stage - t.mixed).count(),
           .durable = Millis(t.durable).count(),
           .clean = Millis(t.total).count(),
           .undo = undo};
  return 0;
}

template <typename Value>
double median(const std::vector<Round>& rounds, Value value) {
  std::vector<double> all;
  for (const Round& round : rounds) all.push_back(value(round));
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

void report(const std::vector<Round>& rounds, int count, bool create) {
  auto of = [&](double Round::* field) {
    return median(rounds, [&](const Round& r) { return r.*field; });
  };
  auto ratio = [&](double Round::* field) {
    return median(rounds, [&](const Round& r) { return r.*field / r.copy; });
  };
  std::printf(
      "{\"files\":%d,\"kind\":\"%s\",\"rounds\":%zu,"
      "\"copy_sync_ms\":%.1f,\"verify_ms\":%.1f,\"stage_ms\":%.1f,"
      "\"switch_ms\":%.1f,\"guard_ms\":%.1f,\"durable_ms\":%.1f,"
      "\"clean_ms\":%.1f,\"undo_ms\":%.1f,\"switch_ratio\":%.2f,"
      "\"durable_ratio\":%.2f,\"clean_ratio\":%.2f,\"undo_ratio\":%.2f}\n",
      count, create ? "create" : "replace", rounds.size(), of(&Round::copy),
      of(&Round::verify), of(&Round::stage), of(&Round::switched),
      of(&Round::guard), of(&Round::durable), of(&Round::clean),
      of(&Round::undo), ratio(&Round::switched), ratio(&Round::durable),
      ratio(&Round::clean), ratio(&Round::undo));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: bench_commit DIR [FILES] [replace|create] "
                 "[ROUNDS]\n");
    return 2;
  }
  std::string top = std::string(argv[1]) + "/stoplog-bench-commit";
  int count = argc > 2 ? std::atoi(argv[2]) : 10000;
  bool create = argc > 3 && std::string(argv[3]) == "create";
  int count_of_rounds = argc > 4 ? std::atoi(argv[4]) : 3;
  std::vector<Round> rounds;
  for (int i = 0; i < count_of_rounds; ++i) {
    std::filesystem::remove_all(top);
    int status = measure(top, count, create, rounds.emplace_back());
    std::filesystem::remove_all(top);
    if (status != 0) return status;
  }
  if (!rounds.empty()) report(rounds, count, create);
  return 0;
}
