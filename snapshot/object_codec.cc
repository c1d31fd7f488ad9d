// SPDX-License-Identifier: Apache-2.0
#include "snapshot/object_codec.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/sys_file.h"

namespace stoplog::snapshot {
namespace {

constexpr uint32_t kMagic = 0x314f4c53;  // "SLO1"
constexpr size_t kFixed = 16;            // magic, range count, size
constexpr size_t kCheck = 8;             // XXH3-64 of what stands before it
constexpr size_t kMaxRanges = 4096;
constexpr int kLevel = 3;
// Level 3 needs 2 MiB; a larger window in a file is not ours.
constexpr int kMaxWindowLog = 23;

void append_le(std::vector<std::byte>& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out.push_back(static_cast<std::byte>((value >> (8 * i)) & 0xff));
}

uint64_t read_le(const std::byte* at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value |= static_cast<uint64_t>(at[i]) << (8 * i);
  return value;
}

// Few ranges: a file with a million holes is stored with its small holes as
// zeros, which zstd makes disappear.
std::vector<fs::Content::Range> merged_ranges(const fs::Content& content) {
  auto ranges = content.data();
  for (uint64_t gap = 64 * 1024; ranges.size() > 64; gap *= 4) {
    std::vector<fs::Content::Range> fewer;
    for (const auto& range : ranges) {
      if (!fewer.empty()) {
        auto& last = fewer.back();
        uint64_t end = last.offset + last.length;
        if (range.offset - end <= gap) {
          last.length = range.offset + range.length - last.offset;
          continue;
        }
      }
      fewer.push_back(range);
    }
    ranges = std::move(fewer);
    if (ranges.size() <= kMaxRanges) break;
  }
  return ranges;
}

class RangedContent : public fs::Content {
 public:
  RangedContent(const fs::Content& content, std::vector<Range> ranges)
      : content_(content), ranges_(std::move(ranges)) {}
  uint64_t size() const override { return content_.size(); }
  Result<size_t> read(uint64_t offset,
                      std::span<std::byte> out) const override {
    return content_.read(offset, out);
  }
  std::vector<Range> data() const override { return ranges_; }

 private:
  const fs::Content& content_;
  std::vector<Range> ranges_;
};

std::unexpected<Error> corrupt(std::string_view what) {
  return fail(Code::kCorrupt, "object is damaged: {}", what);
}

}  // namespace

struct ObjectEncoder::Zstd {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  std::vector<std::byte> out = std::vector<std::byte>(ZSTD_CStreamOutSize());
  Zstd() { ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kLevel); }
  ~Zstd() { ZSTD_freeCCtx(context); }

  Status feed(std::span<const std::byte> bytes, ZSTD_EndDirective end,
              const ByteSink& sink) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    for (;;) {
      ZSTD_outBuffer piece{out.data(), out.size(), 0};
      size_t left = ZSTD_compressStream2(context, &piece, &in, end);
      if (ZSTD_isError(left) != 0)
        return fail(Code::kInternal, "zstd: {}", ZSTD_getErrorName(left));
      if (piece.pos > 0) TRY(sink(std::span(out).first(piece.pos)));
      bool all_in = in.pos == in.size;
      if (all_in && (end != ZSTD_e_end || left == 0)) return {};
    }
  }
};

ObjectEncoder::ObjectEncoder() = default;
ObjectEncoder::~ObjectEncoder() = default;
ObjectEncoder::ObjectEncoder(ObjectEncoder&&) noexcept = default;
ObjectEncoder& ObjectEncoder::operator=(ObjectEncoder&&) noexcept = default;

Result<Sha256Digest> ObjectEncoder::encode(const fs::Content& content,
                                           const ByteSink& sink) {
  RangedContent ranged(content, merged_ranges(content));
  std::vector<std::byte> header;
  append_le(header, kMagic, 4);
  auto ranges = ranged.data();
  append_le(header, ranges.size(), 4);
  append_le(header, content.size(), 8);
  uint64_t total = 0;
  for (const auto& range : ranges) {
    append_le(header, range.offset, 8);
    append_le(header, range.length, 8);
    total += range.length;
  }
  append_le(header, xxh3_64(header), 8);
  TRY(sink(header));

  if (!zstd_) zstd_ = std::make_unique<Zstd>();
  ZSTD_CCtx_reset(zstd_->context, ZSTD_reset_session_only);
  ZSTD_CCtx_setPledgedSrcSize(zstd_->context, total);
  ContentHasher hasher(content.size());
  uint64_t fed = 0;
  TRY(for_each_piece(ranged, [&](uint64_t offset, auto bytes) -> Status {
    hasher.data(offset, bytes);
    fed += bytes.size();
    // A small file, whole in one call, is not copied into zstd's own window.
    return zstd_->feed(bytes, fed == total ? ZSTD_e_end : ZSTD_e_continue,
                       sink);
  }));
  if (total == 0) TRY(zstd_->feed({}, ZSTD_e_end, sink));
  return hasher.finish();
}

