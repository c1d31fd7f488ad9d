// SPDX-License-Identifier: Apache-2.0
// Json: a small value type with a strict, bounded parser and a writer whose
// output is the same on every machine.
//
//   Json j = Json::object();
//   j.set("draft", id).set("exit", 0).set("argv", Json::strings(argv));
//   out << j.dump();
//   Json back = TRY(Json::parse(text));
//   int64_t n = back.integer("n", 0);      // absent or wrong kind: the default
//
// Objects keep the order of insertion (a digest is taken over dump()). Strings
// hold bytes; dump() replaces what is not UTF-8 by U+FFFD, so exact bytes need
// a second field (base64()). The parser refuses depth over 64, duplicate keys,
// trailing text and invalid UTF-8, and never throws. Of our own:
// nlohmann-json's header costs 1.5 s in every file that sees it, and its parser
// eight times the instructions; it is what ours is tested against.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace stoplog {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  template <std::signed_integral T>
  Json(T value) : value_(static_cast<int64_t>(value)) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  Json(T value) {
    // One form a number, so that 5 == 5u and a parsed value equals a made one.
    auto wide = static_cast<uint64_t>(value);
    if (wide <= INT64_MAX)
      value_ = static_cast<int64_t>(wide);
    else
      value_ = wide;
  }
  Json(double value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  static Json array() { return Json(Array{}); }
  static Json object() { return Json(Object{}); }
  static Json strings(const std::vector<std::string>& values);

  // Text that is one JSON value and nothing else.
  static Result<Json> parse(std::string_view text);

  bool is_null() const { return holds<std::monostate>(); }
  bool is_string() const { return holds<std::string>(); }
  bool is_array() const { return holds<Array>(); }
  bool is_object() const { return holds<Object>(); }
  bool is_number() const;

  // Objects. set() replaces; on anything but an object it makes one.
  Json& set(std::string_view key, Json value);
  const Json* find(std::string_view key) const;
  // The member, or a shared null.
  const Json& operator[](std::string_view key) const;
  std::string text(std::string_view key, std::string_view fallback = "") const;
  int64_t integer(std::string_view key, int64_t fallback = 0) const;
  bool boolean(std::string_view key, bool fallback = false) const;
  bool erase(std::string_view key);

  // Arrays.
  Json& push(Json value);

  // Content; empty or zero when the kind is another.
  const Array& items() const;
  const Object& members() const;
  const std::string& string() const;
  int64_t as_integer(int64_t fallback = 0) const;
  bool as_bool(bool fallback = false) const;

  std::string dump() const;    // one line
  std::string pretty() const;  // indented by two, with a last newline
  bool operator==(const Json& other) const { return value_ == other.value_; }

 private:
  friend class JsonReader;  // json_parse.cc
  explicit Json(Array value) : value_(std::move(value)) {}
  explicit Json(Object value) : value_(std::move(value)) {}
  template <typename T>
  bool holds() const {
    return std::holds_alternative<T>(value_);
  }
  void write(std::string& out, int indent, int depth) const;

  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string,
               Array, Object>
      value_;
};

// Appends `text` quoted as a JSON string.
void json_quote(std::string& out, std::string_view text);

}  // namespace stoplog
