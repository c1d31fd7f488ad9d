// SPDX-License-Identifier: Apache-2.0
#include "diff/secrets.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <numbers>

namespace stoplog::diff {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_word(char c) {
  return is_digit(c) || is_upper(c) || is_lower(c) || c == '_';
}
bool is_token(char c) { return is_word(c) || c == '-'; }
bool is_dotted(char c) { return is_token(c) || c == '.'; }
bool is_base64(char c) {
  return is_word(c) || c == '+' || c == '/' || c == '=' || c == '-';
}
bool is_key_id(char c) { return is_upper(c) || is_digit(c); }

// A token of a well-known kind: a prefix, then at least `least` bytes of a
// kind, at most `most`.
struct Kind {
  std::string_view prefix;
  bool (*accepts)(char);
  size_t least, most;
  std::string_view what;
};

constexpr Kind kKinds[] = {
    {"AKIA", is_key_id, 16, 16, "an AWS access key"},
    {"ASIA", is_key_id, 16, 16, "an AWS session key"},
    {"ghp_", is_word, 36, 255, "a GitHub token"},
    {"gho_", is_word, 36, 255, "a GitHub token"},
    {"ghu_", is_word, 36, 255, "a GitHub token"},
    {"ghs_", is_word, 36, 255, "a GitHub token"},
    {"ghr_", is_word, 36, 255, "a GitHub token"},
    {"github_pat_", is_word, 50, 255, "a GitHub token"},
    {"glpat-", is_token, 20, 255, "a GitLab token"},
    {"xoxb-", is_token, 20, 255, "a Slack token"},
    {"xoxp-", is_token, 20, 255, "a Slack token"},
    {"xoxa-", is_token, 20, 255, "a Slack token"},
    {"xoxs-", is_token, 20, 255, "a Slack token"},
    {"xapp-", is_token, 20, 255, "a Slack token"},
    {"hooks.slack.com/services/", is_base64, 30, 255, "a Slack webhook"},
    {"sk_live_", is_word, 20, 255, "a Stripe key"},
    {"rk_live_", is_word, 20, 255, "a Stripe key"},
    {"sk-ant-", is_token, 30, 255, "an Anthropic key"},
    {"sk-proj-", is_token, 30, 255, "an OpenAI key"},
    {"sk-", is_word, 40, 64, "an API key"},
    {"AIza", is_token, 35, 35, "a Google API key"},
    {"ya29.", is_dotted, 40, 512, "a Google OAuth token"},
    {"npm_", is_word, 36, 36, "an npm token"},
    {"pypi-AgE", is_token, 50, 512, "a PyPI token"},
    {"SG.", is_dotted, 60, 80, "a SendGrid key"},
    {"hf_", is_word, 34, 40, "a Hugging Face token"},
    {"dop_v1_", is_word, 64, 64, "a DigitalOcean token"},
    {"shpat_", is_word, 32, 32, "a Shopify token"},
    {"AccountKey=", is_base64, 60, 120, "an Azure storage key"},
    {"eyJhbGciOi", is_dotted, 60, 4096, "a signed token (JWT)"},
};
constexpr std::string_view kKeyBegin = "-----BEGIN ";
constexpr std::string_view kKeyEnd = "PRIVATE KEY";

// Words that name a secret when something is assigned to them.
constexpr std::string_view kNames[] = {
    "password",  "passwd",       "secret",      "api_key",       "apikey",
    "api-key",   "access_key",   "access-key",  "auth_token",    "accesstoken",
    "authtoken", "access_token", "private_key", "client_secret", "secret_key",
    "secretkey", "_token",       "token"};
// What examples and templates put there.
constexpr std::string_view kHarmless[] = {
    "example", "changeme",    "change_me", "placeholder", "dummy",
    "xxxx",    "your_",       "your-",     "test",        "fake",
    "sample",  "redacted",    "<",         "${",          "{{",
    "$(",      "process.env", "secrets.",  "env.",        "00000000",
    "12345678"};

// How many bytes of tokens are looked at: a text can be made of beginnings,
// each of which seems to go on for 4 KiB.
constexpr size_t kWork = 1 << 20;
constexpr size_t kWorkForEachByte = 32;

char lower(char c) { return is_upper(c) ? static_cast<char>(c + 32) : c; }

bool starts_with_lower(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) return false;
  for (size_t i = 0; i < word.size(); i++)
    if (lower(text[i]) != word[i]) return false;
  return true;
}

