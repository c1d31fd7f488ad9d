// SPDX-License-Identifier: Apache-2.0
#include "draft/jail_setup.h"
#include "fixture.h"

using namespace stoplog;

namespace {

void git(const std::string& where, const std::string& what) {
  std::string command = "cd '" + where +
                        "' && HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 git -c "
                        "user.name=t -c user.email=t@t " +
                        what + " >/dev/null 2>&1";
  REQUIRE(::system(command.c_str()) == 0);
}

}  // namespace

TEST_CASE("a secret stays masked when a file of its name is committed") {
  Place place;
  std::string ws = place.top + "/ws";
  git(ws, "init -q -b main .");
  place.write("ws/ca.pem", "a test certificate\n");
  place.write("ws/.env.example", "KEY=\n");
  place.write("ws/.env", "# masked by stoplog\n");
  git(ws, "add -A");
  git(ws, "commit -qm 'with what an agent saw of it'");
  place.write("ws/.env", "KEY=secret\n");
  place.write("ws/.env.example", "KEY=\nOTHER=\n");
  auto base = sys::openat(AT_FDCWD, ws, O_RDONLY | O_DIRECTORY);
  REQUIRE(base);
  auto tracked = draft::tracked_by_git(ws, base->get());
  CHECK_FALSE(tracked(".env"));
  CHECK_FALSE(tracked("other.pem"));
  CHECK(tracked("ca.pem"));
  CHECK(tracked(".env.example"));
  // What is there is what git has.
  place.write("ws/.env", "# masked by stoplog\n");
  CHECK(tracked(".env"));
}
