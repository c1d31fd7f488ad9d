// SPDX-License-Identifier: Apache-2.0
#include "diff/ordered_writer.h"

#include <algorithm>
#include <utility>

#include "base/parallel.h"

namespace stoplog::diff {
namespace {

constexpr uint64_t kSmall = 1 << 20;
// Together, since each byte may become several: a patch has both sides, and a
// terminal sees a control character as four.
constexpr uint64_t kBatchSize = 8 << 20;
constexpr size_t kBatch = 256;

}  // namespace

Status OrderedWriter::add(uint64_t size, Make make) {
  if (size > kSmall) {
    TRY(flush());
    return make(sink_);
  }
  batch_.push_back(std::move(make));
  batch_size_ += size;
  if (batch_.size() < kBatch && batch_size_ < kBatchSize) return {};
  return flush();
}

Status OrderedWriter::flush() {
  std::vector<Make> batch = std::exchange(batch_, {});
  batch_size_ = 0;
  std::vector<std::string> made(batch.size());
  TRY(parallel_for(batch.size(), threads_, [&](size_t i) {
    return batch[i]([&](std::string_view s) { made[i] += s; });
  }));
  for (const std::string& text : made)
    if (!text.empty()) sink_(text);
  return {};
}

uint64_t size_to_read(const Change& change) {
  return std::max(change.before ? change.before->size : 0,
                  change.after ? change.after->size : 0);
}

}  // namespace stoplog::diff
