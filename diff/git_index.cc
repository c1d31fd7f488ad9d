// SPDX-License-Identifier: Apache-2.0
// The layout is that of gitformat-index(5).
#include "diff/git_index.h"

#include <algorithm>

#include "diff/git_config.h"
#include "diff/git_inflate.h"

namespace stoplog::diff {
namespace {

constexpr size_t kHeader = 12;
constexpr size_t kStat = 40;  // of one entry; its id and flags follow
constexpr size_t kFlags = 2;

uint32_t big32(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; i++)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

uint16_t big16(std::string_view bytes, size_t at) {
  return static_cast<uint16_t>(static_cast<unsigned char>(bytes[at]) << 8 |
                               static_cast<unsigned char>(bytes[at + 1]));
}

std::unexpected<Error> bad(std::string_view what) {
  return fail(Code::kInvalid, "the index is damaged: {}", what);
}

}  // namespace

size_t id_size(ObjectFormat format) {
  return format == ObjectFormat::kSha1 ? 20 : 32;
}

ObjectFormat object_format(std::string_view config) {
  auto keys = parse_git_config(config);
  auto found = keys.find("extensions.objectformat");
  return found != keys.end() && found->second.back() == "sha256"
             ? ObjectFormat::kSha256
             : ObjectFormat::kSha1;
}

Result<IndexReader> IndexReader::open(std::string_view bytes,
                                      ObjectFormat format, Names names) {
  const size_t id = id_size(format);
  if (bytes.size() < kHeader + id || !bytes.starts_with("DIRC"))
    return bad("no header");
  uint32_t version = big32(bytes, 4);
  if (version < 2 || version > 4)
    return fail(Code::kUnsupported, "index version {}", version);
  uint32_t count = big32(bytes, 8);
  // The smallest entry: a lie about the count is found before anything grows.
  if (count > (bytes.size() - kHeader) / (kStat + id + kFlags))
    return bad("too many entries");
  return IndexReader(bytes, id, version, count, names);
}

Result<std::optional<IndexEntry>> IndexReader::next() {
  if (left_ == 0) {
    TRY(check_extensions());
    return std::nullopt;
  }
  left_--;
  size_t start = at_;
  const size_t fixed = kStat + id_size_ + kFlags;
  if (bytes_.size() - at_ < fixed) return bad("an entry is cut off");
  IndexEntry entry;
  entry.mode = big32(bytes_, start + 24);
  entry.id = bytes_.substr(start + kStat, id_size_);
  uint16_t flags = big16(bytes_, start + kStat + id_size_);
  entry.stage = (flags >> 12) & 3;
  entry.assume_valid = (flags & 0x8000) != 0;
  at_ = start + fixed;
  if ((flags & 0x4000) != 0) {
    if (version_ < 3 || bytes_.size() - at_ < 2)
      return bad("an entry is cut off");
    uint16_t extended = big16(bytes_, at_);
    entry.skip_worktree = (extended & 0x4000) != 0;
    entry.intent_to_add = (extended & 0x2000) != 0;
    at_ += 2;
  }
  entry.path = TRY(take_path(start));
  return entry;
}

Result<std::string> IndexReader::take_path(size_t entry_start) {
  std::string path;
  if (version_ == 4) {
    // How much of the last path's end to drop, in git's offset encoding.
    uint64_t drop = 0;
    for (int i = 0;; i++) {
      if (i == 5 || at_ >= bytes_.size()) return bad("a prefix is cut off");
      unsigned char c = static_cast<unsigned char>(bytes_[at_++]);
      drop = (i == 0 ? 0 : (drop + 1) << 7) | (c & 0x7f);
      if ((c & 0x80) == 0) break;
    }
    if (drop > last_.size()) return bad("a prefix is too long");
    path = last_.substr(0, last_.size() - static_cast<size_t>(drop));
  }
  size_t end = bytes_.find('\0', at_);
  if (end == std::string_view::npos) return bad("a path has no end");
  path += bytes_.substr(at_, end - at_);
  if (path.empty() && names_ == Names::kMust)
    return bad("an entry has no path");
  if (path.size() > 1 << 16 || path.size() > names_left_)
    return bad("a path is too long");
  names_left_ -= path.size();
  if (version_ == 4) {
    at_ = end + 1;
    last_ = path;
  } else {
    // Padded with one to eight NULs to a multiple of eight.
    size_t length = (end - entry_start + 8) & ~size_t{7};
    if (length > bytes_.size() - entry_start) return bad("padding is cut off");
    at_ = entry_start + length;
  }
  return path;
}

// A split index keeps most of its entries in another file: those that we saw
// are then not the truth.
Status IndexReader::check_extensions() {
  entries_end_ = at_;
  while (bytes_.size() - at_ >= id_size_ + 8) {
    std::string_view name = bytes_.substr(at_, 4);
    uint32_t size = big32(bytes_, at_ + 4);
    if (size > bytes_.size() - at_ - 8) return bad("an extension is cut off");
    if (name == "link") {
      link_ = bytes_.substr(at_ + 8, size);
      bool shares = link_->substr(0, std::min(id_size_, link_->size()))
                        .find_first_not_of('\0') != std::string_view::npos;
      if (shares && names_ == Names::kMust)
        return fail(Code::kUnsupported, "a split index");
    }
    at_ += 8 + size;
  }
  if (bytes_.size() - at_ != id_size_) return bad("its end is missing");
  return {};
}

Result<std::string> index_without_extras(std::string_view bytes,
                                         ObjectFormat format) {
  IndexReader reader =
      TRY(IndexReader::open(bytes, format, IndexReader::Names::kMayLack));
  while (TRY(reader.next())) continue;
  size_t at = reader.entries_end();
  std::string out(bytes.substr(0, at));
  // Sizes were checked. A small letter begins what must be understood.
  while (bytes.size() - at >= id_size(format) + 8) {
    size_t size = 8 + size_t{big32(bytes, at + 4)};
    if (bytes[at] >= 'a' && bytes[at] <= 'z') out += bytes.substr(at, size);
    at += size;
  }
  ObjectHash hash(format);
  hash.update(out);
  return out + hash.finish();
}

}  // namespace stoplog::diff