bool contains_lower(std::string_view text, std::string_view word) {
  for (size_t i = 0; i + word.size() <= text.size(); i++)
    if (starts_with_lower(text.substr(i), word)) return true;
  return false;
}

// Four bytes with case folded, hashed to 16 bits.
constexpr uint16_t window(const char* four) {
  uint32_t word = 0;
  if consteval {
    for (int i = 3; i >= 0; i--)
      word = word << 8 | static_cast<unsigned char>(four[i]);
  } else {
    std::memcpy(&word, four, 4);
    if constexpr (std::endian::native == std::endian::big)
      word = __builtin_bswap32(word);
  }
  return static_cast<uint16_t>(((word | 0x20202020u) * 0x9E3779B1u) >> 16);
}

// The four bytes with which something that we know can begin: the scan looks
// up each place once, and compares words only where there is something. Made by
// the compiler: a program that starts looks at the few bytes that it asks for.
class Beginnings {
 public:
  constexpr Beginnings() {
    for (const Kind& kind : kKinds) add(kind.prefix);
    for (std::string_view name : kNames) add(name);
    add(kKeyBegin);
  }
  constexpr bool operator[](uint16_t window) const {
    return bits_[window / 64] >> window % 64 & 1;
  }

 private:
  constexpr void add(std::string_view word) {
    if (word.size() >= 4) return set(word.data());
    for (int c = 0; c < 256; c++) {
      const char four[] = {word[0], word[1], word[2], static_cast<char>(c)};
      set(four);
    }
  }
  constexpr void set(const char* four) {
    bits_[window(four) / 64] |= uint64_t{1} << window(four) % 64;
  }
  std::array<uint64_t, 1024> bits_{};
};
constexpr Beginnings kBeginnings;

// A token kind at the start of `text`; `before` is the byte in front of it.
// `work` counts the bytes that were looked at.
bool token_at(std::string_view text, char before, size_t& work, Secret& out) {
  if (is_token(before)) return false;  // in the middle of a word
  for (const Kind& kind : kKinds) {
    if (!text.starts_with(kind.prefix)) continue;
    size_t end = kind.prefix.size();
    while (end < text.size() && end - kind.prefix.size() <= kind.most &&
           kind.accepts(text[end]))
      end++;
    work += end;
    size_t length = end - kind.prefix.size();
    if (length < kind.least || length > kind.most) continue;
    std::string_view value = text.substr(0, end);
    if (contains_lower(value, "example") || contains_lower(value, "xxxx"))
      continue;
    out = {.what = kind.what, .value = value};
    return true;
  }
  return false;
}

bool private_key_at(std::string_view text, Secret& out) {
  if (!text.starts_with(kKeyBegin)) return false;
  std::string_view line = text.substr(0, 64);
  line = line.substr(0, line.find('\n'));
  if (line.find(kKeyEnd) == std::string_view::npos) return false;
  // The head alone, as in documentation and in code that looks for it, is no
  // key: there must be some of it beneath.
  // Both near: a line of 8 MiB full of heads is not gone through for each.
  size_t newline = text.substr(0, 256).find('\n');
  size_t escaped = text.substr(0, 80).find("\\n");
  size_t body = std::min(newline, escaped);
  if (body == std::string_view::npos) return false;
  std::string_view rest = text.substr(body + 1, 200);
  size_t run = 0;
  for (char c : rest) {
    run = is_base64(c) ? run + 1 : 0;
    if (run == 32) {
      out = {.what = "a private key", .value = text.substr(0, body + 100)};
      return true;
    }
  }
  return false;
}

