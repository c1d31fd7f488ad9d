// SPDX-License-Identifier: Apache-2.0
// Fd: an owned file descriptor. Move-only; closes on destruction. A plain
// `int fd` parameter anywhere in the program is borrowed, never owned.
#pragma once

#include <utility>

namespace stoplog {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // Gives the descriptor up to the caller.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  // Closes now. close(2) is never retried: after EINTR the fd is gone on Linux.
  void reset();

 private:
  int fd_ = -1;
};

}  // namespace stoplog
