// SPDX-License-Identifier: Apache-2.0
// /bin/true from inside a resident process, start to exit, interleaved: plain
// fork and exec, a command in a jail that stands (with its init prepared, and
// without), and a whole cold jail.
//
//   bench_jail [ROUNDS]        as root or as a user; over a scratch directory
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "jail/supervise.h"
#include "jail/zygote.h"

using namespace stoplog;
using namespace stoplog::jail;
using Clock = std::chrono::steady_clock;

namespace {

int g_null = -1;

double since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin)
      .count();
}

double plain() {
  const auto begin = Clock::now();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execl("/bin/true", "true", nullptr);
    ::_exit(127);
  }
  ::waitpid(pid, nullptr, 0);
  return since(begin);
}

JailSpec make_spec(const std::string& dir) {
  JailSpec spec;
  Identity& id = spec.identity;
  id.host_uid = id.uid = ::getuid();
  id.host_gid = id.gid = ::getgid();
  if (::getuid() == 0) {
    id.host_uid = id.host_gid = 65533;
    id.uid = id.gid = 1000;
  }
  spec.workspace = "/home/user/w";
  spec.workspace_tree.path = dir;
  spec.home = "/home/user";
  return spec;
}

double run(Zygote& zygote, const JailSpec& spec) {
  CommandSpec command;
  command.argv = {"/bin/true"};
  command.cwd = spec.workspace;
  double took = 0;
  const auto begin = Clock::now();
  auto running = zygote.spawn(command, {g_null, g_null, g_null});
  if (!running) {
    std::fprintf(stderr, "bench_jail: %s\n", running.error().text().c_str());
    std::exit(1);
  }
  supervise(**running,
            {.on_end = [&](const Outcome&) { took = since(begin); }});
  return took;
}

double cold(const JailSpec& spec) {
  const auto begin = Clock::now();
  auto zygote = Zygote::start(spec);
  if (!zygote) {
    std::fprintf(stderr, "bench_jail: %s\n", zygote.error().text().c_str());
    std::exit(1);
  }
  run(*zygote, spec);
  return since(begin);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
  g_null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  char dir[] = "/tmp/bench_jail.XXXXXX";
  if (::mkdtemp(dir) == nullptr || ::chmod(dir, 0755) < 0) return 1;
  const JailSpec spec = make_spec(dir);
  std::map<std::string, std::vector<double>> times;
  {
    auto zygote = Zygote::start(spec);
    if (!zygote || !zygote->wait_ready()) return 1;
    run(*zygote, spec);
    for (int i = 0; i < rounds; ++i) {
      times["1 plain"].push_back(plain());
      zygote->prepare_next();
      ::usleep(2000);
      times["2 warm, init prepared"].push_back(run(*zygote, spec));
      times["3 warm"].push_back(run(*zygote, spec));
      times["4 cold"].push_back(cold(spec));
    }
  }
  ::rmdir(dir);
  for (auto& [name, all] : times) {
    std::sort(all.begin(), all.end());
    std::printf("%-22s min %.2f ms, median %.2f ms, %d rounds\n", name.c_str(),
                all.front(), all[all.size() / 2], rounds);
  }
}
