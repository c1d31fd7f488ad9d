// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_line.h"

#include <unistd.h>

#include <cstdlib>

#include "base/interrupt.h"
#include "base/sys_file.h"

namespace stoplog::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 500ms;
constexpr auto kEvery = 100ms;

}  // namespace

int terminal_for_errors() {
  const char* term = ::getenv("TERM");
  bool dumb = term == nullptr || std::string_view(term) == "dumb";
  return !dumb && ::isatty(2) == 1 ? 2 : -1;
}

ProgressLine::ProgressLine(std::string what)
    : ProgressLine(std::move(what), terminal_for_errors(), Clock::real()) {}

ProgressLine::ProgressLine(std::string what, int fd, const Clock& clock)
    : what_(std::move(what)),
      fd_(fd),
      clock_(clock),
      next_(clock.steady() + kPatience) {}

void ProgressLine::update(size_t done, size_t total) {
  if (fd_ < 0 || total == 0) return;
  auto now = clock_.steady();
  if (now < next_) return;
  next_ = now + kEvery;
  drawn_ = true;
  note_painted(true);
  (void)sys::write_full(fd_, fmt::format("\r\x1b[K{}: {} of {} ({} %)", what_,
                                         done, total, done * 100 / total));
}

void ProgressLine::clear() {
  if (!drawn_) return;
  (void)sys::write_full(fd_, "\r\x1b[K");
  note_painted(false);
  drawn_ = false;
}

std::function<bool(size_t, size_t)> ProgressLine::callback() {
  return [this](size_t done, size_t total) {
    update(done, total);
    return true;
  };
}

}  // namespace stoplog::cli
