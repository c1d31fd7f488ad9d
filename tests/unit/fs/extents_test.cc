// SPDX-License-Identifier: Apache-2.0
#include "fs/extents.h"

#include <random>

#include "catch_shim.h"

using namespace stoplog::fs;

namespace {

// What each byte of a file should be: a number that names its place.
struct Model {
  std::vector<uint64_t> bytes;  // 0: hole
  static uint64_t name(const Extent& e, uint64_t i) {
    if (e.where == Where::kZero) return 1;
    return uint64_t(e.where) << 56 | uint64_t(e.segment) << 32 | (e.at + i);
  }
  void put(const Extent& e) {
    if (bytes.size() < e.end()) bytes.resize(e.end());
    for (uint64_t i = 0; i < e.length; ++i) bytes[e.offset + i] = name(e, i);
  }
  void punch(uint64_t offset, uint64_t length) {
    for (uint64_t i = offset; i < offset + length && i < bytes.size(); ++i)
      bytes[i] = 0;
  }
};

void check_equal(const ExtentMap& map, const Model& model) {
  REQUIRE(map.size() == model.bytes.size());
  std::vector<uint64_t> seen;
  for (const Extent& e : map.find(0, UINT64_MAX))
    for (uint64_t i = 0; i < e.length; ++i)
      seen.push_back(e.where == Where::kHole ? 0 : Model::name(e, i));
  REQUIRE(seen == model.bytes);
}

}  // namespace

TEST_CASE("an extent map equals an array of bytes under random operations") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    auto below = [&](uint64_t n) { return random() % n; };
    ExtentMap map;
    Model model;
    uint64_t held = 0, lost = 0, put = 0, segment_at = 0;
    auto dead = [&](const Extent& e) { lost += e.length; };
    for (int step = 0; step < 300; ++step) {
      uint64_t offset = below(200), length = below(40);
      switch (below(6)) {
        case 0:
        case 1: {
          Extent e{.offset = offset,
                   .length = length,
                   .where = Where::kSegment,
                   .segment = uint32_t(below(2)),
                   .at = segment_at,
                   .epoch = uint32_t(below(2))};
          segment_at += length;
          put += length;
          map.put(e, dead);
          if (length) model.put(e);
          break;
        }
        case 2: {
          Extent e{.offset = offset,
                   .length = length,
                   .where = below(2) ? Where::kLower : Where::kZero,
                   .at = offset};
          map.put(e, dead);
          if (length) model.put(e);
          break;
        }
        case 3:
          map.punch(offset, length, dead);
          model.punch(offset, length);
          break;
        case 4:
          map.truncate(offset, dead);
          model.bytes.resize(offset);
          break;
        default: {
          uint64_t data = map.next_data(offset), d = offset;
          while (d < model.bytes.size() && !model.bytes[d]) ++d;
          if (offset < model.bytes.size()) {
            REQUIRE(data == d);
            REQUIRE((map.covering(offset) == nullptr) == (d != offset));
          }
        }
      }
      check_equal(map, model);
      held = map.segment_bytes();
      REQUIRE(held + lost == put);
    }
  }
}

TEST_CASE("sequential writes into one segment stay one extent") {
  ExtentMap map;
  for (uint64_t i = 0; i < 100; ++i)
    map.put({.offset = i * 4096,
             .length = 4096,
             .where = Where::kSegment,
             .segment = 3,
             .at = 1000 + i * 4096,
             .epoch = 1});
  CHECK(map.all().size() == 1);
  CHECK(map.size() == 409600);
}

TEST_CASE("pinning moves lower ranges and nothing else") {
  ExtentMap map;
  map.put({.offset = 0, .length = 100, .where = Where::kLower});
  map.put({.offset = 40,
           .length = 10,
           .where = Where::kSegment,
           .segment = 1,
           .at = 7,
           .epoch = 2});
  CHECK(map.has_lower());
  map.pin(9, 1000);
  CHECK_FALSE(map.has_lower());
  auto parts = map.find(0, 100);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].segment == 9);
  CHECK(parts[0].at == 1000);
  CHECK(parts[1].segment == 1);
  CHECK(parts[2].at == 1050);
}
