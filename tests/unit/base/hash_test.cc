// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <algorithm>
#include <array>

#include "catch_shim.h"

using namespace stoplog;

namespace {
std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}
}  // namespace

TEST_CASE("SHA-256 gives the answers of FIPS 180") {
  CHECK(hex(sha256("")) ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex(sha256("abc")) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("XXH3-128 gives the answer of its specification for nothing") {
  CHECK(xxh3({}).hex() == "99aa06d3014798d86001c324468d497f");
}

TEST_CASE("streamed hashes equal the hash of the whole") {
  std::string text(100'000, 'x');
  for (size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>(i * 31 % 251);
  for (size_t step : {1UL, 63UL, 64UL, 65UL, 4096UL, 99'999UL}) {
    Sha256 sha;
    Xxh3 xxh;
    for (size_t at = 0; at < text.size(); at += step) {
      std::string_view part = std::string_view(text).substr(at, step);
      sha.update(part);
      xxh.update(bytes(part));
    }
    CHECK(sha.finish() == sha256(text));
    CHECK(xxh.finish() == xxh3(bytes(text)));
  }
}

TEST_CASE("hex is read back and nothing else is taken") {
  std::array<unsigned char, 3> out{};
  REQUIRE(unhex("00ffA9", out));
  CHECK(hex(out) == "00ffa9");
  for (const char* bad : {"", "00ff", "00ffa9a9", "00ffg9", "00 ffa"})
    CHECK_FALSE(unhex(bad, out));
}

// NOLINTBEGIN(bugprone-reserved-identifier): libcrypto's name
extern "C" unsigned OPENSSL_ia32cap_P[4] __attribute__((weak));

TEST_CASE("much hashing uses the code that is made for this processor") {
#if defined(__x86_64__)
  std::string much(100'000, 'x');
  for (int i = 0; i < 2; ++i) CHECK(sha256(much) == sha256(much));
  // What it found out about the processor; zero before it has looked. A shared
  // library looks by itself, and shows it to nobody.
  unsigned* found = OPENSSL_ia32cap_P;
  CHECK((found == nullptr || found[0] != 0));
#endif
}
// NOLINTEND(bugprone-reserved-identifier)
