// SPDX-License-Identifier: Apache-2.0
#include "snapshot/bundle_file.h"

#include <zstd.h>

#include <algorithm>
#include <set>

#include "base/escape.h"
#include "base/sys_file.h"
#include "fs/codec.h"
#include "snapshot/frame_packer.h"

namespace stoplog::snapshot {
namespace {

constexpr std::string_view kHead = "stoplog bundle 1";
constexpr std::string_view kEnd = "SLBEND01";
constexpr uint32_t kSkippable = 0x184d2a5b;
constexpr size_t kFrameHead = 8;  // magic and length of a skippable frame
constexpr size_t kHeadSize = kFrameHead + kHead.size();
constexpr size_t kTrailer = 8 + 32 + kEnd.size();
constexpr uint64_t kMaxIndex = 128u << 20;
constexpr size_t kMaxName = 128;
constexpr uint64_t kMaxSize = uint64_t{1} << 56;
constexpr int kLevel = 3;
// Level 3 needs 2 MiB; a larger window in a file is not ours.
constexpr int kMaxWindowLog = 23;

std::unexpected<Error> damaged(std::string_view what) {
  return fail(Code::kCorrupt, "the bundle is damaged: {}", what);
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

Result<std::string> read_at(int fd, uint64_t offset, size_t size) {
  std::string text(size, '\0');
  size_t n =
      TRY(sys::pread_full(fd, std::as_writable_bytes(std::span(text)), offset));
  if (n != size) return damaged("it ends early");
  return text;
}

std::string encode_index(const std::vector<Section>& sections) {
  std::string out;
  fs::Writer w(out);
  w.u32(static_cast<uint32_t>(sections.size()));
  for (const Section& s : sections) {
    w.text(s.name);
    w.u64(s.offset);
    w.u64(s.length);
    w.u64(s.size);
    w.raw(s.sha256.data(), s.sha256.size());
  }
  return out;
}

// Sections follow one another without gap from the head to the index, so that
// no byte of the file is without a check.
Result<std::vector<Section>> decode_index(std::string_view bytes,
                                          uint64_t index_at) {
  fs::Reader r(bytes);
  uint32_t count = r.u32();
  if (!r.fits(count, 4 + 24 + 32)) return damaged("its index");
  std::vector<Section> sections;
  std::set<std::string_view> names;
  uint64_t at = kHeadSize;
  sections.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    Section& s = sections.emplace_back();
    s.name = r.text();
    s.offset = r.u64();
    s.length = r.u64();
    s.size = r.u64();
    r.raw(s.sha256.data(), s.sha256.size());
    if (!r.ok() || s.name.empty() || s.name.size() > kMaxName ||
        s.offset != at || s.length > index_at - at || s.size > kMaxSize ||
        !names.insert(s.name).second)
      return damaged("its index");
    at += s.length;
  }
  if (!r.done() || at != index_at) return damaged("its index");
  return sections;
}

}  // namespace

struct BundleWriter::Zstd {
  Zstd(int to, unsigned threads)
      : fd(to), packer(kLevel, threads, [this](auto frame) {
          hash.update(frame);
          return put(frame);
        }) {}
  Status put(std::span<const std::byte> bytes) {
    TRY(sys::pwrite_full(fd, bytes, at));
    at += bytes.size();
    return {};
  }
  int fd;
  uint64_t at = 0;
  Sha256 hash;  // of the section's frames
  FramePacker packer;
};

BundleWriter::BundleWriter(std::unique_ptr<Zstd> zstd)
    : zstd_(std::move(zstd)) {}
BundleWriter::~BundleWriter() = default;
BundleWriter::BundleWriter(BundleWriter&&) noexcept = default;
BundleWriter& BundleWriter::operator=(BundleWriter&&) noexcept = default;

Result<BundleWriter> BundleWriter::create(int fd, int threads) {
  BundleWriter writer(
      std::make_unique<Zstd>(fd, static_cast<unsigned>(threads)));
  std::string head;
  fs::Writer w(head);
  w.u32(kSkippable);
  w.u32(static_cast<uint32_t>(kHead.size()));
  head += kHead;
  TRY(writer.put(bytes_of(head)));
  return writer;
}

Status BundleWriter::put(std::span<const std::byte> bytes) {
  TRY(zstd_->put(bytes));
  at_ = zstd_->at;
  return {};
}

Status BundleWriter::begin(std::string name, uint64_t size) {
  now_ = {.name = std::move(name), .offset = at_, .size = size};
  left_ = size;
  zstd_->hash = Sha256();
  return {};
}

Status BundleWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > left_)
    return fail(Code::kInternal, "section '{}' is longer than it was",
                now_.name);
  left_ -= bytes.size();
  return zstd_->packer.write(bytes);
}

Status BundleWriter::end() {
  if (left_ != 0)
    return fail(Code::kInternal, "section '{}' is shorter than it was",
                now_.name);
  TRY(zstd_->packer.end());
  at_ = zstd_->at;
  now_.length = at_ - now_.offset;
  now_.sha256 = zstd_->hash.finish();
  sections_.push_back(std::move(now_));
  return {};
}

