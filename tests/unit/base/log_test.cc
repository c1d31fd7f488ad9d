// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include "base/sys_file.h"
#include "base/sys_process.h"
#include "catch_shim.h"

using namespace stoplog;

TEST_CASE("a log line is one line with level and nothing raw in it") {
  sys::Pipe pipe = sys::pipe().value();
  log::to_fd(pipe.write.get());
  log::set_level(log::Level::kWarn);
  log::info("not shown");
  log::warn("cannot read {}", "a\nb\x1b[2K");
  log::to_fd(STDERR_FILENO);
  pipe.write.reset();
  std::string out = sys::read_all(pipe.read.get(), 1000).value();
  CHECK(out.ends_with(" warn: cannot read a^Jb^[[2K\n"));
  CHECK(out.find("not shown") == std::string::npos);
}
