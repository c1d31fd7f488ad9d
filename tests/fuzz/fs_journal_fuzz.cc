// SPDX-License-Identifier: Apache-2.0
// Any bytes as a journal: no crash, no hang, no memory beyond a small multiple
// of the input. Raw bytes meet the frames' checks; the same bytes, cut into
// records without checks, meet the decoder and the state.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/fd.h"
#include "fs/journal.h"
#include "fs/state.h"

using namespace stoplog;
using namespace stoplog::fs;

namespace {

void check_frames(std::string_view bytes) {
  Fd fd(::memfd_create("journal", MFD_CLOEXEC));
  if (!fd || ::write(fd.get(), bytes.data(), bytes.size()) !=
                 static_cast<ssize_t>(bytes.size()))
    return;
  (void)read_head(fd.get());
  uint64_t seen = 0;
  auto end =
      scan_frames(fd.get(), 0, 0, 0, [&](const Frame& frame) -> Result<bool> {
        seen += kFrameHead + frame.payload.size();
        return true;
      });
  if (end && (end->end > bytes.size() || seen > bytes.size())) std::abort();
}

// Whatever the records say, the state stays sound enough to be walked, written
// out and read back.
void check_state(std::string_view bytes) {
  State state;
  Position position = 0;
  while (bytes.size() >= 3) {
    uint16_t type = static_cast<uint8_t>(bytes[0]);
    size_t length = static_cast<uint8_t>(bytes[1]) |
                    static_cast<size_t>(static_cast<uint8_t>(bytes[2])) << 8;
    bytes.remove_prefix(3);
    length = std::min(length, bytes.size());
    auto record = decode(type, bytes.substr(0, length));
    bytes.remove_prefix(length);
    if (!record) continue;
    ++position;
    if (const auto* from = std::get_if<FromRecord>(&*record))
      state.go_on_from(*from, position);
    else
      (void)state.apply({position, 0, std::move(*record)});
  }
  for (const auto& [serial, node] : state.nodes()) {
    (void)state.origin_of(*node);
    for (size_t i = 0; i < node->links.size(); ++i)
      (void)state.path_of(*node, i);
  }
  state.drop_orphans();
  State copy;
  Status result;
  state.snapshot(
      [&](Record record) -> Status {
        std::string encoded;
        encode(record, encoded);
        auto again = decode(record_type(record), encoded);
        if (!again) std::abort();
        (void)copy.apply({++position, 0, std::move(*again)});
        return {};
      },
      result);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_frames(bytes);
  check_state(bytes);
  return 0;
}
