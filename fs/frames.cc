// SPDX-License-Identifier: Apache-2.0
#include "fs/frames.h"

#include <cstring>

#include "base/hash.h"
#include "base/sys_file.h"

namespace stoplog::fs {
namespace {

struct Head {
  uint32_t magic;
  uint32_t length;
  uint64_t check;
  uint64_t sequence;
  uint16_t type;
  uint16_t version;
  uint32_t command;
};
static_assert(sizeof(Head) == kFrameHead);
constexpr size_t kChecked = 16;  // the check covers what comes after it

uint64_t check_of(std::string_view frame, uint64_t draft) {
  return xxh3_64(std::as_bytes(std::span(frame.substr(kChecked)))) ^ draft;
}

// A window over the file that slides forward; holds at least one frame.
class Window {
 public:
  Window(int fd, uint64_t size) : fd_(fd), size_(size) {}
  uint64_t size() const { return size_; }
  // Bytes at [at, at + length), or fewer at the end of the file.
  Result<std::string_view> get(uint64_t at, size_t length) {
    if (at >= size_) return std::string_view();
    length = static_cast<size_t>(std::min<uint64_t>(length, size_ - at));
    if (at < begin_ || at + length > begin_ + data_.size()) {
      const auto most = static_cast<size_t>(
          std::min<uint64_t>(std::max<size_t>(length, step_), size_ - at));
      step_ = std::min<size_t>(step_ * 4, 1u << 20);
      // Not filled with zeros first: a short journal is read often.
      Result<size_t> n = 0;
      data_.resize_and_overwrite(most, [&](char* to, size_t count) {
        n = sys::pread_full(fd_, std::as_writable_bytes(std::span(to, count)),
                            at);
        return n ? *n : 0;
      });
      begin_ = at;
      TRY(std::move(n));
    }
    return std::string_view(data_).substr(at - begin_, length);
  }

 private:
  int fd_;
  uint64_t size_;
  uint64_t begin_ = 0;
  size_t step_ = 16u << 10;  // often just the head of a journal is wanted
  std::string data_;
};

// The frame at `at`, or nothing when there is no sound one.
Result<std::optional<std::string_view>> frame_at(Window& window, uint64_t at,
                                                 uint64_t draft) {
  std::string_view bytes = TRY(window.get(at, kFrameHead));
  if (bytes.size() < kFrameHead) return std::nullopt;
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != kFrameMagic || head.length > kMaxPayload ||
      head.length > window.size() - at - kFrameHead)
    return std::nullopt;
  bytes = TRY(window.get(at, kFrameHead + head.length));
  if (bytes.size() < kFrameHead + head.length) return std::nullopt;
  if (check_of(bytes, draft) != head.check) return std::nullopt;
  return bytes;
}

Frame parse(std::string_view bytes) {
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  return {.sequence = head.sequence,
          .type = head.version == kFrameVersion ? head.type : uint16_t{0xffff},
          .command = head.command,
          .payload = bytes.substr(kFrameHead)};
}

// What a frame would cost to check, 0 for what cannot be one: whoever chose the
// bytes (a name, an attribute) may have put any number of heads there. Each
// frame has at least a head, so numbers grow no faster than places.
Result<uint64_t> cost_of(Window& window, uint64_t at, uint64_t begin,
                         uint64_t after) {
  std::string_view bytes = TRY(window.get(at, kFrameHead));
  if (bytes.size() < kFrameHead) return 0;
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.length > kMaxPayload ||
      head.length > window.size() - at - kFrameHead ||
      head.version != kFrameVersion || head.sequence <= after)
    return 0;
  if (after > 0 && head.sequence - after > (at - begin) / kFrameHead + 1)
    return 0;
  return kFrameHead + head.length;
}

