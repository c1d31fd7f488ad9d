// SPDX-License-Identifier: Apache-2.0
#include "snapshot/objects.h"

#include <dirent.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/sys_file.h"

namespace stoplog::snapshot {
namespace {

constexpr const char* kLooseDir = "loose";
constexpr const char* kPackDir = "packs";
constexpr const char* kLockFile = "lock";
constexpr uint64_t kInMemory = 4u << 20;

Result<Fd> open_subdir(int dir, const char* name) {
  auto made = sys::mkdirat(dir, name, 0700);
  if (!made && made.error().err() != EEXIST)
    return std::unexpected(made.error());
  return sys::openat(dir, name, O_RDONLY | O_DIRECTORY);
}

Result<std::vector<std::string>> names_in(int dir) {
  Fd fd = TRY(sys::openat(dir, ".", O_RDONLY | O_DIRECTORY));
  DIR* stream = ::fdopendir(fd.get());
  if (stream == nullptr) return fail_errno(errno);
  (void)fd.release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
    errno = 0;
  }
  int err = errno;
  ::closedir(stream);
  if (err != 0) return fail_errno(err);
  std::sort(names.begin(), names.end());
  return names;
}

std::string loose_name(const Sha256Digest& id) { return hex(id).substr(2); }
std::string loose_bucket(const Sha256Digest& id) {
  return hex(id).substr(0, 2);
}

}  // namespace

Result<ObjectStore> ObjectStore::open(int dir) {
  Fd own = TRY(sys::dup(dir));
  Fd loose = TRY_CTX(open_subdir(dir, kLooseDir), "cannot open objects/loose");
  Fd packs = TRY_CTX(open_subdir(dir, kPackDir), "cannot open objects/packs");
  return ObjectStore(std::move(own), std::move(loose), std::move(packs));
}

Result<ObjectStore::Use> ObjectStore::use() const {
  Fd lock = TRY(sys::openat(dir_.get(), kLockFile, O_RDWR | O_CREAT, 0600));
  TRY(sys::flock(lock.get(), LOCK_SH));
  return Use(std::move(lock));
}

Result<PackWriter> ObjectStore::new_pack() const {
  return PackWriter::create(packs_.get());
}

Result<Sha256Digest> ObjectStore::put(const fs::Content& content) {
  NewFile file = TRY(NewFile::create(loose_.get()));
  uint64_t at = 0;
  Sha256Digest id = TRY(encoder_.encode(content, [&](auto bytes) -> Status {
    TRY(sys::pwrite_full(file.fd(), bytes, at));
    at += bytes.size();
    return {};
  }));
  if (TRY(find(id))) return id;
  std::string bucket_name = loose_bucket(id);
  Fd bucket = TRY(open_subdir(loose_.get(), bucket_name.c_str()));
  TRY(file.keep(bucket.get(), loose_name(id)));
  // The bucket itself may be new.
  TRY(sys::fsync(loose_.get()));
  return id;
}

Status ObjectStore::load_packs() {
  damaged_packs_.clear();
  std::map<std::string, PackReader> fresh;
  for (const std::string& name : TRY(names_in(packs_.get()))) {
    if (!name.ends_with(kPackSuffix)) continue;
    if (auto known = readers_.extract(name)) {
      fresh.insert(std::move(known));
      continue;
    }
    auto reader = PackReader::open(packs_.get(), name);
    if (reader)
      fresh.emplace(name, std::move(*reader));
    else if (reader.error().err() != ENOENT)
      damaged_packs_.push_back(reader.error().text());
  }
  readers_ = std::move(fresh);
  return {};
}

