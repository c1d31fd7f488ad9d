// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

namespace stoplog {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr int64_t kImpatient = 1000;  // ms; timeout(1) sends two at once

// All of them are lock-free, and so fit for a signal handler.
std::atomic<int> g_holds = 0;
std::atomic<int> g_signal = 0;
std::atomic<bool> g_noted = false;  // g_signal is not 0
std::atomic<bool> g_told = false;   // by check_interrupt()
std::atomic<int64_t> g_when = 0;    // of the first one
std::atomic<const char*> g_line = nullptr;
std::atomic<bool> g_painted = false;

void die(int signal) {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  ::sigaction(signal, &standard, nullptr);
  ::raise(signal);
}

void say(const char* text) { (void)!::write(2, text, std::strlen(text)); }

int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

void on_signal(int signal) {
  const int error = errno;
  int none = 0;
  const bool first = g_signal.compare_exchange_strong(none, signal);
  if (first) {
    g_when = now();
    g_noted = true;
    if (g_painted.exchange(false)) say("\r\x1b[K");
    if (const char* line = g_line) say(line);
  }
  // Blocked while we are here: it comes when we return.
  if (g_holds == 0 || (!first && now() - g_when >= kImpatient)) die(signal);
  errno = error;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = on_signal;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (int signal : kSignals) {
    struct sigaction before{};
    ::sigaction(signal, &action, &before);
    if (before.sa_handler == SIG_IGN) ::sigaction(signal, &before, nullptr);
  }
}

Hold::Hold() { ++g_holds; }

void Hold::release() {
  if (!std::exchange(mine_, false)) return;
  if (--g_holds == 0 && !g_told) end_if_interrupted();
}

Status check_interrupt() {
  if (g_signal == 0) return {};
  g_told = true;
  return fail_errno(EINTR);
}

int noted_interrupt() { return g_signal; }

const std::atomic<bool>& interrupt_flag() { return g_noted; }

void end_if_interrupted() {
  if (int signal = g_signal; signal != 0) die(signal);
}

OnInterrupt::OnInterrupt(const char* line) : before_(g_line.exchange(line)) {}

OnInterrupt::~OnInterrupt() { g_line = before_; }

void note_painted(bool painted) { g_painted = painted; }

}  // namespace stoplog
