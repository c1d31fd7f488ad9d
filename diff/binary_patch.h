// SPDX-License-Identifier: Apache-2.0
// One literal of a "GIT binary patch": the size, then the deflated bytes in
// git's base 85, 52 bytes a line, and an empty line. Streams: the bytes are
// never all in memory.
//
//   Literal literal(size, sink);
//   literal.write(bytes); ...
//   literal.finish();
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "diff/change_set.h"

namespace stoplog::diff {

class Literal {
 public:
  // `sink` must outlive it.
  Literal(uint64_t size, const Sink& sink);
  ~Literal();
  Literal(const Literal&) = delete;
  Literal& operator=(const Literal&) = delete;

  Status write(std::span<const std::byte> data);
  Status finish();

 private:
  struct State;
  Status deflate(std::span<const std::byte> data, bool last);
  std::unique_ptr<State> state_;
};

Status write_literal(const fs::Content& content, const Sink& sink);
Status write_literal(std::string_view text, const Sink& sink);

}  // namespace stoplog::diff
