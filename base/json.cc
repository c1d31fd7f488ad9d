// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/escape.h"

namespace stoplog {
namespace {

const Json kNull;
const Json::Array kNoItems;
const Json::Object kNoMembers;
const std::string kNoText;

// How much of the beginning stands for itself, as mostly all does.
size_t plain_run(std::string_view text) {
  auto special = [](unsigned char c) {
    return c < 0x20 || c >= 0x7f || c == '"' || c == '\\';
  };
  return static_cast<size_t>(std::ranges::find_if(text, special) -
                             text.begin());
}

// Beyond 16 bits as the two halves of UTF-16.
void append_unicode_escape(std::string& out, char32_t c) {
  auto put = [&](uint32_t unit) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", unit);
  };
  if (c < 0x10000) return put(c);
  put(0xd800 + ((c - 0x10000) >> 10));
  put(0xdc00 + ((c - 0x10000) & 0x3ff));
}

}  // namespace

void json_quote(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    size_t run = plain_run(text);
    out += text.substr(0, run);
    text.remove_prefix(run);
    if (text.empty()) break;
    std::string_view here = text;
    auto [c, valid] = take_utf8(text);
    if (!valid) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += here[0];
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (kind_of(c) != CharKind::kPlain) {
      append_unicode_escape(out, c);
    } else {
      out += here.substr(0, here.size() - text.size());
    }
  }
  out += '"';
}

Json Json::strings(const std::vector<std::string>& values) {
  Array array;
  array.reserve(values.size());
  for (const std::string& v : values) array.emplace_back(v);
  return Json(std::move(array));
}

bool Json::is_number() const {
  return holds<int64_t>() || holds<uint64_t>() || holds<double>();
}

Json& Json::set(std::string_view key, Json value) {
  if (!is_object()) value_ = Object{};
  for (Member& m : std::get<Object>(value_)) {
    if (m.first != key) continue;
    m.second = std::move(value);
    return *this;
  }
  std::get<Object>(value_).emplace_back(std::string(key), std::move(value));
  return *this;
}

bool Json::erase(std::string_view key) {
  if (!is_object()) return false;
  return std::erase_if(std::get<Object>(value_),
                       [&](const Member& m) { return m.first == key; }) != 0;
}

const Json* Json::find(std::string_view key) const {
  for (const Member& m : members())
    if (m.first == key) return &m.second;
  return nullptr;
}

const Json& Json::operator[](std::string_view key) const {
  const Json* found = find(key);
  return found != nullptr ? *found : kNull;
}

std::string Json::text(std::string_view key, std::string_view fallback) const {
  const Json& v = (*this)[key];
  return v.is_string() ? v.string() : std::string(fallback);
}

int64_t Json::integer(std::string_view key, int64_t fallback) const {
  return (*this)[key].as_integer(fallback);
}

bool Json::boolean(std::string_view key, bool fallback) const {
  return (*this)[key].as_bool(fallback);
}

Json& Json::push(Json value) {
  if (!is_array()) value_ = Array{};
  std::get<Array>(value_).push_back(std::move(value));
  return *this;
}

const Json::Array& Json::items() const {
  return is_array() ? std::get<Array>(value_) : kNoItems;
}

const Json::Object& Json::members() const {
  return is_object() ? std::get<Object>(value_) : kNoMembers;
}

const std::string& Json::string() const {
  return is_string() ? std::get<std::string>(value_) : kNoText;
}

int64_t Json::as_integer(int64_t fallback) const {
  if (holds<int64_t>()) return std::get<int64_t>(value_);
  if (holds<uint64_t>()) {
    uint64_t v = std::get<uint64_t>(value_);
    return v <= INT64_MAX ? static_cast<int64_t>(v) : fallback;
  }
  if (holds<double>()) {
    double v = std::get<double>(value_);
    if (std::abs(v) < 9e18) return static_cast<int64_t>(v);
  }
  return fallback;
}

bool Json::as_bool(bool fallback) const {
  return holds<bool>() ? std::get<bool>(value_) : fallback;
}

void Json::write(std::string& out, int indent, int depth) const {
  auto line = [&](int level) {
    if (indent == 0) return;
    out += '\n';
    out.append(static_cast<size_t>(indent * level), ' ');
  };
  if (is_null()) out += "null";
  if (holds<bool>()) out += std::get<bool>(value_) ? "true" : "false";
  if (holds<int64_t>()) out += std::to_string(std::get<int64_t>(value_));
  if (holds<uint64_t>()) out += std::to_string(std::get<uint64_t>(value_));
  if (holds<double>()) {
    double v = std::get<double>(value_);
    std::string text = std::isfinite(v) ? fmt::format("{}", v) : "null";
    out += text;
    // "-0" and "3" would be read back as integers.
    if (text.find_first_not_of("-0123456789") == text.npos) out += ".0";
  }
  if (is_string()) json_quote(out, string());
  if (is_array()) {
    out += '[';
    bool first = true;
    for (const Json& item : items()) {
      if (!std::exchange(first, false)) out += ',';
      line(depth + 1);
      item.write(out, indent, depth + 1);
    }
    if (!items().empty()) line(depth);
    out += ']';
  }
  if (is_object()) {
    out += '{';
    bool first = true;
    for (const auto& [key, value] : members()) {
      if (!std::exchange(first, false)) out += ',';
      line(depth + 1);
      json_quote(out, key);
      out += indent == 0 ? ":" : ": ";
      value.write(out, indent, depth + 1);
    }
    if (!members().empty()) line(depth);
    out += '}';
  }
}

std::string Json::dump() const {
  std::string out;
  write(out, 0, 0);
  return out;
}

std::string Json::pretty() const {
  std::string out;
  write(out, 2, 0);
  return out + "\n";
}

}  // namespace stoplog