// The next sound frame behind `at` with a later sequence; the file's size when
// there is none. Forged heads could make this quadratic: the bytes hashed in
// vain are limited, to a fraction of a second or a few times the file.
Result<uint64_t> resync(Window& window, uint64_t at, uint64_t after,
                        uint64_t draft) {
  uint64_t budget = window.size() * 4 + (1u << 30);
  constexpr size_t kStep = 1u << 16;
  const std::string_view magic(reinterpret_cast<const char*>(&kFrameMagic), 4);
  for (uint64_t base = at + 1; base < window.size(); base += kStep) {
    std::string block(TRY(window.get(base, kStep + 3)));
    for (size_t hit = block.find(magic);
         hit != std::string::npos && hit < kStep;
         hit = block.find(magic, hit + 1)) {
      uint64_t cost = TRY(cost_of(window, base + hit, at, after));
      if (cost == 0) continue;
      if (cost > budget)
        return fail(Code::kCorrupt, "the journal is damaged beyond search");
      budget -= cost;
      auto frame = TRY(frame_at(window, base + hit, draft));
      if (frame && parse(*frame).sequence > after) return base + hit;
    }
  }
  return window.size();
}

}  // namespace

size_t begin_frame(std::string& out) {
  size_t begin = out.size();
  out.append(kFrameHead, '\0');
  return begin;
}

void end_frame(std::string& out, size_t begin, Frame frame, uint64_t draft) {
  Head head{.magic = kFrameMagic,
            .length = static_cast<uint32_t>(out.size() - begin - kFrameHead),
            .check = 0,
            .sequence = frame.sequence,
            .type = frame.type,
            .version = kFrameVersion,
            .command = frame.command};
  std::memcpy(out.data() + begin, &head, sizeof head);
  head.check = check_of(std::string_view(out).substr(begin), draft);
  std::memcpy(out.data() + begin, &head, sizeof head);
}

Result<ScanEnd> scan_frames(int fd, uint64_t begin, uint64_t after,
                            uint64_t draft, const FrameSink& sink,
                            uint64_t until) {
  sys::Stat st = TRY(sys::fstat(fd));
  Window window(fd, st.size);
  ScanEnd result{.end = begin, .sequence = after};
  uint64_t at = begin;
  while (at < window.size()) {
    auto bytes = TRY(frame_at(window, at, draft));
    // A sound frame out of order is a stale one: preallocated space can hold
    // what a journal before this one wrote there.
    if (!bytes || parse(*bytes).sequence <= result.sequence) {
      auto found_at = resync(window, at, result.sequence, draft);
      if (!found_at && found_at.error().code() != Code::kCorrupt)
        return std::unexpected(std::move(found_at).error());
      if (!found_at) {
        // Whether something follows is not known: damage, and the way back to
        // a mark before it stays open.
        result.damage.push_back({.begin = at,
                                 .end = window.size(),
                                 .first_lost = result.sequence + 1,
                                 .last_lost = result.sequence + 1});
        break;
      }
      uint64_t next = *found_at;
      if (next == window.size()) {
        result.torn = window.size() - at;
        break;
      }
      Frame found = parse(*TRY(frame_at(window, next, draft)));
      result.damage.push_back({.begin = at,
                               .end = next,
                               .first_lost = result.sequence + 1,
                               .last_lost = found.sequence - 1});
      at = next;
      continue;
    }
    Frame frame = parse(*bytes);
    if (frame.sequence != result.sequence + 1 &&
        (result.damage.empty() || result.damage.back().end != at))
      result.damage.push_back({.begin = at,
                               .end = at,
                               .first_lost = result.sequence + 1,
                               .last_lost = frame.sequence - 1});
    if (!TRY(sink(frame))) {
      result.stopped = true;
      return result;
    }
    result.sequence = frame.sequence;
    at += kFrameHead + frame.payload.size();
    result.end = at;
    if (result.sequence >= until) {
      result.stopped = true;
      break;
    }
  }
  return result;
}

}  // namespace stoplog::fs
