// SPDX-License-Identifier: Apache-2.0
// Pieces of text that are made on a few threads and written in order.
//
//   OrderedWriter writer(threads, sink);
//   TRY(writer.add(size_of(x), [&x](const Sink& out) { return print(x, out);
//   })); TRY(writer.flush());
//
// Small pieces are collected and made together; a large one is made alone and
// streams straight to the sink. Used by one thread; `make` is called from
// others, before flush() returns; what it refers to must live until then. The
// error is that of the first piece that failed; nothing after it is written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "diff/change_set.h"

namespace stoplog::diff {

class OrderedWriter {
 public:
  using Make = std::function<Status(const Sink&)>;

  // `sink` must outlive it.
  OrderedWriter(unsigned threads, const Sink& sink)
      : threads_(threads), sink_(sink) {}

  // `size`: about how much is read to make it.
  Status add(uint64_t size, Make make);
  Status flush();

 private:
  unsigned threads_;
  const Sink& sink_;
  std::vector<Make> batch_;
  uint64_t batch_size_ = 0;
};

// What add() wants: the larger of a change's two sides.
uint64_t size_to_read(const Change& change);

}  // namespace stoplog::diff
