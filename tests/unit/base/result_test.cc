// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <memory>

#include "catch_shim.h"

using namespace stoplog;

namespace {

Result<int> number(bool good) {
  if (!good) return fail_errno(ENOENT, "cannot open {}", "x");
  return 7;
}
Result<std::unique_ptr<int>> twice(bool good) {
  int value = TRY(number(good));
  return std::make_unique<int>(value * 2);
}
Status nothing(bool good) {
  TRY_CTX(number(good), "cannot begin");
  TRY(twice(good));
  return {};
}

}  // namespace

TEST_CASE("TRY gives the value or leaves with the error") {
  CHECK(*twice(true).value() == 14);
  CHECK(nothing(true));
  REQUIRE_FALSE(twice(false));
  CHECK(twice(false).error().err() == ENOENT);
}

TEST_CASE("an error tells its context from the outside in") {
  CHECK(nothing(false).error().text() ==
        "cannot begin: cannot open x: No such file or directory");
  CHECK(Error(EACCES).text() == "Permission denied");
  CHECK(Error(99'999).text() == "errno 99999");
  CHECK(Error(Code::kDrift, "moved").errno_or_eio() == EIO);
  Error error =
      Error(Code::kInvalid, "bad").as(Code::kUsage).with_hint("try this");
  CHECK(error.code() == Code::kUsage);
  CHECK(error.hint() == "try this");
}
