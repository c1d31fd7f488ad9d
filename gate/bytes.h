// SPDX-License-Identifier: Apache-2.0
// Little-endian fields one after the other, for the gate's records. A Reader
// never reads past its end: it turns bad instead, and every field read from
// then on is empty; ask good() once, after the last field.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace stoplog::gate {

class Writer {
 public:
  void number(uint64_t value, int bytes = 8) {
    char field[8];
    for (int i = 0; i < 8; ++i)
      field[i] = static_cast<char>((value >> (8 * i)) & 0xff);
    out_.append(field, static_cast<size_t>(bytes));
  }
  void text(std::string_view value) {
    number(value.size(), 4);
    out_ += value;
  }
  void raw(std::string_view value) { out_ += value; }
  const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  uint64_t number(int bytes = 8) {
    std::string_view field = raw(static_cast<size_t>(bytes));
    uint64_t value = 0;
    for (size_t i = 0; i < field.size(); ++i)
      value |= static_cast<uint64_t>(static_cast<unsigned char>(field[i]))
               << (8 * i);
    return value;
  }
  std::string_view text() { return raw(static_cast<size_t>(number(4))); }
  std::string_view raw(size_t size) {
    if (size > left_.size()) {
      good_ = false;
      left_ = {};
      return {};
    }
    std::string_view field = left_.substr(0, size);
    left_.remove_prefix(size);
    return field;
  }
  // A count of things that take at least one byte each: bounds allocations.
  size_t count() {
    uint64_t n = number(4);
    if (n > left_.size()) good_ = false;
    return good_ ? static_cast<size_t>(n) : 0;
  }
  bool good() const { return good_; }
  bool at_end() const { return good_ && left_.empty(); }

 private:
  std::string_view left_;
  bool good_ = true;
};

}  // namespace stoplog::gate
