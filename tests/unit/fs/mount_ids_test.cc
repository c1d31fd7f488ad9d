// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "catch_shim.h"
#include "fs/ids.h"

using namespace stoplog;
using namespace stoplog::fs;

namespace {

std::string acl(std::vector<std::pair<uint16_t, uint32_t>> entries) {
  std::string out("\2\0\0\0", 4);
  for (auto [tag, id] : entries) {
    char raw[8] = {};
    uint16_t perm = 6;
    std::memcpy(raw, &tag, 2);
    std::memcpy(raw + 2, &perm, 2);
    std::memcpy(raw + 4, &id, 4);
    out.append(raw, sizeof raw);
  }
  return out;
}

}  // namespace

TEST_CASE("the workspace's owner appears as the jail's user and back") {
  IdMap map = IdMap::swap({0, 0}, {70001, 70002});
  CHECK(map.shown_uid(0) == 70001);
  CHECK(map.shown_gid(0) == 70002);
  CHECK(map.true_uid(70001) == 0);
  CHECK(map.true_gid(70002) == 0);
  CHECK(map.shown_uid(33) == 33);
  CHECK(map.true_uid(33) == 33);
  CHECK(map.chown_uid(70001, 33) == 0);
}

TEST_CASE("a map of equal identities is the identity") {
  CHECK(IdMap::swap({1000, 1000}, {1000, 1000}).is_identity());
  CHECK(IdMap::identity().shown_uid(4711) == 4711);
}

TEST_CASE("a restricted map shows a stand-in and keeps the true owner") {
  auto one = parse_id_map("         0       1000          1\n");
  REQUIRE(one.size() == 1);
  CHECK(one[0].first == 0);
  CHECK(one[0].count == 1);
  IdMap map = IdMap::restricted(one, one, {0, 0});
  CHECK(map.shown_uid(0) == 0);
  CHECK(map.shown_uid(65534) == 0);
  CHECK(map.chown_uid(0, 65534) == 65534);
  CHECK(map.chown_gid(0, 0) == 0);
  IdMap all =
      IdMap::restricted({{0, uint64_t{1} << 32}}, {{0, 4294967295u}}, {1, 1});
  CHECK(all.shown_uid(4294967294u) == 4294967294u);
}

TEST_CASE("ids in ACL entries are translated and nothing else is") {
  IdMap map = IdMap::swap({0, 0}, {70001, 70002});
  std::string truth =
      acl({{0x01, 0xffffffff}, {0x02, 0}, {0x02, 33}, {0x08, 0}, {0x10, 0}});
  std::string shown = acl({{0x01, 0xffffffff},
                           {0x02, 70001},
                           {0x02, 33},
                           {0x08, 70002},
                           {0x10, 0}});
  CHECK(map.shown_acl(truth).value() == shown);
  CHECK(map.true_acl(shown).value() == truth);
}

TEST_CASE("a malformed ACL is refused") {
  IdMap map = IdMap::identity();
  CHECK(map.true_acl("").error().err() == EINVAL);
  CHECK(map.true_acl(std::string("\2\0\0\0abc", 7)).error().err() == EINVAL);
  CHECK(map.true_acl(std::string("\3\0\0\0", 4)).error().err() == EINVAL);
  CHECK(map.true_acl(std::string("\2\0\0\0", 4)).has_value());
}