bool looks_random(std::string_view value) {
  if (value.size() < 20 || value.size() > 200) return false;
  bool digit = false, letter = false;
  for (char c : value) {
    if (!is_base64(c) && c != '!' && c != '#' && c != '%' && c != '^' &&
        c != '*' && c != '.' && c != '~')
      return false;
    digit |= is_digit(c);
    letter |= is_lower(c) || is_upper(c);
  }
  if (!digit || !letter) return false;
  for (std::string_view word : kHarmless)
    if (contains_lower(value, word)) return false;
  // Hex digits carry at most 4 bits, words and paths about 3.
  return entropy(value) >= (value.size() >= 32 ? 3.5 : 3.8);
}

// name = "value", name: 'value', NAME=value, "name": "value"
bool assignment_at(std::string_view text, Secret& out) {
  for (std::string_view name : kNames) {
    if (!starts_with_lower(text, name)) continue;
    size_t at = name.size();
    while (at < text.size() && at < name.size() + 24 && is_token(text[at]))
      at++;
    if (at < text.size() && (text[at] == '"' || text[at] == '\'')) at++;
    while (at < text.size() && text[at] == ' ') at++;
    if (at >= text.size() || (text[at] != '=' && text[at] != ':')) continue;
    at++;
    if (at < text.size() && text[at] == '=') at++;  // :=
    while (at < text.size() && text[at] == ' ') at++;
    char quote = 0;
    if (at < text.size() && (text[at] == '"' || text[at] == '\''))
      quote = text[at++];
    size_t end = at;
    while (end < text.size() && end - at <= 200 && text[end] != '\n' &&
           text[end] != '\r' &&
           (quote != 0 ? text[end] != quote : is_base64(text[end])))
      end++;
    std::string_view value = text.substr(at, end - at);
    if (!looks_random(value)) continue;
    out = {.what = "a value that looks like a secret", .value = value};
    return true;
  }
  return false;
}

// Of a finite number above 0. libm would be loaded by every start of the
// program (0.07 ms of 0.9) for this one function of it.
double log2_of(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  // 1 <= m < 2, and ln m = 2 (y + y^3/3 + y^5/5 + ...) with y <= 1/3.
  const double m = std::bit_cast<double>((bits & ~(~uint64_t{0} << 52)) |
                                         uint64_t{1023} << 52);
  const double y = (m - 1) / (m + 1);
  double sum = 0, power = y;
  for (int n = 1; n < 34; n += 2, power *= y * y) sum += power / n;
  return exponent + 2 * sum * std::numbers::log2e;
}

}  // namespace

double entropy(std::string_view text) {
  if (text.empty()) return 0;
  std::array<size_t, 256> counts{};
  for (char c : text) counts[static_cast<unsigned char>(c)]++;
  double sum = 0, total = static_cast<double>(text.size());
  for (size_t count : counts) {
    if (count == 0) continue;
    double p = static_cast<double>(count) / total;
    sum -= p * log2_of(p);
  }
  return sum;
}

std::vector<Secret> find_secrets(std::string_view text, size_t limit,
                                 SecretKinds kinds) {
  std::vector<Secret> out;
  size_t work = 0;
  for (size_t i = 0; i + 4 <= text.size() && out.size() < limit; i++) {
    if (!kBeginnings[window(text.data() + i)]) continue;
    std::string_view rest = text.substr(i);
    // Beginnings without end: said, not gone through.
    if (work > kWork + kWorkForEachByte * text.size()) {
      out.push_back({.what = kUnreadSecrets, .value = rest.substr(0, 8)});
      return out;
    }
    Secret found;
    char before = i == 0 ? '\n' : text[i - 1];
    if (!token_at(rest, before, work, found) && !private_key_at(rest, found) &&
        (kinds == SecretKinds::kWellKnown || !assignment_at(rest, found)))
      continue;
    out.push_back(found);
    i = static_cast<size_t>(found.value.data() - text.data()) +
        found.value.size() - 1;
  }
  return out;
}

}  // namespace stoplog::diff
