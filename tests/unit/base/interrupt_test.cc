// SPDX-License-Identifier: Apache-2.0
// Each case is a child: what a signal does to a process cannot be seen within.
#include "base/interrupt.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <functional>

#include "base/dir.h"
#include "base/temp_file.h"
#include "catch_shim.h"
#include "scratch.h"

using namespace stoplog;

namespace {

// The signal that ended it, or 100 and its exit code.
int end_of(const std::function<int()>& child) {
  pid_t pid = ::fork();
  if (pid == 0) {
    catch_interrupts();
    ::_exit(child());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 100 + WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("without a hold a signal ends the process at once") {
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    CHECK(end_of([=] {
            ::raise(signal);
            return 1;
          }) == signal);
}

TEST_CASE("a signal waits for the last hold and then ends the process") {
  CHECK(end_of([] {
          Hold outer;
          {
            Hold inner;
            ::raise(SIGTERM);
          }
          if (noted_interrupt() != SIGTERM) return 1;
          outer.release();
          return 2;
        }) == SIGTERM);
  CHECK(end_of([] {
          Hold hold;
          Hold moved = std::move(hold);
          hold.release();
          ::raise(SIGINT);
          ::_exit(3);  // still held
          return 0;
        }) == 103);
}

TEST_CASE("who asks is told once and unwinds by itself") {
  CHECK(end_of([] {
          {
            Hold hold;
            if (!check_interrupt()) return 1;
            ::raise(SIGINT);
            auto told = check_interrupt();
            if (told || told.error().err() != EINTR) return 2;
            if (told.error().text() != "interrupted") return 3;
          }
          end_if_interrupted();
          return 4;
        }) == SIGINT);
}

TEST_CASE("two signals at once are one") {
  CHECK(end_of([] {
          Hold hold;
          ::raise(SIGTERM);
          ::raise(SIGTERM);  // as timeout(1) sends them
          ::_exit(5);        // still held
          return 0;
        }) == 105);
}

TEST_CASE(
    "two signals at once are one when a second of the clock ends between") {
  CHECK(end_of([] {
          Hold hold;
          timespec now{};
          ::clock_gettime(CLOCK_MONOTONIC, &now);
          timespec just_before{.tv_sec = now.tv_sec + 1,
                               .tv_nsec = 970'000'000};
          ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &just_before,
                            nullptr);
          ::raise(SIGTERM);
          ::usleep(40'000);
          ::raise(SIGTERM);
          ::_exit(5);
          return 0;
        }) == 105);
}

TEST_CASE("a signal that was ignored from the beginning stays so") {
  pid_t pid = ::fork();
  if (pid == 0) {
    ::signal(SIGHUP, SIG_IGN);
    catch_interrupts();
    ::raise(SIGHUP);
    ::_exit(7);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("a temporary file is gone when Ctrl-C comes while it is written") {
  Scratch scratch;
  CHECK(end_of([&] {
          {
            auto file = TempFile::create(scratch.fd(), 0600);
            ::raise(SIGINT);
            if (list_names(scratch.fd(), ".")->empty())
              return 1;  // not before its time
          }
          return 2;
        }) == SIGINT);
  CHECK(list_names(scratch.fd(), ".")->empty());
  CHECK(end_of([&] {
          auto file = TempFile::create(scratch.fd(), 0600);
          ::raise(SIGINT);
          (void)file->commit("whole", Replace::kYes, Sync::kNo);
          return 3;
        }) == SIGINT);
  CHECK(*list_names(scratch.fd(), ".") == std::vector<std::string>{"whole"});
}
