// SPDX-License-Identifier: Apache-2.0
#include "cli/review_wait.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/escape.h"
#include "cli/review_text.h"

namespace stoplog::cli {
namespace {

// Below this nobody sees a pause, and no screen comes and goes for nothing.
constexpr int kPatienceMs = 100;
constexpr int kEveryMs = 100;

}  // namespace

Result<std::unique_ptr<Preparation>> Preparation::start(Work work) {
  Fd ready = TRY(sys::event_fd());
  Fd early_ready = TRY(sys::event_fd());
  return std::unique_ptr<Preparation>(new Preparation(
      std::move(work), std::move(ready), std::move(early_ready)));
}

Preparation::Preparation(Work work, Fd ready, Fd early_ready)
    : ready_(std::move(ready)), early_ready_(std::move(early_ready)) {
  auto tell = [this](size_t done, size_t total) {
    total_ = total;
    done_ = done;
    return true;
  };
  auto early = [this](EarlyList list) {
    if (list.set.empty()) return;
    {
      std::lock_guard lock(mutex_);
      early_ = std::make_unique<EarlyList>(std::move(list));
    }
    sys::raise_event(early_ready_.get());
  };
  thread_ = std::thread([this, work = std::move(work), tell, early] {
    work(tell, early);
    sys::raise_event(ready_.get());
  });
}

std::unique_ptr<EarlyList> Preparation::take_early() {
  std::lock_guard lock(mutex_);
  return std::exchange(early_, nullptr);
}

Frame waiting_frame(const std::string& title, size_t done, size_t total,
                    int columns, int rows) {
  Frame frame{.columns = columns, .rows = {}, .cursor = {}};
  frame.rows.resize(static_cast<size_t>(std::max(rows, 0)));
  auto width = static_cast<size_t>(std::max(columns, 0));
  auto put = [&](int row, std::string text, Ink ink, bool reverse) {
    if (row < 0 || row >= rows) return;
    text = slice(text, 0, width).text;
    frame.rows[static_cast<size_t>(row)].push_back(
        {.column = 0, .text = std::move(text), .ink = ink, .reverse = reverse});
  };
  std::string head = " stoplog review  " + escape(title);
  if (display_width(head) < width)
    head.append(width - display_width(head), ' ');
  put(0, head, Ink::kStrong, true);
  put(2,
      total == 0 ? "  reading what the draft holds"
                 : fmt::format("  looking at {} of {} changes", done, total),
      Ink::kPlain, false);
  put(rows - 1, " q leaves", Ink::kFaint, false);
  return frame;
}

Result<Waited> wait_on_screen(Preparation& work, const WaitOptions& options,
                              sys::SignalWatch& signals) {
  Waited out;
  int timeout = kPatienceMs;
  while (true) {
    // Keys are read on the screen alone.
    int keys = out.terminal ? 0 : -1;
    int early = out.terminal ? work.early_fd() : -1;
    std::array<pollfd, 4> fds = {{{work.fd(), POLLIN, 0},
                                  {signals.fd(), POLLIN, 0},
                                  {keys, POLLIN, 0},
                                  {early, POLLIN, 0}}};
    TRY(sys::wait_any(fds, timeout));
    if ((fds[0].revents & POLLIN) != 0) return out;
    while (int signal = signals.take()) {
      if (signal == SIGWINCH) {
        if (out.terminal) out.terminal->fit_window();
      } else if (signal == SIGTSTP && out.terminal) {
        out.terminal->suspend();
      } else if (signal == SIGTSTP) {
        sys::stop_self();
      } else {
        out.signal = signal;
        out.left = true;
        return out;
      }
    }
    if ((fds[2].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) {
      out.signal = SIGHUP;
      out.left = true;
      return out;
    }
    while (out.terminal && (fds[2].revents & POLLIN) != 0) {
      Key key = out.terminal->read_key();
      if (key == 0) break;
      out.left |= key == 'q';
    }
    if (out.left) return out;
    if (!out.terminal)
      out.terminal = TRY(Terminal::open({.color = options.color}));
    out.early = work.take_early();
    if (out.early) return out;
    out.terminal->paint(waiting_frame(options.title, work.done(), work.total(),
                                      out.terminal->columns(),
                                      out.terminal->rows()));
    timeout = kEveryMs;
  }
}

}  // namespace stoplog::cli
