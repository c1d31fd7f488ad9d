// SPDX-License-Identifier: Apache-2.0
// Mmap: an owned mapping of a file, read-only unless asked otherwise.
//
//   Mmap map = TRY(Mmap::map_file(fd.get()));   // whole file; empty is fine
//   parse(map.bytes());
//
// Only for files that nobody else truncates (sealed segments, packs, our own
// files under a lock): a page past the new end is SIGBUS. Never for a file of
// the workspace. The fd may be closed afterwards. Move-only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace stoplog {

class Mmap {
 public:
  Mmap() = default;
  static Result<Mmap> map_file(int fd);
  // The first `size` bytes; `write` makes a shared writable mapping.
  enum class Access { kRead, kWrite };
  static Result<Mmap> map(int fd, size_t size, Access access);
  // From `offset`, a multiple of the page size: some devices keep several
  // memories apart by it.
  static Result<Mmap> map_at(int fd, uint64_t offset, size_t size,
                             Access access);
  Mmap(Mmap&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Mmap& operator=(Mmap&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mmap();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::span<std::byte> writable() { return {data_, size_}; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(data_), size_};
  }
  size_t size() const { return size_; }

 private:
  Mmap(std::byte* data, size_t size) : data_(data), size_(size) {}
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace stoplog
