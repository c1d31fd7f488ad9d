// SPDX-License-Identifier: Apache-2.0
// Bytes into zstd frames, one for each few MiB, compressed by several threads
// and given out in order.
//
//   FramePacker packer(threads, [&](auto frame) { return put(frame); });
//   TRY(packer.write(bytes)); ...  TRY(packer.end());   // and again
//
// Frames that follow one another are one valid zstd stream. Debian's static
// zstd has no threads of its own, and in a piece each frame is made with its
// whole input in sight, which is a third faster than by a stream.
//
// What end() leaves begins with the next write(); nothing written is one empty
// frame. Memory: three pieces and three frames a thread. The sink is called on
// the caller's thread; one thread calls. After an error it is of no use.
#pragma once

#include <zstd.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/result.h"
#include "snapshot/object_codec.h"

namespace stoplog::snapshot {

class FramePacker {
 public:
  static constexpr size_t kPiece = 4u << 20;

  FramePacker(int level, unsigned threads, ByteSink sink);
  ~FramePacker();
  FramePacker(const FramePacker&) = delete;
  FramePacker& operator=(const FramePacker&) = delete;

  Status write(std::span<const std::byte> bytes);
  Status end();

 private:
  struct Job {
    std::vector<std::byte> in, out;
    size_t error = 0;  // zstd's
    bool taken = false, done = false;
  };
  using Context = std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)>;
  static Context new_context();

  void work();
  void compress(ZSTD_CCtx* context, Job& job) const;
  Status submit();
  Status give_out(size_t keep);

  const int level_;
  const unsigned threads_;
  const ByteSink sink_;
  Context own_;  // for what is too small to be handed over
  std::vector<std::byte> piece_;
  std::mutex mutex_;  // protects jobs_, what is in them, spare_ and stop_
  std::condition_variable wanted_, finished_;
  std::deque<std::unique_ptr<Job>> jobs_;  // in order
  std::vector<std::unique_ptr<Job>> spare_;
  bool stop_ = false;
  std::vector<std::thread> workers_;  // made with the first whole piece
};

}  // namespace stoplog::snapshot
