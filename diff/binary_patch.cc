// SPDX-License-Identifier: Apache-2.0
#include "diff/binary_patch.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <vector>

namespace stoplog::diff {
namespace {

constexpr std::string_view kDigits =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    "!#$%&()*+-;<=>?@^_`{|}~";
constexpr size_t kBytesPerLine = 52;
constexpr size_t kPiece = 128 << 10;
// Above this, time counts for more than size: level 1 takes a fifth of it.
constexpr uint64_t kHurryFrom = 1 << 20;

void append_line(std::string& out, std::span<const unsigned char> bytes) {
  size_t n = bytes.size();
  out += static_cast<char>(n <= 26 ? 'A' + n - 1 : 'a' + n - 27);
  for (size_t at = 0; at < n; at += 4) {
    uint32_t word = 0;
    for (size_t i = 0; i < 4; i++)
      word = word << 8 | (at + i < n ? bytes[at + i] : 0u);
    std::array<char, 5> digits;
    for (size_t i = 5; i-- > 0; word /= 85) digits[i] = kDigits[word % 85];
    out.append(digits.data(), digits.size());
  }
  out += '\n';
}

}  // namespace

struct Literal::State {
  const Sink& sink;
  z_stream stream{};
  bool ready = false;
  std::array<unsigned char, kBytesPerLine * 1024> out{};
  size_t filled = 0;

  // Whole lines go out; the rest waits for the next, unless this is the last.
  void flush(bool last) {
    std::string text;
    size_t at = 0;
    while (filled - at >= kBytesPerLine || (last && at < filled)) {
      size_t n = std::min(kBytesPerLine, filled - at);
      append_line(text, std::span(out).subspan(at, n));
      at += n;
    }
    std::copy(out.begin() + static_cast<long>(at),
              out.begin() + static_cast<long>(filled), out.begin());
    filled -= at;
    if (!text.empty()) sink(text);
  }
};

Literal::Literal(uint64_t size, const Sink& sink)
    : state_(std::make_unique<State>(State{.sink = sink})) {
  sink(fmt::format("literal {}\n", size));
  state_->ready =
      deflateInit(&state_->stream,
                  size > kHurryFrom ? Z_BEST_SPEED : Z_DEFAULT_COMPRESSION) ==
      Z_OK;
}

Literal::~Literal() {
  if (state_->ready) deflateEnd(&state_->stream);
}

Status Literal::deflate(std::span<const std::byte> data, bool last) {
  if (!state_->ready) return fail_errno(ENOMEM, "cannot start zlib");
  z_stream& z = state_->stream;
  // zlib's interface lacks const; it does not write to its input.
  z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data.data()));
  z.avail_in = static_cast<uInt>(data.size());
  for (int result = Z_OK;;) {
    z.next_out = state_->out.data() + state_->filled;
    z.avail_out = static_cast<uInt>(state_->out.size() - state_->filled);
    result = ::deflate(&z, last ? Z_FINISH : Z_NO_FLUSH);
    if (result == Z_STREAM_ERROR)
      return fail(Code::kInternal, "zlib failed: {}", result);
    state_->filled = state_->out.size() - z.avail_out;
    bool full = z.avail_out == 0;
    bool done = last ? result == Z_STREAM_END : z.avail_in == 0 && !full;
    state_->flush(last && done);
    if (done) return {};
  }
}

Status Literal::write(std::span<const std::byte> data) {
  while (!data.empty()) {
    auto piece = data.first(std::min(data.size(), kPiece));
    TRY(deflate(piece, false));
    data = data.subspan(piece.size());
  }
  return {};
}

Status Literal::finish() {
  TRY(deflate({}, true));
  state_->sink("\n");
  return {};
}

Status write_literal(const fs::Content& content, const Sink& sink) {
  Literal literal(content.size(), sink);
  std::vector<std::byte> buffer(kPiece);
  for (uint64_t at = 0; at < content.size();) {
    size_t got = TRY(content.read(at, buffer));
    if (got == 0) return fail(Code::kDrift, "a file became shorter");
    TRY(literal.write(std::span(buffer).first(got)));
    at += got;
  }
  return literal.finish();
}

Status write_literal(std::string_view text, const Sink& sink) {
  Literal literal(text.size(), sink);
  TRY(literal.write(std::as_bytes(std::span(text))));
  return literal.finish();
}

}  // namespace stoplog::diff
