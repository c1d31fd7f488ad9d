// SPDX-License-Identifier: Apache-2.0
#include "snapshot/object_pack.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/interrupt.h"
#include "base/sys_file.h"

namespace stoplog::snapshot {
namespace {

constexpr std::string_view kHeader = "stoplog pack 1\n\0";  // 15 bytes + NUL
constexpr size_t kHeaderSize = 16;
constexpr std::string_view kEnd = "SLPKEND1";
constexpr size_t kEntrySize = 32 + 3 * 8;
// index offset, count, SHA-256 of the index, kEnd
constexpr size_t kTrailerSize = 8 + 8 + 32 + 8;
constexpr size_t kFlushAt = 1u << 20;

void append_le(std::vector<std::byte>& out, uint64_t value) {
  for (int i = 0; i < 8; ++i)
    out.push_back(static_cast<std::byte>((value >> (8 * i)) & 0xff));
}
uint64_t read_le(const std::byte* at) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value |= static_cast<uint64_t>(at[i]) << (8 * i);
  return value;
}
template <typename Bytes>
void append(std::vector<std::byte>& out, const Bytes& bytes) {
  auto raw = std::as_bytes(std::span(bytes));
  out.insert(out.end(), raw.begin(), raw.end());
}

std::string temp_name() {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}{}-{}", kTempPrefix, ::getpid(), counter.fetch_add(1));
}

}  // namespace

Result<NewFile> NewFile::create(int dir) {
  auto fd = sys::openat(dir, ".", O_TMPFILE | O_RDWR, 0400);
  if (fd) return NewFile(dir, std::move(*fd), "");
  if (fd.error().err() != EOPNOTSUPP && fd.error().err() != EISDIR)
    return std::unexpected(fd.error());
  Hold hold;  // while it has a temporary name
  std::string temp = temp_name();
  // Left by a dead process of the same number.
  (void)sys::unlinkat(dir, temp);
  Fd file = TRY(sys::openat(dir, temp, O_RDWR | O_CREAT | O_EXCL, 0400));
  hold.give_away();
  return NewFile(dir, std::move(file), temp);
}

NewFile::~NewFile() {
  if (!fd_ || temp_.empty()) return;
  (void)sys::unlinkat(dir_, temp_);
  Hold::take_over().release();
}

Status NewFile::keep(int dir, const std::string& name, Sync sync) {
  if (sync == Sync::kYes) TRY(sys::fdatasync(fd_.get()));
  auto link_as = [&](const std::string& as) {
    if (!temp_.empty()) return sys::linkat(dir_, temp_, dir, as);
    return sys::linkat(AT_FDCWD, "/proc/self/fd/" + std::to_string(fd_.get()),
                       dir, as, AT_SYMLINK_FOLLOW);
  };
  Status linked = link_as(name);
  if (!linked && linked.error().err() != EEXIST) return linked;
  if (!linked) {
    // The same content under that name, unless power loss tore it before it
    // was synced: ours is whole.
    Hold hold;
    std::string other = temp_name();
    TRY(link_as(other));
    TRY(sys::renameat2(dir, other, dir, name, 0));
  }
  if (sync == Sync::kNo) return {};
  return sys::fsync(dir);
}

Result<PackWriter> PackWriter::create(int dir) {
  PackWriter writer(dir, TRY(NewFile::create(dir)));
  TRY(writer.write(std::as_bytes(std::span(kHeader).first(kHeaderSize - 1))));
  TRY(writer.write(std::as_bytes(std::span("", 1))));
  return writer;
}

Status PackWriter::flush() {
  TRY(sys::pwrite_full(file_.fd(), buffer_, written_));
  written_ += buffer_.size();
  buffer_.clear();
  return {};
}

Status PackWriter::write(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kFlushAt) return flush();
  return {};
}

