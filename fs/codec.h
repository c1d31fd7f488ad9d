// SPDX-License-Identifier: Apache-2.0
// Bytes of a record: little-endian numbers of fixed width, strings with a
// 32-bit length. A Reader never reads past its end: the first short or absurd
// field makes it fail, and every later one gives zero, so a decoder reads all
// its fields and asks ok() once.
#pragma once

#include <sys/types.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/sys_file.h"

namespace stoplog::fs {

static_assert(std::endian::native == std::endian::little,
              "records are copied as they stand in memory");

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}
  void u8(uint8_t v) { raw(&v, sizeof v); }
  void u16(uint16_t v) { raw(&v, sizeof v); }
  void u32(uint32_t v) { raw(&v, sizeof v); }
  void u64(uint64_t v) { raw(&v, sizeof v); }
  void time(const timespec& t) {
    u64(static_cast<uint64_t>(t.tv_sec));
    u32(static_cast<uint32_t>(t.tv_nsec));
  }
  void text(std::string_view s) {
    u32(static_cast<uint32_t>(s.size()));
    out_.append(s);
  }
  void hash(const Hash128& h) {
    u64(h.high);
    u64(h.low);
  }
  void stat(const sys::Stat& st);
  void raw(const void* data, size_t size) {
    out_.append(static_cast<const char*>(data), size);
  }

 private:
  std::string& out_;
};

class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}
  uint8_t u8() { return number<uint8_t>(); }
  uint16_t u16() { return number<uint16_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  timespec time() {
    timespec t{};
    t.tv_sec = static_cast<time_t>(u64());
    uint32_t nsec = u32();
    if (nsec >= 1'000'000'000) ok_ = false;
    t.tv_nsec = static_cast<long>(nsec);
    return t;
  }
  std::string_view text() {
    uint32_t size = u32();
    if (size > in_.size()) {
      ok_ = false;
      in_ = {};
      return {};
    }
    std::string_view s = in_.substr(0, size);
    in_.remove_prefix(size);
    return s;
  }
  Hash128 hash() {
    Hash128 h;
    h.high = u64();
    h.low = u64();
    return h;
  }
  sys::Stat stat();
  void raw(void* out, size_t size) {
    if (size > in_.size()) {
      ok_ = false;
      in_ = {};
      std::memset(out, 0, size);
      return;
    }
    std::memcpy(out, in_.data(), size);
    in_.remove_prefix(size);
  }
  // How many items of at least `size` bytes can still follow: a count read
  // from the bytes is checked against it before anything is reserved.
  bool fits(uint64_t count, size_t size) {
    if (count > in_.size() / size) ok_ = false;
    return ok_;
  }
  void fail() { ok_ = false; }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && in_.empty(); }
  size_t left() const { return in_.size(); }

 private:
  template <typename T>
  T number() {
    T v{};
    raw(&v, sizeof v);
    return v;
  }
  std::string_view in_;
  bool ok_ = true;
};

inline void Writer::stat(const sys::Stat& st) {
  u64(st.dev);
  u64(st.ino);
  u32(st.mode);
  u32(st.nlink);
  u32(st.uid);
  u32(st.gid);
  u64(st.rdev);
  u64(st.size);
  u64(st.blocks);
  time(st.atime);
  time(st.mtime);
  time(st.ctime);
  time(st.btime);
}

inline sys::Stat Reader::stat() {
  sys::Stat st;
  st.dev = u64();
  st.ino = u64();
  st.mode = u32();
  st.nlink = u32();
  st.uid = u32();
  st.gid = u32();
  st.rdev = u64();
  st.size = u64();
  st.blocks = u64();
  st.atime = time();
  st.mtime = time();
  st.ctime = time();
  st.btime = time();
  return st;
}

}  // namespace stoplog::fs
