// SPDX-License-Identifier: Apache-2.0
// The container of a bundle: named sections of zstd frames, and a checked index
// at the end. The file is a valid zstd file as a whole (head and index
// are skippable frames), so `zstd -t` and `zstd -l` know it. docs/FORMAT.md has
// the layout.
//
//   BundleWriter w = TRY(BundleWriter::create(fd, threads));
//   TRY(w.begin("ledger", size)); TRY(w.write(bytes)); TRY(w.end());
//   TRY(w.finish());
//   BundleReader r = TRY(BundleReader::open(fd));
//   TRY(r.read(*r.find("ledger"), sink));
//
// The reader takes any bytes: what is not whole and sound is Code::kCorrupt,
// what is no bundle at all Code::kInvalid. It never gives out more than the
// index says, and the sink's bytes count only when read() has succeeded. One
// thread each; fds are borrowed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "snapshot/object_codec.h"

namespace stoplog::snapshot {

struct Section {
  std::string name;
  uint64_t offset = 0;  // of its frames in the file
  uint64_t length = 0;
  uint64_t size = 0;      // of what is in it
  Sha256Digest sha256{};  // of the frames
};

class BundleWriter {
 public:
  // `threads` beside the caller's: 0 for none.
  static Result<BundleWriter> create(int fd, int threads);
  ~BundleWriter();
  BundleWriter(BundleWriter&&) noexcept;
  BundleWriter& operator=(BundleWriter&&) noexcept;

  Status begin(std::string name, uint64_t size);
  Status write(std::span<const std::byte> bytes);
  Status end();  // kInternal when not exactly `size` bytes were written
  Status add(std::string name, std::string_view bytes);
  Status finish();
  uint64_t written() const { return at_; }

 private:
  struct Zstd;
  explicit BundleWriter(std::unique_ptr<Zstd> zstd);
  Status put(std::span<const std::byte> bytes);

  std::unique_ptr<Zstd> zstd_;
  std::vector<Section> sections_;
  Section now_;
  uint64_t left_ = 0;
  uint64_t at_ = 0;
};

class BundleReader {
 public:
  static Result<BundleReader> open(int fd);
  ~BundleReader();
  BundleReader(BundleReader&&) noexcept;
  BundleReader& operator=(BundleReader&&) noexcept;

  const std::vector<Section>& sections() const { return sections_; }
  const Section* find(std::string_view name) const;
  Status read(const Section& section, const ByteSink& sink);
  // In memory; Code::kCorrupt when larger than `limit`.
  Result<std::string> text(const Section& section, uint64_t limit);

 private:
  struct Zstd;
  BundleReader(int fd, std::vector<Section> sections);

  int fd_;
  std::vector<Section> sections_;
  std::unique_ptr<Zstd> zstd_;
};

}  // namespace stoplog::snapshot