Result<Sha256Digest> PackWriter::add(const fs::Content& content) {
  uint64_t start = written_ + buffer_.size();
  Sha256Digest id = TRY(
      encoder_.encode(content, [this](auto bytes) { return write(bytes); }));
  uint64_t end = written_ + buffer_.size();
  if (entries_.contains(id) && start >= written_) {
    // The twin is still in the buffer: take it back. One that was flushed in
    // part stays as dead bytes that no entry names.
    buffer_.resize(start - written_);
    return id;
  }
  entries_.try_emplace(id, PackEntry{.id = id,
                                     .offset = start,
                                     .length = end - start,
                                     .size = content.size()});
  return id;
}

Status PackWriter::add(const Encoded& object) {
  uint64_t start = written_ + buffer_.size();
  auto [entry, is_new] =
      entries_.try_emplace(object.id, PackEntry{.id = object.id,
                                                .offset = start,
                                                .length = object.bytes.size(),
                                                .size = object.size});
  if (!is_new) return {};
  return write(object.bytes);
}

Result<std::string> PackWriter::finish(Sync sync) {
  if (entries_.empty()) return std::string();
  uint64_t index_offset = written_ + buffer_.size();
  std::vector<std::byte> index;
  index.reserve(entries_.size() * kEntrySize);
  for (const auto& [id, entry] : entries_) {
    append(index, id);
    append_le(index, entry.offset);
    append_le(index, entry.length);
    append_le(index, entry.size);
  }
  Sha256Digest check = sha256(std::span<const std::byte>(index));
  TRY(write(index));
  std::vector<std::byte> trailer;
  append_le(trailer, index_offset);
  append_le(trailer, entries_.size());
  append(trailer, check);
  append(trailer, kEnd);
  TRY(write(trailer));
  TRY(flush());
  std::string name = hex(std::span(check).first(16)) + std::string(kPackSuffix);
  TRY(file_.keep(dir_, name, sync));
  return name;
}

Result<PackReader> PackReader::open(int dir, const std::string& name) {
  auto damaged = [&](std::string_view what) {
    return fail(Code::kCorrupt, "pack {} is damaged: {}", name, what);
  };
  Fd fd = TRY(sys::openat(dir, name, O_RDONLY));
  uint64_t size = TRY(sys::fstat(fd.get())).size;
  if (size < kHeaderSize + kTrailerSize) return damaged("too short");
  std::vector<std::byte> trailer(kTrailerSize);
  if (TRY(sys::pread_full(fd.get(), trailer, size - kTrailerSize)) !=
          kTrailerSize ||
      std::memcmp(trailer.data() + 48, kEnd.data(), kEnd.size()) != 0)
    return damaged("no trailer");
  uint64_t offset = read_le(trailer.data());
  uint64_t count = read_le(trailer.data() + 8);
  if (count > size / kEntrySize ||
      offset != size - kTrailerSize - count * kEntrySize)
    return damaged("bad trailer");
  std::vector<std::byte> index(count * kEntrySize);
  if (TRY(sys::pread_full(fd.get(), index, offset)) != index.size())
    return damaged("short index");
  Sha256Digest check = sha256(std::span<const std::byte>(index));
  if (std::memcmp(check.data(), trailer.data() + 16, check.size()) != 0)
    return damaged("index check");
  std::vector<PackEntry> entries(count);
  for (uint64_t i = 0; i < count; ++i) {
    const std::byte* at = index.data() + i * kEntrySize;
    std::memcpy(entries[i].id.data(), at, 32);
    entries[i].offset = read_le(at + 32);
    entries[i].length = read_le(at + 40);
    entries[i].size = read_le(at + 48);
    if (entries[i].offset < kHeaderSize || entries[i].length > offset ||
        entries[i].offset > offset - entries[i].length)
      return damaged("entry out of range");
  }
  return PackReader(std::move(fd), std::move(entries));
}

const PackEntry* PackReader::find(const Sha256Digest& id) const {
  auto at = std::lower_bound(
      entries_.begin(), entries_.end(), id,
      [](const PackEntry& e, const Sha256Digest& want) { return e.id < want; });
  return at != entries_.end() && at->id == id ? &*at : nullptr;
}

}  // namespace stoplog::snapshot
