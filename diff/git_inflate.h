// SPDX-License-Identifier: Apache-2.0
// The means of git_pack.h: deflated streams and deltas of an agent's making,
// read piece by piece within a bound, and the names that git gives to objects.
// Code::kInvalid for what is damaged, EFBIG for what goes beyond the bound.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "diff/git_index.h"
#include "fs/view.h"

namespace stoplog::diff {

// Fills `out` as far as there is something; read_bytes() fails when short.
Result<size_t> read_some(const fs::Content& content, uint64_t offset,
                         std::string& out);
Status read_bytes(const fs::Content& content, uint64_t offset,
                  std::string& out);

// Inflates the stream at `offset` to its end; where it ended. What is read and
// what comes out is taken from `left`. `take` answers false for too much.
Result<uint64_t> inflate_from(
    const fs::Content& content, uint64_t offset, uint64_t& left,
    const std::function<bool(std::string_view)>& take);

// What git's delta makes of `base`, at most `limit` bytes.
Result<std::string> apply_delta(std::string_view base, std::string_view delta,
                                uint64_t limit);

// SHA-1 or SHA-256, as the repository names its objects; raw.
class ObjectHash {
 public:
  explicit ObjectHash(ObjectFormat format);
  ~ObjectHash();
  ObjectHash(const ObjectHash&) = delete;
  ObjectHash& operator=(const ObjectHash&) = delete;
  void update(std::string_view bytes);
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};
std::string object_id(ObjectFormat format, std::string_view type,
                      std::string_view data);

}  // namespace stoplog::diff
