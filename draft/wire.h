// SPDX-License-Identifier: Apache-2.0
// Plain records as bytes and back, for the control socket.
//
//   struct Ping { uint32_t n; std::string text;
//                 template <class A> void visit(A& a) { a(n, text); } };
//   std::string bytes = encode(ping);
//   Ping back = TRY(decode<Ping>(bytes));
//
// Little-endian integers, strings and lists with a 32-bit count, an optional
// with a flag byte, records in the order of visit(). Strings are exact bytes:
// an argv need not be UTF-8. The decoder trusts nothing: counts are checked
// against the bytes that are left before anything is allocated, booleans and
// flags must be 0 or 1, and bytes left over are an error.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/relpath.h"
#include "base/result.h"

namespace stoplog::draft {

// Makes lookups by argument find this namespace for enums of other rooms.
struct WireTag {};

class Encoder {
 public:
  template <typename... T>
  void operator()(const T&... values) {
    (put(values), ...);
  }
  std::string take() { return std::move(out_); }

 private:
  template <std::integral T>
  void put(T value) {
    using U = std::make_unsigned_t<
        std::conditional_t<std::same_as<T, bool>, uint8_t, T>>;
    auto bits = static_cast<U>(value);
    for (size_t i = 0; i < sizeof(U); ++i)
      out_ += static_cast<char>((static_cast<uint64_t>(bits) >> (8 * i)) & 255);
  }
  template <typename T>
    requires std::is_enum_v<T>
  void put(T value) {
    put(static_cast<std::underlying_type_t<T>>(value));
  }
  void put(const std::string& text) {
    put(static_cast<uint32_t>(text.size()));
    out_ += text;
  }
  void put(const RelPath& path) { put(path.str()); }
  void put(const std::array<unsigned char, 32>& digest) {
    out_.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  }
  template <typename T>
  void put(const std::vector<T>& list) {
    put(static_cast<uint32_t>(list.size()));
    for (const T& item : list) put(item);
  }
  template <typename T>
  void put(const std::optional<T>& maybe) {
    put(maybe.has_value());
    if (maybe) put(*maybe);
  }
  template <typename A, typename B>
  void put(const std::pair<A, B>& pair) {
    put(pair.first);
    put(pair.second);
  }
  template <typename T>
    requires std::is_class_v<T>
  void put(const T& record) {
    // visit() is one function for both directions; encoding does not write.
    visit_record(const_cast<T&>(record), *this);
  }
  template <typename T>
  static void visit_record(T& record, Encoder& self) {
    if constexpr (requires { record.visit(self); })
      record.visit(self);
    else
      visit_fields(record, self);
  }
  std::string out_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : left_(bytes) {}

  template <typename... T>
  void operator()(T&... values) {
    (get(values), ...);
  }
  bool ok() const { return ok_; }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view bytes(size_t count) {
    if (!ok_ || left_.size() < count) {
      ok_ = false;
      return {};
    }
    std::string_view out = left_.substr(0, count);
    left_.remove_prefix(count);
    return out;
  }
  template <std::integral T>
  void get(T& value) {
    using U = std::make_unsigned_t<
        std::conditional_t<std::same_as<T, bool>, uint8_t, T>>;
    uint64_t bits = 0;
    std::string_view raw = bytes(sizeof(U));
    for (size_t i = 0; i < raw.size(); ++i)
      bits |= static_cast<uint64_t>(static_cast<unsigned char>(raw[i]))
              << (8 * i);
    if constexpr (std::same_as<T, bool>) {
      if (bits > 1) ok_ = false;
      value = bits == 1;
    } else {
      value = static_cast<T>(static_cast<U>(bits));
    }
  }
  template <typename T>
    requires std::is_enum_v<T>
  void get(T& value) {
    std::underlying_type_t<T> number{};
    get(number);
    if (!is_valid_enum(WireTag{}, T{}, number)) ok_ = false;
    value = static_cast<T>(number);
  }
  void get(std::string& text) {
    uint32_t size = 0;
    get(size);
    text = bytes(size);
  }
  void get(RelPath& path) {
    std::string text;
    get(text);
    auto parsed = RelPath::parse(text);
    if (!parsed) ok_ = false;
    path = parsed ? std::move(*parsed) : RelPath();
  }
  void get(std::array<unsigned char, 32>& digest) {
    std::string_view raw = bytes(digest.size());
    if (!raw.empty()) std::memcpy(digest.data(), raw.data(), raw.size());
  }
  template <typename T>
  void get(std::vector<T>& list) {
    uint32_t count = 0;
    get(count);
    list.clear();
    // Every item takes a byte at least, so a count beyond what is left is a
    // lie; and nothing is reserved on its word.
    if (count > left_.size()) ok_ = false;
    for (uint32_t i = 0; ok_ && i < count; ++i) get(list.emplace_back());
  }
  template <typename T>
  void get(std::optional<T>& maybe) {
    bool present = false;
    get(present);
    maybe.reset();
    if (present && ok_) get(maybe.emplace());
  }
  template <typename A, typename B>
  void get(std::pair<A, B>& pair) {
    get(pair.first);
    get(pair.second);
  }
  template <typename T>
    requires std::is_class_v<T>
  void get(T& record) {
    if constexpr (requires { record.visit(*this); })
      record.visit(*this);
    else
      visit_fields(record, *this);
  }

  std::string_view left_;
  bool ok_ = true;
};

template <typename T>
std::string encode(const T& record) {
  Encoder encoder;
  encoder(record);
  return encoder.take();
}

template <typename T>
Result<T> decode(std::string_view bytes) {
  T record{};
  Decoder decoder(bytes);
  decoder(record);
  if (!decoder.ok() || !decoder.at_end())
    return fail(Code::kInvalid, "malformed message");
  return record;
}

}  // namespace stoplog::draft
