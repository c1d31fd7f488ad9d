// SPDX-License-Identifier: Apache-2.0
// The messages between daemon, zygote and init: one message a packet over
// inherited SOCK_SEQPACKET pairs, first byte the kind, fields packed behind it.
// Both ends are this same program and trusted; the Reader still checks bounds.
// A payload that a packet cannot carry (a huge argv) travels in a memory file.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "jail/spec.h"

namespace stoplog::jail {

enum class Message : char {
  kHello = 'h',     // zygote: ready for its id maps
  kGo = 'g',        // daemon: they are written
  kReady = 'r',     // zygote: the root stands
  kFailed = 'f',    // zygote or init: an Error; nothing will run
  kMakeInit = 'i',  // daemon: a new init, please; zygote: here (socket, pidfd)
  kOpenPty = 'p',   // daemon; zygote: here (master, slave)
  kNote = 'w',      // daemon: a file for /run/stoplog
  kRun = 'c',       // daemon to init: the command, with stdio
  kStarted = 's',   // init: exec succeeded
  kNotRun = 'n',    // init: exec failed, with its errno
  kStopped = 't',   // init: the command stopped, by which signal
  kResumed = 'u',   // init: it goes on
  kEnded = 'e',     // init: everything inside but init is dead
  kSignal = 'k',    // daemon to init: a signal for the command
  kSegments = 'm',  // daemon: shared memory segments, please; init: so many
                    // bytes
};

class Writer {
 public:
  explicit Writer(Message kind) : out_(1, static_cast<char>(kind)) {}
  Writer& number(uint64_t value);
  Writer& text(std::string_view value);
  Writer& list(const std::vector<std::string>& values);
  const std::string& data() const { return out_; }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view data) : rest_(data) {}
  Message kind();
  uint64_t number();
  std::string text();
  std::vector<std::string> list();
  bool ok() const { return ok_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// What init needs to know of one command.
struct RunRequest {
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::string cwd;
  mode_t umask = 022;
  uint64_t max_files = 0;  // 0: as inherited
  uint64_t max_processes = 0;
  bool controlling_terminal = false;
};
std::string encode(const RunRequest& request);
Result<RunRequest> decode_run(std::string_view data);

// How a command ended, by init.
struct EndReport {
  int status = 0;  // as of waitpid(2)
  uint64_t user_us = 0;
  uint64_t system_us = 0;
  uint64_t max_rss = 0;  // bytes, of the largest process
};
std::string encode(const EndReport& report);
Result<EndReport> decode_end(std::string_view data);

std::string encode(const Error& error);
// Always an error: the one that was sent, or that it cannot be read.
Error decode_error(std::string_view data);

// A packet, or a memory file when it is too large for one.
Status send_large(int socket, const std::string& data, std::vector<int> fds);
// The data, and the fds that came with it, without the memory file.
struct Packet {
  std::string data;
  std::vector<Fd> fds;
};
Result<Packet> receive(int socket);

}  // namespace stoplog::jail
