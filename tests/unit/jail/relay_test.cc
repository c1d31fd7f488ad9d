// SPDX-License-Identifier: Apache-2.0
#include "jail/relay.h"

#include "base/sys_process.h"
#include "catch_shim.h"

using namespace stoplog;
using namespace stoplog::jail;

TEST_CASE("an end that was read with the answer to a signal ends the relay") {
  // The socket itself stays silent: what it had was taken from it already.
  sys::Pipe silent = sys::pipe().value();
  Relay relay = Relay::open({}).value();
  relay.sent();
  bool has_event = true;
  int events = 0;
  RelayHooks hooks;
  hooks.event_fd = silent.read.get();
  hooks.has_event = [&] { return has_event; };
  hooks.on_event = [&] {
    has_event = ++events < 2;
    return has_event ? Event::kGoOn : Event::kEnded;
  };
  relay.run(hooks);
  CHECK(events == 2);
}
