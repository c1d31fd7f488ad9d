// SPDX-License-Identifier: Apache-2.0
// Json::parse: by recursive descent, one pass over the bytes.
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/escape.h"
#include "base/json.h"

namespace stoplog {
namespace {

constexpr int kMaxDepth = 64;
// Objects of ours are small; a large one with many keys is hostile, and a
// quadratic search over it would be its weapon.
constexpr size_t kMaxMembers = 4096;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Stands for itself in a string.
bool is_plain(char c) {
  auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

}  // namespace

// Each reads one thing from where it stands and is false when that is not
// there; problem_ says why when it is more than that.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text), rest_(text) {}

  Result<Json> run() {
    Json value;
    skip_space();
    bool ok = read(value, 0);
    skip_space();
    if (ok && rest_.empty()) return value;
    if (!problem_.empty())
      return fail(Code::kInvalid, "not JSON as we take it: {}", problem_);
    return fail(Code::kInvalid, "not JSON at byte {}",
                text_.size() - rest_.size() + 1);
  }

 private:
  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' ||
                              rest_[0] == '\t' || rest_[0] == '\r'))
      rest_.remove_prefix(1);
  }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // With space around it.
  bool take_mark(char c) {
    skip_space();
    if (!take(c)) return false;
    skip_space();
    return true;
  }
  bool refuse(const char* why) {
    problem_ = why;
    return false;
  }

  bool read(Json& out, int depth) {
    if (rest_.empty()) return false;
    switch (rest_[0]) {
      case '{':
        return depth < kMaxDepth ? read_object(out, depth + 1)
                                 : refuse("nested too deep");
      case '[':
        return depth < kMaxDepth ? read_array(out, depth + 1)
                                 : refuse("nested too deep");
      case '"':
        return read_string(out.value_.emplace<std::string>());
      case 't':
        out = Json(true);
        return read_word("true");
      case 'f':
        out = Json(false);
        return read_word("false");
      case 'n':
        return read_word("null");
      default:
        return read_number(out);
    }
  }

  bool read_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  bool read_array(Json& out, int depth) {
    auto& items = out.value_.emplace<Json::Array>();
    if (!take_mark('[')) return false;
    if (take(']')) return true;
    do {
      if (!read(items.emplace_back(), depth)) return false;
    } while (take_mark(','));
    return take(']');
  }

  bool read_object(Json& out, int depth) {
    auto& members = out.value_.emplace<Json::Object>();
    if (!take_mark('{')) return false;
    if (take('}')) return true;
    do {
      if (members.size() >= kMaxMembers) return refuse("too many members");
      std::string key;
      if (!read_string(key)) return false;
      for (const Json::Member& member : members)
        if (member.first == key) return refuse("a key appears twice");
      members.emplace_back().first = std::move(key);
      if (!take_mark(':') || !read(members.back().second, depth)) return false;
    } while (take_mark(','));
    return take('}');
  }

  bool read_string(std::string& out) {
    if (!take('"')) return false;
    while (!rest_.empty()) {
      size_t plain = 0;
      while (plain < rest_.size() && is_plain(rest_[plain])) plain++;
      out += rest_.substr(0, plain);
      rest_.remove_prefix(plain);
      if (take('"')) return true;
      if (take('\\')) {
        if (!read_escape(out)) return false;
        continue;
      }
      std::string_view here = rest_;
      if (here.empty() || static_cast<unsigned char>(here[0]) < 0x20 ||
          !take_utf8(rest_).valid) {
        rest_ = here;
        return false;
      }
      out += here.substr(0, here.size() - rest_.size());
    }
    return false;
  }

  bool read_escape(std::string& out) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
    if (take('u')) return read_unit(out);
    size_t which = rest_.empty() ? kLetters.npos : kLetters.find(rest_[0]);
    if (which == kLetters.npos) return false;
    out += kMeant[which];
    rest_.remove_prefix(1);
    return true;
  }

  bool read_hex(char32_t& out) {
    if (rest_.size() < 4) return false;
    uint32_t value = 0;
    auto [end, error] =
        std::from_chars(rest_.data(), rest_.data() + 4, value, 16);
    if (error != std::errc() || end != rest_.data() + 4) return false;
    out = value;
    rest_.remove_prefix(4);
    return true;
  }

  // A surrogate counts only with the other half.
  bool read_unit(std::string& out) {
    char32_t c = 0;
    if (!read_hex(c) || (c >= 0xDC00 && c <= 0xDFFF)) return false;
    if (c >= 0xD800 && c <= 0xDBFF) {
      char32_t low = 0;
      if (!take('\\') || !take('u') || !read_hex(low) || low < 0xDC00 ||
          low > 0xDFFF)
        return false;
      c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(out, c);
    return true;
  }

  bool skip_digits() {
    if (rest_.empty() || !is_digit(rest_[0])) return false;
    while (!rest_.empty() && is_digit(rest_[0])) rest_.remove_prefix(1);
    return true;
  }

  bool read_number(Json& out) {
    const char* begin = rest_.data();
    take('-');
    if (!take('0') && !skip_digits()) return false;
    bool whole = true;
    if (take('.')) {
      whole = false;
      if (!skip_digits()) return false;
    }
    if (take('e') || take('E')) {
      whole = false;
      if (!take('+')) take('-');
      if (!skip_digits()) return false;
    }
    const char* end = rest_.data();
    if (whole && read_integer(out, begin, end)) return true;
    // As the C library rounds it; beyond all that it has is no number.
    double value = std::strtod(std::string(begin, end).c_str(), nullptr);
    if (!std::isfinite(value)) return refuse("a number is too large");
    out = Json(value);
    return true;
  }

  static bool read_integer(Json& out, const char* begin, const char* end) {
    int64_t small = 0;
    if (std::from_chars(begin, end, small).ec == std::errc()) {
      out = Json(small);
      return true;
    }
    uint64_t large = 0;
    if (*begin == '-' || std::from_chars(begin, end, large).ec != std::errc())
      return false;
    out = Json(large);
    return true;
  }

  std::string_view text_, rest_;
  std::string problem_;
};

Result<Json> Json::parse(std::string_view text) {
  return JsonReader(text).run();
}

}  // namespace stoplog
