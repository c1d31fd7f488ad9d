// SPDX-License-Identifier: Apache-2.0
#include "diff/git_inflate.h"

// As in base/hash.cc: the EVP calls would load providers at their first use.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/hash_speed.h"
#include "diff/content_hash.h"
#include "diff/git_pack.h"

namespace stoplog::diff {
namespace {

constexpr size_t kPiece = 64 << 10;
constexpr size_t kFirst = 4 << 10;  // most objects are small

std::unexpected<Error> bad() {
  return fail(Code::kInvalid, "not a deflated object");
}

struct Inflater {
  z_stream z{};
  bool ready = inflateInit(&z) == Z_OK;
  Inflater() = default;
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (ready) inflateEnd(&z);
  }
};

// "blob 12\0": the type and the size, when `bytes` begin with them.
struct Head {
  std::string type;
  uint64_t size = 0;
  size_t length = 0;  // with the NUL
};
std::optional<Head> parse_head(std::string_view bytes) {
  size_t end = bytes.substr(0, 40).find('\0');
  size_t space = bytes.substr(0, 40).find(' ');
  if (end == bytes.npos || space == bytes.npos || space > end) return {};
  Head head{std::string(bytes.substr(0, space)), 0, end + 1};
  std::string_view digits = bytes.substr(space + 1, end - space - 1);
  if (digits.empty() || digits.size() > 15 ||
      (digits.size() > 1 && digits[0] == '0'))
    return {};
  for (char c : digits) {
    if (c < '0' || c > '9') return {};
    head.size = head.size * 10 + static_cast<uint64_t>(c - '0');
  }
  for (std::string_view known : {"blob", "tree", "commit", "tag"})
    if (head.type == known) return head;
  return {};
}

}  // namespace

Result<size_t> read_some(const fs::Content& content, uint64_t offset,
                         std::string& out) {
  return content.read(offset, std::as_writable_bytes(std::span(out)));
}

Status read_bytes(const fs::Content& content, uint64_t offset,
                  std::string& out) {
  if (TRY(read_some(content, offset, out)) != out.size())
    return fail(Code::kInvalid, "cut off");
  return {};
}