Result<std::optional<ObjectStore::Place>> ObjectStore::find(
    const Sha256Digest& id) {
  auto in_packs = [&]() -> std::optional<Place> {
    for (const auto& [name, reader] : readers_)
      if (const PackEntry* entry = reader.find(id))
        return Place{reader.fd(), entry->offset, entry->length};
    return std::nullopt;
  };
  // Known packs first, which costs no call; the directory is read again only
  // for an id that is nowhere else.
  if (auto place = in_packs()) return place;
  auto bucket =
      sys::openat(loose_.get(), loose_bucket(id), O_RDONLY | O_DIRECTORY);
  if (bucket) {
    auto file = sys::openat(bucket->get(), loose_name(id), O_RDONLY);
    if (file) {
      last_loose_ = std::move(*file);
      uint64_t length = TRY(sys::fstat(last_loose_.get())).size;
      return Place{last_loose_.get(), 0, length};
    }
    if (file.error().err() != ENOENT) return std::unexpected(file.error());
  }
  TRY(load_packs());
  return in_packs();
}

Result<ObjectStore::Place> ObjectStore::find_or_fail(const Sha256Digest& id) {
  auto place = TRY(find(id));
  if (place) return *place;
  if (!damaged_packs_.empty())
    return fail(Code::kCorrupt, "object {} is missing; {}", hex(id),
                damaged_packs_.front());
  return std::unexpected(
      Error(Code::kErrno, "object " + hex(id) + " is missing", ENOENT));
}

Result<bool> ObjectStore::has(const Sha256Digest& id) {
  return TRY(find(id)).has_value();
}

Result<uint64_t> ObjectStore::size(const Sha256Digest& id) {
  Place place = TRY(find_or_fail(id));
  std::byte bytes[16];
  if (TRY(sys::pread_full(place.fd, bytes, place.offset)) != sizeof bytes)
    return fail(Code::kCorrupt, "object {} is damaged: too short", hex(id));
  uint64_t size = 0;
  std::memcpy(&size, bytes + 8, sizeof size);
  return le64toh(size);
}

Result<std::string> ObjectStore::get(const Sha256Digest& id, uint64_t limit) {
  Place place = TRY(find_or_fail(id));
  std::string out;
  TRY_CTX(decoder_.decode(
              {place.fd, place.offset, place.length}, id,
              [&](uint64_t size) -> Status {
                if (size > limit) return fail_errno(EFBIG);
                out.assign(size, '\0');
                return {};
              },
              [&](uint64_t offset, auto bytes) -> Status {
                std::memcpy(out.data() + offset, bytes.data(), bytes.size());
                return {};
              }),
          hex(id));
  return out;
}

Status ObjectStore::get_into(const Sha256Digest& id, int fd) {
  Place place = TRY(find_or_fail(id));
  TRY_CTX(decoder_.decode(
              {place.fd, place.offset, place.length}, id,
              [&](uint64_t size) { return sys::ftruncate(fd, size); },
              [&](uint64_t offset, auto bytes) {
                return sys::pwrite_full(fd, bytes, offset);
              }),
          hex(id));
  return {};
}

Result<std::shared_ptr<const fs::Content>> ObjectStore::content(
    const Sha256Digest& id) {
  auto small = get(id, kInMemory);
  if (small) return memory_content(std::move(*small));
  if (small.error().err() != EFBIG) return std::unexpected(small.error());
  NewFile file = TRY(NewFile::create(loose_.get()));
  TRY(get_into(id, file.fd()));
  return file_content(TRY(sys::dup(file.fd())));
}

Result<std::vector<ObjectStore::Info>> ObjectStore::list() {
  std::vector<Info> all;
  for (const std::string& bucket : TRY(names_in(loose_.get()))) {
    if (bucket.size() != 2) continue;
    Fd dir = TRY(sys::openat(loose_.get(), bucket, O_RDONLY | O_DIRECTORY));
    for (const std::string& name : TRY(names_in(dir.get()))) {
      Info info;
      if (!unhex(bucket + name, info.id)) continue;
      info.stored = TRY(sys::statat(dir.get(), name)).size;
      auto size = this->size(info.id);
      info.size = size ? *size : 0;
      all.push_back(std::move(info));
    }
  }
  TRY(load_packs());
  for (const auto& [name, reader] : readers_)
    for (const PackEntry& entry : reader.entries())
      all.push_back({entry.id, entry.size, entry.length, name});
  return all;
}

