// SPDX-License-Identifier: Apache-2.0
#include "fs/closer.h"

#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace stoplog::fs {

struct Closer::Queue {
  std::mutex mutex;  // a leaf
  std::deque<Fd> left;
  bool closing = false;

  static void push(const std::shared_ptr<Queue>& queue, Fd fd) {
    {
      std::lock_guard lock(queue->mutex);
      queue->left.push_back(std::move(fd));
      if (std::exchange(queue->closing, true)) return;
    }
    try {
      std::thread([queue] { queue->run(); }).detach();
    } catch (const std::system_error&) {
      queue->run();
    }
  }

  void run() {
    for (;;) {
      Fd next;  // closed with no lock held
      std::lock_guard lock(mutex);
      if (left.empty()) {
        closing = false;
        return;
      }
      next = std::move(left.front());
      left.pop_front();
    }
  }
};

Closer::Closer() : queue_(std::make_shared<Queue>()) {}

FdHandle Closer::keep(Fd fd) const {
  return FdHandle(new Fd(std::move(fd)), [queue = queue_](Fd* last) {
    std::unique_ptr<Fd> owned(last);
    Queue::push(queue, std::move(*owned));
  });
}

}  // namespace stoplog::fs
