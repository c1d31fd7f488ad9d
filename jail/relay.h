// SPDX-License-Identifier: Apache-2.0
// Carries a command's streams to and from our own 0 to 2, byte for byte, in the
// process that the user started. No descriptor of ours enters the jail: a
// stream of ours that is a terminal becomes a pty inside, any other a pipe.
//
//   const Streams streams = look_at_streams();        // first thing in main
//   Relay relay = TRY(Relay::open(streams));
//   ... send relay.command_fds() to the daemon (-1 where a pty is wanted, which
//       is given relay.terminal_shape() before the command starts), receive the
//       pty's master when streams.any_terminal() ...
//   relay.sent(); TRY(relay.use_terminal(std::move(master)));
//   relay.run({.event_fd = socket, .on_event = ..., .on_signal = ...});
//
// run() ends when on_event says that the command has ended and what it wrote
// is delivered. A reader of ours that goes away closes the command's stream, as
// a broken pipe would. Signals that reach this process while run() is active
// (INT TERM HUP QUIT USR1 USR2, TSTP and CONT) are passed to on_signal. One
// thread; blocks.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "jail/tty.h"

namespace stoplog::jail {

enum class StreamKind : uint8_t { kClosed, kTerminal, kOther };
struct Streams {
  std::array<StreamKind, 3> kind{};
  bool any_terminal() const;
};
// Also opens /dev/null where 0, 1 or 2 was closed, so that nothing that is
// opened later is mistaken for a stream.
Streams look_at_streams();

enum class Event : uint8_t { kGoOn, kStopped, kEnded };

struct RelayHooks {
  int event_fd = -1;                // watched for reading
  std::function<Event()> on_event;  // it is readable, or:
  // An event was read already, with the answer to what a hook asked.
  std::function<bool()> has_event;
  std::function<void(int)> on_signal;
  std::optional<uint64_t> output_limit;
  // There is more than the limit, which has been delivered.
  std::function<void(uint64_t)> on_output_limit;
};

struct RelayResult {
  uint64_t output_bytes = 0;    // delivered, and what came beyond the limit
  bool output_limited = false;  // not all of it was delivered
  bool open_line = false;       // the terminal's cursor stands behind text
  int last_signal = 0;          // passed on last, for exit code 130
};

class Relay {
 public:
  static Result<Relay> open(const Streams& streams);
  Relay(Relay&&) noexcept;
  ~Relay();

  // The command's ends of the pipes, borrowed; -1 where it gets the pty.
  std::array<int, 3> command_fds() const;
  // What our terminal is like, for shape_pty(); "": there is none.
  Result<std::string> terminal_shape() const;
  // They are sent: our copies close.
  void sent();
  Status use_terminal(Fd master);
  RelayResult run(const RelayHooks& hooks);

 private:
  struct State;
  explicit Relay(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stoplog::jail
