// SPDX-License-Identifier: Apache-2.0
// Frames: how records lie in a journal file. Each has a head of 32 bytes
// (magic, length, check, sequence, type, version, command) and its payload.
// The check covers everything after itself and is mixed with the draft's
// number, so bytes of another draft, or a record that an agent hid in a file
// name, never pass for one of ours.
//
// scan_frames() takes any bytes. It stops at the first frame that is not whole
// and sound and looks whether a sound one follows: if none does, the rest is a
// torn tail (a crash in mid-append); if one does, the middle is damaged.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoplog::fs {

inline constexpr uint32_t kFrameMagic = 0x31674c53;  // "SLg1"
inline constexpr uint16_t kFrameVersion = 1;
inline constexpr size_t kFrameHead = 32;
inline constexpr uint32_t kMaxPayload = 64u << 20;

struct Frame {
  uint64_t sequence = 0;
  uint16_t type = 0;
  uint32_t command = 0;
  std::string_view payload{};
};

// Appends one frame to `out`: reserve with begin_frame, append the payload,
// then end_frame with what begin_frame returned.
size_t begin_frame(std::string& out);
void end_frame(std::string& out, size_t begin, Frame head, uint64_t draft);

struct Damage {
  uint64_t begin = 0;  // in the file
  uint64_t end = 0;
  uint64_t first_lost = 0;  // sequence numbers, inclusive
  uint64_t last_lost = 0;
};
struct ScanEnd {
  uint64_t end = 0;       // where the next frame goes
  uint64_t torn = 0;      // bytes of torn tail behind it
  uint64_t sequence = 0;  // of the last sound frame; 0: none
  bool stopped = false;   // the sink had enough
  std::vector<Damage> damage{};
};
// False stops the scan (for a position before the end).
using FrameSink = std::function<Result<bool>(const Frame&)>;

// Reads the file from `begin`, whose next frame has a sequence above `after`.
// Nothing behind the frame `until` is looked at: it may be in the making.
Result<ScanEnd> scan_frames(int fd, uint64_t begin, uint64_t after,
                            uint64_t draft, const FrameSink& sink,
                            uint64_t until = UINT64_MAX);

}  // namespace stoplog::fs
