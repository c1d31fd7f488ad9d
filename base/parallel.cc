// SPDX-License-Identifier: Apache-2.0
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace stoplog {
namespace {

// Starting a thread costs as much as comparing a few small files.
constexpr size_t kItemsWorthAThread = 16;

}  // namespace

unsigned thread_count(unsigned asked) {
  if (asked != 0) return asked;
  return std::clamp(std::thread::hardware_concurrency(), 1u, 4u);
}

Status parallel_for(size_t count, unsigned threads,
                    const std::function<Status(size_t)>& work,
                    const std::function<void(size_t)>& tell) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;  // guards failed_at and error
  size_t failed_at = count;
  std::optional<Error> error;
  auto run = [&](bool tells) {
    for (size_t i; (i = next.fetch_add(1)) < count;) {
      Status status = work(i);
      if (tells) tell(i + 1);
      if (status) continue;
      std::lock_guard lock(mutex);
      if (i >= failed_at) continue;
      failed_at = i;
      error = std::move(status.error());
      next = count;  // items below i are all taken already
    }
  };
  size_t useful = 1 + count / kItemsWorthAThread;
  // Asked only then: it reads a file of the kernel's.
  if (useful > 1) useful = std::min<size_t>(thread_count(threads), useful);
  std::vector<std::jthread> helpers;
  for (size_t i = 1; i < useful; i++) {
    try {
      helpers.emplace_back(run, false);
    } catch (const std::system_error&) {
      break;  // no more threads to be had: fewer do the same work
    }
  }
  run(tell != nullptr);
  helpers.clear();  // joins
  if (error) return std::unexpected(std::move(*error));
  return {};
}

}  // namespace stoplog
