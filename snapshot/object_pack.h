// SPDX-License-Identifier: Apache-2.0
// A pack: many objects in one write-once file with a checked index. A commit
// puts all of its pre-images into one; a file for each was six times slower.
//
//   PackWriter w = TRY(PackWriter::create(packs_dir));
//   Sha256Digest id = TRY(w.add(*content));      // any number of times
//   std::string name = TRY(w.finish());          // durable on return
//   PackReader r = TRY(PackReader::open(packs_dir, name));
//
// Nothing shows in the directory before finish(): the file is unlinked
// (O_TMPFILE), or has a temporary name where the file system cannot do that.
// Neither class is safe to use from two threads at once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/hash.h"
#include "base/result.h"
#include "base/temp_file.h"
#include "snapshot/object_codec.h"

namespace stoplog::snapshot {

inline constexpr std::string_view kPackSuffix = ".pack";

struct PackEntry {
  Sha256Digest id{};
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t size = 0;  // of the content
  bool operator==(const PackEntry&) const = default;
};

// A write-once file: unlinked or under a temporary name until keep().
class NewFile {
 public:
  static Result<NewFile> create(int dir);
  NewFile(NewFile&&) noexcept = default;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();
  int fd() const { return fd_.get(); }
  // Makes the data durable and gives it its name. A name that is taken already
  // is success: names here say what the content is.
  Status keep(int dir, const std::string& name, Sync sync = Sync::kYes);

 private:
  NewFile(int dir, Fd fd, std::string temp)
      : dir_(dir), fd_(std::move(fd)), temp_(std::move(temp)) {}
  int dir_;
  Fd fd_;
  std::string temp_;  // empty for O_TMPFILE
};
inline constexpr std::string_view kTempPrefix = "tmp-";

class PackWriter {
 public:
  static Result<PackWriter> create(int dir);  // borrowed until finish()
  // An object that is in the pack already is not stored again.
  Result<Sha256Digest> add(const fs::Content& content);
  // The same for an object that an encoder of another thread has made.
  struct Encoded {
    Sha256Digest id{};
    uint64_t size = 0;  // of the content
    std::vector<std::byte> bytes;
  };
  Status add(const Encoded& object);
  size_t count() const { return entries_.size(); }
  // The pack's file name. Nothing is written when no object was added, and the
  // name is then empty.
  // With Sync::kNo the caller must sync the file system before it relies on it.
  Result<std::string> finish(Sync sync = Sync::kYes);

 private:
  PackWriter(int dir, NewFile file) : dir_(dir), file_(std::move(file)) {}
  Status write(std::span<const std::byte> bytes);
  Status flush();

  int dir_;
  NewFile file_;
  ObjectEncoder encoder_;
  std::map<Sha256Digest, PackEntry> entries_;
  std::vector<std::byte> buffer_;
  uint64_t written_ = 0;  // to the file; buffer_ follows
};

class PackReader {
 public:
  static Result<PackReader> open(int dir, const std::string& name);
  const std::vector<PackEntry>& entries() const { return entries_; }
  const PackEntry* find(const Sha256Digest& id) const;
  int fd() const { return fd_.get(); }

 private:
  PackReader(Fd fd, std::vector<PackEntry> entries)
      : fd_(std::move(fd)), entries_(std::move(entries)) {}
  Fd fd_;
  std::vector<PackEntry> entries_;  // by id
};

}  // namespace stoplog::snapshot
