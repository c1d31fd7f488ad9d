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

TEST_CASE("a map of many ranges and its copies equal arrays of bytes") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    auto below = [&](uint64_t n) { return random() % n; };
    std::vector<std::pair<ExtentMap, Model>> copies(1);
    uint64_t segment_at = 0;
    size_t most_leaves = 0;
    // Odd seeds in no order, even ones mostly from the front to the back.
    for (uint64_t step = 0; step < 6000; ++step) {
      auto& [map, model] = copies[below(copies.size())];
      uint64_t offset = seed % 2 ? below(40'000) : step * 6 + below(20);
      uint64_t length = 1 + below(12);
      switch (below(40)) {
        default: {
          Extent e{.offset = offset,
                   .length = length,
                   .where = below(9) ? Where::kSegment : Where::kLower,
                   .segment = 1,
                   .at = segment_at,
                   .epoch = uint32_t(below(2))};
          if (e.where == Where::kLower) e.segment = 0, e.at = offset;
          segment_at += length + below(2);
          map.put(e);
          model.put(e);
          break;
        }
        case 0:
          length = below(6) ? length : below(8000);
          map.punch(offset, length);
          model.punch(offset, length);
          break;
        case 1:
          if (below(4) != 0) break;
          map.truncate(offset);
          model.bytes.resize(offset);
          break;
        case 2:
          if (copies.size() < 4)
            copies.push_back(copies[below(copies.size())]);
          else
            copies.erase(copies.begin() + long(below(copies.size())));
          break;
      }
      if (step % 200 != 199) continue;
      for (auto& [each, bytes] : copies) {
        most_leaves = std::max(most_leaves, each.all().leaves());
        check_equal(each, bytes);
        const std::vector<Extent> all = each.all().copy();
        uint64_t sum = 0, held = 0;
        bool lower = false;
        for (const Extent& e : all) {
          sum += e.length;
          held += e.where == Where::kSegment ? e.length : 0;
          lower = lower || e.where == Where::kLower;
        }
        REQUIRE(each.all().size() == all.size());
        REQUIRE(each.allocated() == sum);
        REQUIRE(each.segment_bytes() == held);
        REQUIRE(each.has_lower() == lower);
        REQUIRE(each.all().leaves() <= 2 + all.size() / ExtentList::kFew);
        REQUIRE((each.all() == copies[0].first.all()) ==
                (all == copies[0].first.all().copy()));
      }
    }
    CHECK(most_leaves > 4);
  }
}

TEST_CASE("a copy of a map of many ranges shares what has not changed") {
  ExtentMap map;
  auto put = [&](uint64_t i) {
    map.put({.offset = i * 10,
             .length = 5,
             .where = Where::kSegment,
             .segment = 1,
             .at = i * 5});
  };
  constexpr uint64_t kMany = 100'000;
  for (uint64_t i = 0; i < kMany; ++i) put(i * 7919 % kMany);
  REQUIRE(map.all().size() == kMany);
  CHECK(map.all().leaves() < 2 * kMany / ExtentList::kMost);
  CHECK(map.take_parted() == 0);
  {
    const ExtentMap copy = map;
    put(kMany / 2);
    put(kMany / 2 + 1);
    // One leaf, or two when they lie at a border.
    CHECK(map.take_parted() <= 2 * ExtentList::kMost * sizeof(Extent));
    CHECK(copy.all() == map.all());
    map.truncate(5);
    CHECK(map.take_parted() > kMany / 2 * sizeof(Extent));
    CHECK(map.all().size() == 1);
    CHECK(copy.all().size() == kMany);
  }
  put(1);
  CHECK(map.take_parted() == 0);
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