Status BundleWriter::add(std::string name, std::string_view bytes) {
  TRY(begin(std::move(name), bytes.size()));
  if (!bytes.empty()) TRY(write(bytes_of(bytes)));
  return end();
}

Status BundleWriter::finish() {
  std::string index = encode_index(sections_);
  if (index.size() > kMaxIndex)
    return fail(Code::kInvalid, "the draft has too many parts for a bundle");
  std::string out;
  fs::Writer w(out);
  w.u32(kSkippable);
  w.u32(static_cast<uint32_t>(index.size() + kTrailer));
  out += index;
  Sha256Digest digest = sha256(index);
  w.u64(index.size());
  w.raw(digest.data(), digest.size());
  out += kEnd;
  return put(bytes_of(out));
}

struct BundleReader::Zstd {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  std::vector<std::byte> in = std::vector<std::byte>(ZSTD_DStreamInSize());
  std::vector<std::byte> out = std::vector<std::byte>(ZSTD_DStreamOutSize());
  ~Zstd() { ZSTD_freeDCtx(context); }
};

BundleReader::BundleReader(int fd, std::vector<Section> sections)
    : fd_(fd), sections_(std::move(sections)), zstd_(std::make_unique<Zstd>()) {
  ZSTD_DCtx_setParameter(zstd_->context, ZSTD_d_windowLogMax, kMaxWindowLog);
}
BundleReader::~BundleReader() = default;
BundleReader::BundleReader(BundleReader&&) noexcept = default;
BundleReader& BundleReader::operator=(BundleReader&&) noexcept = default;

Result<BundleReader> BundleReader::open(int fd) {
  uint64_t size = TRY(sys::fstat(fd)).size;
  std::string head(kHeadSize, '\0');
  size_t n =
      TRY(sys::pread_full(fd, std::as_writable_bytes(std::span(head)), 0));
  fs::Reader h(head);
  if (n != kHeadSize || h.u32() != kSkippable || h.u32() != kHead.size() ||
      std::string_view(head).substr(kFrameHead) != kHead)
    return fail(Code::kInvalid, "this is no stoplog bundle");
  if (size < kHeadSize + kFrameHead + kTrailer) return damaged("it ends early");
  std::string trailer = TRY(read_at(fd, size - kTrailer, kTrailer));
  fs::Reader t(trailer);
  uint64_t index_size = t.u64();
  Sha256Digest digest;
  t.raw(digest.data(), digest.size());
  if (std::string_view(trailer).substr(kTrailer - kEnd.size()) != kEnd)
    return damaged("it ends early");
  if (index_size > kMaxIndex ||
      index_size > size - kHeadSize - kFrameHead - kTrailer)
    return damaged("its index");
  uint64_t at = size - kTrailer - index_size - kFrameHead;
  std::string index =
      TRY(read_at(fd, at, static_cast<size_t>(kFrameHead + index_size)));
  fs::Reader f(index);
  if (f.u32() != kSkippable || f.u32() != index_size + kTrailer)
    return damaged("its index");
  std::string_view body = std::string_view(index).substr(kFrameHead);
  if (sha256(body) != digest) return damaged("its index");
  return BundleReader(fd, TRY(decode_index(body, at)));
}

const Section* BundleReader::find(std::string_view name) const {
  auto it = std::ranges::find(sections_, name, &Section::name);
  return it == sections_.end() ? nullptr : &*it;
}

Status BundleReader::read(const Section& section, const ByteSink& sink) {
  auto bad = [&] {
    return damaged(fmt::format("section '{}'", escape(section.name)));
  };
  ZSTD_DCtx_reset(zstd_->context, ZSTD_reset_session_only);
  Sha256 hash;
  uint64_t at = section.offset, end = section.offset + section.length;
  uint64_t given = 0;
  size_t more = 1;  // 0: a frame is whole
  while (at < end) {
    size_t want =
        static_cast<size_t>(std::min<uint64_t>(zstd_->in.size(), end - at));
    size_t n = TRY(sys::pread_full(fd_, std::span(zstd_->in).first(want), at));
    if (n != want) return bad();
    hash.update(std::span<const std::byte>(zstd_->in).first(n));
    at += n;
    ZSTD_inBuffer in{zstd_->in.data(), n, 0};
    for (bool full = true; in.pos < in.size || full;) {
      ZSTD_outBuffer out{zstd_->out.data(), zstd_->out.size(), 0};
      more = ZSTD_decompressStream(zstd_->context, &out, &in);
      if (ZSTD_isError(more) != 0) return bad();
      if (out.pos > section.size - given) return bad();
      given += out.pos;
      if (out.pos > 0) TRY(sink(std::span(zstd_->out).first(out.pos)));
      full = out.pos == out.size && more != 0;
    }
  }
  if (more != 0 || given != section.size || hash.finish() != section.sha256)
    return bad();
  return {};
}

Result<std::string> BundleReader::text(const Section& section, uint64_t limit) {
  if (section.size > limit)
    return damaged(
        fmt::format("section '{}' is too large", escape(section.name)));
  std::string text;
  TRY(read(section, [&](std::span<const std::byte> bytes) -> Status {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  }));
  return text;
}

}  // namespace stoplog::snapshot
