// SPDX-License-Identifier: Apache-2.0
#include "base/sys_lock.h"

#include "base/sys_file.h"
#include "catch_shim.h"
#include "scratch.h"

using namespace stoplog;

TEST_CASE("bytes that others have locked are all found and go with their fds") {
  Scratch scratch;
  auto open = [&] {
    return sys::openat(scratch.fd(), "file", O_RDONLY | O_CREAT, 0600).value();
  };
  using Set = std::set<uint64_t>;
  Fd look = open();
  const sys::ByteRange all{0, uint64_t{1} << 60};
  CHECK(sys::locked_bytes(look.get(), all).value().empty());
  Fd one = open(), two = open();
  for (uint64_t at :
       {uint64_t{900}, uint64_t{3}, uint64_t{1} << 60, uint64_t{4}})
    REQUIRE(sys::lock_byte(one.get(), at));
  // Shared; and beyond the end of the file, too.
  for (uint64_t at : {3, 77}) REQUIRE(sys::lock_byte(two.get(), at));
  CHECK(sys::locked_bytes(look.get(), all).value() ==
        Set{3, 4, 77, 900, uint64_t{1} << 60});
  CHECK(sys::locked_bytes(look.get(), {4, 899}).value() == Set{4, 77});
  one.reset();
  CHECK(sys::locked_bytes(look.get(), all).value() == Set{3, 77});
  two.reset();
  CHECK(sys::locked_bytes(look.get(), all).value().empty());
  CHECK(sys::lock_byte(look.get(), UINT64_MAX).error().err() == EOVERFLOW);
}