Result<uint64_t> inflate_from(
    const fs::Content& content, uint64_t offset, uint64_t& left,
    const std::function<bool(std::string_view)>& take) {
  Inflater inflater;
  if (!inflater.ready) return fail_errno(ENOMEM);
  z_stream& z = inflater.z;
  std::string in(kFirst, '\0'), out(kPiece, '\0');
  for (int result = Z_OK; result != Z_STREAM_END;) {
    if (z.avail_in == 0) {
      size_t got = TRY(read_some(content, offset, in));
      if (got == 0) return bad();
      if (got > left) return fail_errno(EFBIG);
      left -= got;
      offset += got;
      z.next_in = reinterpret_cast<Bytef*>(in.data());
      z.avail_in = static_cast<uInt>(got);
    }
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    result = inflate(&z, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
      return bad();
    size_t made = out.size() - z.avail_out;
    if (made > left) return fail_errno(EFBIG);
    left -= made;
    if (made > 0 && !take(std::string_view(out).substr(0, made))) return bad();
    if (z.avail_in == 0 && in.size() == kFirst) in.resize(kPiece);
  }
  // What was read ahead was not used.
  left += z.avail_in;
  return offset - z.avail_in;
}

Result<std::string> apply_delta(std::string_view base, std::string_view delta,
                                uint64_t limit) {
  auto damaged = [] { return fail(Code::kInvalid, "a delta is damaged"); };
  size_t at = 0;
  bool ended = false;
  auto next = [&]() -> uint64_t {
    if (at < delta.size()) return static_cast<unsigned char>(delta[at++]);
    ended = true;
    return 0;
  };
  auto number = [&] {
    uint64_t value = 0, c = 0x80;
    for (unsigned shift = 0; (c & 0x80) != 0 && shift < 63; shift += 7) {
      c = next();
      value |= (c & 0x7f) << shift;
    }
    return value;
  };
  uint64_t from = number(), size = number();
  if (ended || from != base.size()) return damaged();
  if (size > limit) return fail_errno(EFBIG);
  std::string out;
  out.reserve(static_cast<size_t>(size));
  while (at < delta.size()) {
    uint64_t op = next();
    if ((op & 0x80) != 0) {
      uint64_t offset = 0, length = 0;
      for (unsigned i = 0; i < 4; i++)
        if ((op >> i & 1) != 0) offset |= next() << (8 * i);
      for (unsigned i = 0; i < 3; i++)
        if ((op >> (4 + i) & 1) != 0) length |= next() << (8 * i);
      if (length == 0) length = 0x10000;
      if (ended || offset > base.size() || length > base.size() - offset ||
          length > size - out.size())
        return damaged();
      out +=
          base.substr(static_cast<size_t>(offset), static_cast<size_t>(length));
    } else {
      size_t length = static_cast<size_t>(op);
      if (length == 0 || length > delta.size() - at ||
          length > size - out.size())
        return damaged();
      out += delta.substr(at, length);
      at += length;
    }
  }
  if (out.size() != size) return damaged();
  return out;
}

struct ObjectHash::State {
  SHA_CTX sha1;
  std::optional<Sha256> sha256;
};

ObjectHash::ObjectHash(ObjectFormat format)
    : state_(std::make_unique<State>()) {
  if (format == ObjectFormat::kSha1) {
    use_fast_hashing();
    SHA1_Init(&state_->sha1);
  } else {
    state_->sha256.emplace();
  }
}

ObjectHash::~ObjectHash() = default;

void ObjectHash::update(std::string_view bytes) {
  if (state_->sha256) return state_->sha256->update(bytes);
  SHA1_Update(&state_->sha1, bytes.data(), bytes.size());
}

std::string ObjectHash::finish() {
  if (state_->sha256) {
    Sha256Digest digest = state_->sha256->finish();
    return std::string(digest.begin(), digest.end());
  }
  GitId id;
  SHA1_Final(id.data(), &state_->sha1);
  return std::string(id.begin(), id.end());
}

std::string object_id(ObjectFormat format, std::string_view type,
                      std::string_view data) {
  ObjectHash hash(format);
  hash.update(fmt::format("{} {}", type, data.size()));
  hash.update(std::string_view("\0", 1));
  hash.update(data);
  return hash.finish();
}

Verdict check_loose(const fs::Content& content, std::string_view id,
                    ObjectFormat format, uint64_t& left) {
  if (id.size() != id_size(format)) return Verdict::kFalse;
  ObjectHash hash(format);
  uint64_t size = 0;
  std::string begin;
  auto end = inflate_from(content, 0, left, [&](std::string_view piece) {
    if (begin.size() < 64) begin += piece.substr(0, 64);
    hash.update(piece);
    size += piece.size();
    return true;
  });
  if (!end)
    return end.error().code() == Code::kInvalid ? Verdict::kFalse
                                                : Verdict::kUnknown;
  auto head = parse_head(begin);
  bool fits = head && head->size + head->length == size &&
              *end == content.size() && hash.finish() == id;
  return fits ? Verdict::kTrue : Verdict::kFalse;
}

Result<GitObject> read_loose(const fs::Content& content, uint64_t& left) {
  constexpr size_t kLargest = 64 << 20;
  std::string data;
  bool large = false;
  auto end = inflate_from(content, 0, left, [&](std::string_view piece) {
    large = data.size() + piece.size() > kLargest;
    if (!large) data += piece;
    return !large;
  });
  if (large) return fail_errno(EFBIG);
  TRY(std::move(end));
  auto head = parse_head(data);
  if (!head || head->size + head->length != data.size()) return bad();
  data.erase(0, head->length);
  return GitObject{std::move(head->type), std::move(data)};
}

}  // namespace stoplog::diff
