// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <charconv>
#include <cmath>

#include "base/escape.h"

namespace stoplog {
namespace {

const Json kNull;
const Json::Array kNoItems;
const Json::Object kNoMembers;
const std::string kNoText;

}  // namespace

void json_quote(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
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
    } else if (c < 0x20 || c == 0x7F) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
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
    out += std::isfinite(v) ? fmt::format("{}", v) : "null";
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

class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : text_(text) {}

  Result<Json> document() {
    Json value = TRY(this->value(0));
    space();
    if (at_ != text_.size()) return bad("text after the value");
    return value;
  }

 private:
  static constexpr int kMaxDepth = 64;

  std::unexpected<Error> bad(std::string_view what) const {
    return fail(Code::kInvalid, "not JSON at byte {}: {}", at_, what);
  }
  void space() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != text_.npos)
      ++at_;
  }
  bool accept(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Result<Json> value(int depth) {
    if (depth > kMaxDepth) return bad("nested too deep");
    space();
    if (at_ == text_.size()) return bad("unexpected end");
    switch (text_[at_]) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return Json(TRY(string()));
      default:
        break;
    }
    if (accept("null")) return Json();
    if (accept("true")) return Json(true);
    if (accept("false")) return Json(false);
    return number();
  }

  Result<Json> object(int depth) {
    Json::Object members;
    ++at_;
    space();
    if (accept("}")) return Json(std::move(members));
    for (;;) {
      space();
      if (at_ == text_.size() || text_[at_] != '"')
        return bad("a key expected");
      std::string key = TRY(string());
      space();
      if (!accept(":")) return bad("':' expected");
      // Objects of ours are small; a large one with many keys is hostile, and
      // a quadratic search over it would be its weapon.
      if (members.size() > 4096) return bad("too many members");
      for (const Json::Member& m : members)
        if (m.first == key) return bad("a key appears twice");
      members.emplace_back(std::move(key), TRY(value(depth + 1)));
      space();
      if (accept("}")) return Json(std::move(members));
      if (!accept(",")) return bad("',' or '}' expected");
    }
  }

  Result<Json> array(int depth) {
    Json::Array items;
    ++at_;
    space();
    if (accept("]")) return Json(std::move(items));
    for (;;) {
      items.push_back(TRY(value(depth + 1)));
      space();
      if (accept("]")) return Json(std::move(items));
      if (!accept(",")) return bad("',' or ']' expected");
    }
  }

  Result<uint32_t> hex4() {
    uint32_t c = 0;
    if (text_.size() - at_ < 4) return bad("short \\u escape");
    const char* from = text_.data() + at_;
    auto [end, error] = std::from_chars(from, from + 4, c, 16);
    if (error != std::errc() || end != from + 4) return bad("bad \\u escape");
    at_ += 4;
    return c;
  }

  Status escape(std::string& out) {
    constexpr std::string_view kFrom = "\"\\/bfnrt";
    constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    if (at_ == text_.size()) return bad("unexpected end");
    char c = text_[at_++];
    if (size_t i = kFrom.find(c); i != kFrom.npos) {
      out += kTo[i];
      return {};
    }
    if (c != 'u') return bad("unknown escape");
    uint32_t code = TRY(hex4());
    if (code >= 0xD800 && code < 0xDC00) {
      if (!accept("\\u")) return bad("half a surrogate pair");
      uint32_t low = TRY(hex4());
      if (low < 0xDC00 || low > 0xDFFF) return bad("half a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      return bad("half a surrogate pair");
    }
    append_utf8(out, code);
    return {};
  }

  Result<std::string> string() {
    std::string out;
    ++at_;
    for (;;) {
      if (at_ == text_.size()) return bad("unterminated string");
      char c = text_[at_];
      if (c == '"') {
        ++at_;
        return out;
      }
      if (c == '\\') {
        ++at_;
        TRY(escape(out));
        continue;
      }
      if (static_cast<unsigned char>(c) < 0x20) return bad("control character");
      std::string_view rest = text_.substr(at_);
      if (!take_utf8(rest).valid) return bad("not UTF-8");
      size_t n = text_.size() - at_ - rest.size();
      out += text_.substr(at_, n);
      at_ += n;
    }
  }

  Result<Json> number() {
    size_t end = at_;
    while (end < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[end])) ||
            std::string_view("+-.").find(text_[end]) != text_.npos))
      ++end;
    std::string_view digits = text_.substr(at_, end - at_);
    std::string_view magnitude = digits;
    if (magnitude.starts_with('-')) magnitude.remove_prefix(1);
    if (magnitude.empty() || magnitude[0] < '0' || magnitude[0] > '9' ||
        (magnitude.size() > 1 && magnitude[0] == '0' && magnitude[1] >= '0' &&
         magnitude[1] <= '9'))
      return bad("a value expected");
    auto whole = [&](auto& out) {
      auto [p, e] =
          std::from_chars(digits.data(), digits.data() + digits.size(), out);
      return e == std::errc() && p == digits.data() + digits.size();
    };
    int64_t i = 0;
    uint64_t u = 0;
    double d = 0;
    Json result;
    if (whole(i)) {
      result = Json(i);
    } else if (whole(u)) {
      result = Json(u);
    } else if (whole(d)) {
      result = Json(d);
    } else {
      return bad("not a number");
    }
    at_ = end;
    return result;
  }

  std::string_view text_;
  size_t at_ = 0;
};

Result<Json> Json::parse(std::string_view text) {
  return JsonParser(text).document();
}

}  // namespace stoplog
