// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>

#include "base/interrupt.h"
#include "base/units.h"

namespace stoplog::cli {
namespace {

void paint(std::string_view text) {
  (void)!::write(2, text.data(), text.size());
}

}  // namespace

Progress::Progress(Output& out, std::string what, uint64_t total)
    : out_(out),
      what_(std::move(what)),
      total_(total),
      shown_(::isatty(2) == 1),
      start_(Clock::now()) {}

Progress::~Progress() {
  if (!painted_) return;
  paint("\r\x1b[K");
  note_painted(false);
}

Status Progress::at(uint64_t done) {
  using std::chrono::milliseconds;
  TRY(check_interrupt());
  if (!shown_) return {};
  auto now = Clock::now();
  if (now - start_ < milliseconds(1000) || now - last_ < milliseconds(100))
    return {};
  last_ = now;
  painted_ = true;
  note_painted(true);
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
