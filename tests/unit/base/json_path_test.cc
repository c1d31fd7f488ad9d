// SPDX-License-Identifier: Apache-2.0
#include "base/json_path.h"

#include "catch_shim.h"

using namespace stoplog;

TEST_CASE("a path that is UTF-8 is in JSON as it is") {
  Json j = Json::object();
  set_path(j, "path", "a\\b\tc \xE6\xBC\xA2");
  CHECK(j.text("path") == "a\\b\tc \xE6\xBC\xA2");
  CHECK(j.find("path_bytes") == nullptr);
}

TEST_CASE("a path that is not UTF-8 has its bytes beside it") {
  Json j = Json::object();
  set_path(j, "from", "n\xff");
  CHECK(j.dump() == R"({"from":"n\\xff","from_bytes":"bv8="})");
}

TEST_CASE("a list of words has bytes for all of them or for none") {
  Json j = Json::object();
  std::vector<std::string> argv{"cp", "n\xff"};
  set_words(j, "argv", argv);
  CHECK(j.dump() == R"({"argv":["cp","n\\xff"],"argv_bytes":["Y3A=","bv8="]})");
  argv.pop_back();
  Json plain = Json::object();
  set_words(plain, "argv", argv);
  CHECK(plain.dump() == R"({"argv":["cp"]})");
}

TEST_CASE("paths in a list keep their order") {
  Json j = Json::object();
  std::vector<RelPath> paths{RelPath::parse("b").value(),
                             RelPath::parse("a").value()};
  set_paths(j, "paths", paths);
  CHECK(j.dump() == R"({"paths":["b","a"]})");
  set_paths(j, "none", {});
  CHECK(j["none"].items().empty());
}
