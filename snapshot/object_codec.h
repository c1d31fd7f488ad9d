// SPDX-License-Identifier: Apache-2.0
// One stored object: a checked header (size and data ranges, so that holes cost
// nothing) and one zstd frame with the data. The same bytes stand alone in a
// loose object file and side by side in a pack. docs/FORMAT.md has the layout.
//
// An encoder or decoder is used by one thread at a time and reused: making a
// zstd context costs more than compressing a small file. It is made at the
// first use: most commands open the store and need nothing of it, and the
// buffers alone are 93 page faults.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/hash.h"
#include "base/result.h"
#include "fs/view.h"
#include "snapshot/content_digest.h"

namespace stoplog::snapshot {

using ByteSink = std::function<Status(std::span<const std::byte>)>;

class ObjectEncoder {
 public:
  ObjectEncoder();
  ~ObjectEncoder();
  ObjectEncoder(ObjectEncoder&&) noexcept;
  ObjectEncoder& operator=(ObjectEncoder&&) noexcept;
  // Writes the object to `sink` and returns the content's digest.
  Result<Sha256Digest> encode(const fs::Content& content, const ByteSink& sink);

 private:
  struct Zstd;
  std::unique_ptr<Zstd> zstd_;
};

class ObjectDecoder {
 public:
  ObjectDecoder();
  ~ObjectDecoder();
  ObjectDecoder(ObjectDecoder&&) noexcept;
  ObjectDecoder& operator=(ObjectDecoder&&) noexcept;
  // Reads the object at [offset, offset+length) of `fd`. Calls `size` first,
  // then `sink` with each piece of data, holes left out. What does not decode,
  // or has not the digest `want`, is Code::kCorrupt: pieces already given
  // are then worthless, so a caller uses them only after success.
  struct Source {
    int fd;
    uint64_t offset;
    uint64_t length;
  };
  Status decode(const Source& source, const Sha256Digest& want,
                const std::function<Status(uint64_t)>& size,
                const ContentSink& sink);

 private:
  struct Zstd;
  std::unique_ptr<Zstd> zstd_;
};

}  // namespace stoplog::snapshot