struct ObjectDecoder::Zstd {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  std::vector<std::byte> in = std::vector<std::byte>(ZSTD_DStreamInSize());
  std::vector<std::byte> out = std::vector<std::byte>(ZSTD_DStreamOutSize());
  Zstd() {
    ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, kMaxWindowLog);
  }
  ~Zstd() { ZSTD_freeDCtx(context); }
};

ObjectDecoder::ObjectDecoder() = default;
ObjectDecoder::~ObjectDecoder() = default;
ObjectDecoder::ObjectDecoder(ObjectDecoder&&) noexcept = default;
ObjectDecoder& ObjectDecoder::operator=(ObjectDecoder&&) noexcept = default;

namespace {

struct Header {
  uint64_t size = 0;
  std::vector<fs::Content::Range> ranges;
  uint64_t length = 0;  // of the header itself
};

// `first`: what the source begins with, all of it or a good part.
Result<Header> read_header(const ObjectDecoder::Source& source,
                           std::span<const std::byte> first) {
  if (first.size() < kFixed + kCheck) return corrupt("too short");
  if (read_le(first.data(), 4) != kMagic) return corrupt("bad magic");
  uint64_t count = read_le(first.data() + 4, 4);
  Header header;
  header.size = read_le(first.data() + 8, 8);
  header.length = kFixed + count * 16 + kCheck;
  if (count > kMaxRanges || header.length > source.length)
    return corrupt("bad header");
  std::vector<std::byte> whole;
  if (header.length > first.size()) {
    whole.resize(header.length);
    if (TRY(sys::pread_full(source.fd, whole, source.offset)) != whole.size())
      return corrupt("too short");
    first = whole;
  }
  auto bytes = first.first(header.length);
  auto body = std::span(bytes).first(bytes.size() - kCheck);
  if (xxh3_64(body) != read_le(bytes.data() + body.size(), 8))
    return corrupt("header check");
  uint64_t end = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const std::byte* at = bytes.data() + kFixed + i * 16;
    fs::Content::Range range{read_le(at, 8), read_le(at + 8, 8)};
    if (range.offset < end || range.length > header.size ||
        range.offset > header.size - range.length)
      return corrupt("bad range");
    end = range.offset + range.length;
    header.ranges.push_back(range);
  }
  return header;
}

// Hands a run of data bytes out to the file positions they belong to.
class Placer {
 public:
  Placer(const Header& header, const ContentSink& sink)
      : header_(header), sink_(sink), hasher_(header.size) {}

  Status put(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (range_ == header_.ranges.size()) return corrupt("too much data");
      const auto& range = header_.ranges[range_];
      size_t take = std::min<uint64_t>(bytes.size(), range.length - within_);
      if (take > 0) {
        hasher_.data(range.offset + within_, bytes.first(take));
        TRY(sink_(range.offset + within_, bytes.first(take)));
      }
      within_ += take;
      bytes = bytes.subspan(take);
      if (within_ == range.length) {
        ++range_;
        within_ = 0;
      }
    }
    return {};
  }

  Status check(const Sha256Digest& want) {
    while (range_ < header_.ranges.size() &&
           header_.ranges[range_].length == within_) {
      ++range_;
      within_ = 0;
    }
    if (range_ != header_.ranges.size()) return corrupt("data ends early");
    if (hasher_.finish() != want) return corrupt("content digest differs");
    return {};
  }

 private:
  const Header& header_;
  const ContentSink& sink_;
  ContentHasher hasher_;
  size_t range_ = 0;
  uint64_t within_ = 0;
};

}  // namespace

Status ObjectDecoder::decode(const Source& source, const Sha256Digest& want,
                             const std::function<Status(uint64_t)>& size,
                             const ContentSink& sink) {
  if (!zstd_) zstd_ = std::make_unique<Zstd>();
  // Of a small one that is all.
  size_t begun = std::min<uint64_t>(zstd_->in.size(), source.length);
  auto first = std::span(zstd_->in).first(begun);
  if (TRY(sys::pread_full(source.fd, first, source.offset)) != begun)
    return corrupt("too short");
  Header header = TRY(read_header(source, first));
  TRY(size(header.size));
  Placer placer(header, sink);
  ZSTD_DCtx_reset(zstd_->context, ZSTD_reset_session_only);
  uint64_t at = std::max<uint64_t>(header.length, begun);
  size_t more = 1;
  ZSTD_inBuffer in{zstd_->in.data(), begun,
                   std::min<size_t>(header.length, begun)};
  while (more != 0) {
    if (in.pos == in.size) {
      size_t take = std::min<uint64_t>(zstd_->in.size(), source.length - at);
      if (take == 0) return corrupt("too short");
      size_t got = TRY(sys::pread_full(
          source.fd, std::span(zstd_->in).first(take), source.offset + at));
      if (got != take) return corrupt("too short");
      at += take;
      in = {zstd_->in.data(), take, 0};
    }
    ZSTD_outBuffer out{zstd_->out.data(), zstd_->out.size(), 0};
    more = ZSTD_decompressStream(zstd_->context, &out, &in);
    if (ZSTD_isError(more) != 0) return corrupt(ZSTD_getErrorName(more));
    TRY(placer.put(std::span(zstd_->out).first(out.pos)));
  }
  return placer.check(want);
}

}  // namespace stoplog::snapshot