Result<std::vector<std::string>> ObjectStore::verify() {
  std::vector<std::string> damage;
  std::vector<Info> all = TRY(list());
  damage = damaged_packs_;
  for (const Info& info : all) {
    int fd = -1;
    Place place{};
    if (info.pack.empty()) {
      place = TRY(find_or_fail(info.id));
    } else {
      const PackReader& reader = readers_.at(info.pack);
      fd = reader.fd();
      const PackEntry* entry = reader.find(info.id);
      place = {fd, entry->offset, entry->length};
    }
    auto read = decoder_.decode(
        {place.fd, place.offset, place.length}, info.id,
        [](uint64_t) -> Status { return {}; },
        [](uint64_t, auto) -> Status { return {}; });
    if (!read)
      damage.push_back(std::move(read.error()).context(hex(info.id)).text());
  }
  return damage;
}

Result<uint64_t> ObjectStore::sweep_pack(const std::string& name,
                                         const std::set<Sha256Digest>& live,
                                         Swept& swept) {
  const PackReader& reader = readers_.at(name);
  uint64_t needed = 0, total = 0, dead = 0;
  for (const PackEntry& entry : reader.entries()) {
    total += entry.length;
    if (live.contains(entry.id))
      needed += entry.length;
    else
      ++dead;
  }
  if (dead == 0 || (needed > 0 && needed * 2 >= total)) return uint64_t{0};
  uint64_t before = TRY(sys::fstat(reader.fd())).size;
  uint64_t after = 0;
  if (needed > 0) {
    PackWriter writer = TRY(new_pack());
    for (const PackEntry& entry : reader.entries()) {
      if (!live.contains(entry.id)) continue;
      auto kept = TRY(content(entry.id));
      TRY(writer.add(*kept));
    }
    std::string fresh = TRY(writer.finish());
    after = TRY(sys::statat(packs_.get(), fresh)).size;
  }
  swept.objects += dead;
  TRY(sys::unlinkat(packs_.get(), name));
  return before - std::min(before, after);
}

Result<ObjectStore::Swept> ObjectStore::sweep(const Live& needed, bool wait) {
  Fd lock = TRY(sys::openat(dir_.get(), kLockFile, O_RDWR | O_CREAT, 0600));
  TRY(sys::flock(lock.get(), LOCK_EX | (wait ? 0 : LOCK_NB)));
  const std::set<Sha256Digest> live = TRY(needed());
  Swept swept;
  for (const std::string& bucket : TRY(names_in(loose_.get()))) {
    if (bucket.starts_with(kTempPrefix)) {
      // Nobody writes while we hold the lock alone: left by a crash.
      TRY(sys::unlinkat(loose_.get(), bucket));
      continue;
    }
    Fd dir = TRY(sys::openat(loose_.get(), bucket, O_RDONLY | O_DIRECTORY));
    for (const std::string& name : TRY(names_in(dir.get()))) {
      Sha256Digest id;
      if (!unhex(bucket + name, id) || live.contains(id)) continue;
      swept.bytes += TRY(sys::statat(dir.get(), name)).blocks * 512;
      ++swept.objects;
      TRY(sys::unlinkat(dir.get(), name));
    }
  }
  TRY(load_packs());
  std::vector<std::string> packs;
  for (const auto& [name, reader] : readers_) packs.push_back(name);
  for (const std::string& name : packs)
    swept.bytes += TRY(sweep_pack(name, live, swept));
  for (const std::string& name : TRY(names_in(packs_.get())))
    if (name.starts_with(kTempPrefix)) TRY(sys::unlinkat(packs_.get(), name));
  readers_.clear();
  return swept;
}

}  // namespace stoplog::snapshot
