// SPDX-License-Identifier: Apache-2.0
// Two hashes with two jobs. XXH3-128 finds changes: fast, not collision-proof,
// and an agent can make two contents that share it. SHA-256 binds what a
// person approved, what a commit wrote and what the ledger says.
//
//   Sha256 h; h.update(bytes); Sha256Digest d = h.finish();
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stoplog {

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;
  std::string hex() const;  // 32 digits
};

using Sha256Digest = std::array<unsigned char, 32>;

Hash128 xxh3(std::span<const std::byte> data);
uint64_t xxh3_64(std::span<const std::byte> data);
Sha256Digest sha256(std::span<const std::byte> data);
Sha256Digest sha256(std::string_view text);
std::string hex(std::span<const unsigned char> bytes);
// Lower- or upper-case hex of exactly out.size() bytes.
Status unhex(std::string_view text, std::span<unsigned char> out);

// Streaming forms. Move-only; finish() may be called once.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(Xxh3&&) noexcept;
  Xxh3& operator=(Xxh3&&) noexcept;
  void update(std::span<const std::byte> data);
  Hash128 finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  void update(std::span<const std::byte> data);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  Sha256Digest finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoplog
