// SPDX-License-Identifier: Apache-2.0
// The jail of one draft, from the daemon's side.
//
//   Zygote zygote = TRY(Zygote::start(spec));   // single-threaded; after mount
//   ... start the FUSE threads ...
//   zygote.prepare_first();                     // where a command is to come
//   TRY(zygote.wait_ready());                   // may touch the mounts
//   Pty pty = TRY(zygote.open_pty());           // or pipes
//   auto running = TRY(zygote.spawn(command, {in, out, err}));
//   Outcome outcome = supervise(*running, {...});            // supervise.h
//
// start() forks, so it is called before there are threads. It returns as soon
// as the id maps are written: the root is built meanwhile, and whatever goes
// wrong with it comes out of wait_ready() or the first spawn(), as
// kUnsupported; nothing ever runs in a jail that is not whole. After start()
// all calls may come from any thread. Destroying the Zygote kills everything
// inside, and so does the death of the thread that called start().
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "jail/running.h"
#include "jail/spec.h"

namespace stoplog::jail {

struct Pty {
  Fd master;
  Fd slave;
};

struct Stdio {
  int in = -1;  // borrowed; the command gets its own copies
  int out = -1;
  int err = -1;
};

class Zygote {
 public:
  static Result<Zygote> start(const JailSpec& spec);
  Zygote(Zygote&&) noexcept;
  Zygote& operator=(Zygote&&) noexcept;
  ~Zygote();

  Status wait_ready();
  // A terminal that has a name inside.
  Result<Pty> open_pty();
  // kUnsupported when a required limit cannot be held, or a wall cannot be
  // built; kInvalid for an unusable command. A command that cannot be executed
  // is no error: its outcome is 126 or 127.
  Result<std::shared_ptr<Running>> spawn(const CommandSpec& command,
                                         const Stdio& stdio);
  // Prepares an init ahead of the next spawn(), which then costs little more
  // than fork and exec. Called when a command has ended and nobody waits.
  void prepare_next();
  // The same while the root is built, without waiting for it.
  void prepare_first();

  // A file that commands, also those that run, see at /run/stoplog/NAME.
  Status write_note(const std::string& name, const std::string& content);

  pid_t pid() const;
  // Readable once the zygote is dead.
  int pidfd() const;
  // Optional binds that could not be made; after wait_ready().
  const std::vector<std::string>& left_out() const;

 private:
  struct State;
  explicit Zygote(std::unique_ptr<State> state);
  static Result<Zygote> start_now(const JailSpec& spec);
  Result<std::shared_ptr<Running>> spawn_now(const CommandSpec& command,
                                             const Stdio& stdio);
  std::unique_ptr<State> state_;
};

}  // namespace stoplog::jail
