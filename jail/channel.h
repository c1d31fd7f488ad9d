// SPDX-License-Identifier: Apache-2.0
// Channel: one direction of a relay, with one buffer between a source and a
// sink. Reads only while the buffer is empty, so a slow reader slows the writer
// down instead of filling memory. Never blocks: a source or sink of ours whose
// O_NONBLOCK flag belongs to others (a terminal, the caller's pipe) is read and
// written only when poll said so.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/fd.h"
#include "jail/ask_watch.h"

namespace stoplog::jail {

// Our own stream, under a number of its own. A pipe is opened anew, so that it
// can be made non-blocking without whoever shares it noticing.
Fd own_stream(int stream, int access);

class Channel {
 public:
  Channel() = default;
  static Channel input(Fd source, Fd sink);
  // What the command does not read of a seekable source is given back at
  // close(); `reader` is the pipe's other end, to see how much that is.
  void give_back(int reader);
  // From the command to a stream of ours; without one, to nowhere.
  static Channel output(Fd source, Fd sink);

  // The fd to poll for reading or writing, -1: none now.
  int wants_read() const;
  int wants_write() const;
  void read();
  void write();
  // `watch`, borrowed, sees what is written from here on.
  void watch(AskWatch* watch) { watch_ = watch; }
  // At most so many bytes more are passed on.
  void allow(uint64_t bytes) { allowed_ = bytes; }
  // From here on what comes is thrown away, and counted as beyond.
  void discard();
  void close();
  // Reads until the source has no more, and writes it all.
  void drain();
  uint64_t delivered() const { return delivered_; }
  // What came beyond what was allowed, so far.
  uint64_t beyond() const {
    return beyond_ + (sink_ && allowed_ == 0 ? end_ - begin_ : 0);
  }

 private:
  static constexpr size_t kSize = 64 << 10;
  void set_sink(Fd sink);
  Fd source_, sink_;
  bool discards_ = false;
  Fd reader_, rewind_;  // set by give_back()
  AskWatch* watch_ = nullptr;
  size_t burst_ = kSize;
  std::unique_ptr<std::byte[]> buffer_;  // not cleared: a fault a page
  size_t begin_ = 0, end_ = 0;
  uint64_t taken_ = 0;  // from the source
  uint64_t allowed_ = ~uint64_t{0};
  uint64_t delivered_ = 0;
  uint64_t beyond_ = 0;
  bool limited_ = false;  // it had a reader, and its output is discarded now
};

}  // namespace stoplog::jail
