// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/units.h"

namespace stoplog::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
volatile sig_atomic_t g_signal = 0;
int g_users = 0;
struct sigaction g_before[std::size(kSignals)];

void note_signal(int signal) { g_signal = signal; }

void paint(std::string_view text) {
  (void)!::write(2, text.data(), text.size());
}

}  // namespace

int interrupted_by() { return g_signal; }

Progress::Progress(Output& out, std::string what, uint64_t total)
    : out_(out),
      what_(std::move(what)),
      total_(total),
      shown_(::isatty(2) == 1),
      start_(Clock::now()) {
  if (g_users++ > 0) return;
  struct sigaction action{};
  action.sa_handler = note_signal;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    ::sigaction(kSignals[i], nullptr, &g_before[i]);
    // Who started us with a signal ignored (nohup) wants it so.
    if (g_before[i].sa_handler != SIG_IGN)
      ::sigaction(kSignals[i], &action, nullptr);
  }
}

Progress::~Progress() {
  if (painted_) paint("\r\x1b[K");
  if (--g_users > 0) return;
  for (size_t i = 0; i < std::size(kSignals); ++i)
    ::sigaction(kSignals[i], &g_before[i], nullptr);
}

Status Progress::at(uint64_t done) {
  using std::chrono::milliseconds;
  if (g_signal != 0) return fail_errno(EINTR, "{} was interrupted", what_);
  if (!shown_) return {};
  auto now = Clock::now();
  if (now - start_ < milliseconds(1000) || now - last_ < milliseconds(100))
    return {};
  last_ = now;
  painted_ = true;
  std::string line = fmt::format("\r{} {}", what_, print_size(done));
  if (total_ > 0)
    line = fmt::format("\r{} {:>3} %  {} of {}", what_,
                       std::min<uint64_t>(100, done / (total_ / 100 + 1)),
                       print_size(done), print_size(total_));
  out_.flush();
  paint(line + "\x1b[K");
  return {};
}

}  // namespace stoplog::cli
