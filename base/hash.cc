// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

// The low-level SHA-256 calls are deprecated in OpenSSL 3 in favour of EVP,
// whose first fetch loads providers and costs more than a whole `stoplog
// version`; these are the same code without it, and link statically.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <xxhash.h>

#include <atomic>

#include "base/hash_speed.h"

namespace stoplog {

struct Xxh3::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() { XXH3_128bits_reset(xxh); }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

struct Sha256::State {
  SHA256_CTX context;
};

std::string Hash128::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

Hash128 xxh3(std::span<const std::byte> data) {
  XXH128_hash_t h = XXH3_128bits(data.data(), data.size());
  return {h.high64, h.low64};
}

uint64_t xxh3_64(std::span<const std::byte> data) {
  return XXH3_64bits(data.data(), data.size());
}

Sha256Digest sha256(std::span<const std::byte> data) {
  Sha256 hash;
  hash.update(data);
  return hash.finish();
}

Sha256Digest sha256(std::string_view text) {
  return sha256(std::as_bytes(std::span(text)));
}

std::string hex(std::span<const unsigned char> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out(bytes.size() * 2, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    out[2 * i] = kDigits[bytes[i] >> 4];
    out[2 * i + 1] = kDigits[bytes[i] & 15];
  }
  return out;
}

Status unhex(std::string_view text, std::span<unsigned char> out) {
  auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  if (text.size() != out.size() * 2)
    return fail(Code::kInvalid, "expected {} hex digits", out.size() * 2);
  for (size_t i = 0; i < out.size(); ++i) {
    int high = digit(text[2 * i]);
    int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return fail(Code::kInvalid, "not a hex digit");
    out[i] = static_cast<unsigned char>(high * 16 + low);
  }
  return {};
}

Xxh3::Xxh3() : state_(std::make_unique<State>()) {}
Xxh3::~Xxh3() = default;
Xxh3::Xxh3(Xxh3&&) noexcept = default;
Xxh3& Xxh3::operator=(Xxh3&&) noexcept = default;

void Xxh3::update(std::span<const std::byte> data) {
  XXH3_128bits_update(state_->xxh, data.data(), data.size());
}

Hash128 Xxh3::finish() const {
  XXH128_hash_t h = XXH3_128bits_digest(state_->xxh);
  return {h.high64, h.low64};
}

Sha256::Sha256() : state_(std::make_unique<State>()) {
  SHA256_Init(&state_->context);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> data) {
  // Below this, of all that was hashed, the choice takes longer than it saves.
  constexpr size_t kMuch = 32768;
  static std::atomic<size_t> hashed = 0;
  if (hashed.load(std::memory_order_relaxed) < kMuch)
    hashed.fetch_add(data.size(), std::memory_order_relaxed);
  else
    use_fast_hashing();
  SHA256_Update(&state_->context, data.data(), data.size());
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  SHA256_Final(digest.data(), &state_->context);
  return digest;
}

}  // namespace stoplog
