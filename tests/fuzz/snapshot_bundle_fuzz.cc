// SPDX-License-Identifier: Apache-2.0
// Any bytes as a bundle: no crash, no hang, never more out than the index says.
// The same bytes as an index with a good check over arbitrary frames, as a
// table of the base, as sparse data, and as records to be translated.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.h"
#include "base/hash.h"
#include "fs/records.h"
#include "fuzz.h"
#include "snapshot/bundle.h"
#include "snapshot/bundle_map.h"
#include "snapshot/bundle_ranges.h"

using namespace stoplog;
using namespace stoplog::snapshot;

namespace {

Fd file_of(std::string_view bytes) {
  Fd fd(::memfd_create("bundle", MFD_CLOEXEC));
  require(::write(fd.get(), bytes.data(), bytes.size()) ==
          static_cast<ssize_t>(bytes.size()));
  return fd;
}

void read_sections(std::string_view bytes) {
  Fd fd = file_of(bytes);
  auto in = BundleReader::open(fd.get());
  if (!in) return;
  for (const Section& s : in->sections()) {
    (void)is_section_name(s.name);
    uint64_t given = 0;
    auto done = in->read(s, [&](auto piece) -> Status {
      given += piece.size();
      // A bomb is allowed to be one; the importer asks for the size first.
      if (given > (8u << 20)) return fail_errno(EFBIG);
      return {};
    });
    require(given <= s.size || s.size > (8u << 20));
    require(!done || given == s.size);
  }
}

// The first two bytes say how many are frames; the rest is the index.
void with_good_check(std::string_view bytes) {
  if (bytes.size() < 2) return;
  size_t frames = static_cast<uint8_t>(bytes[0]) |
                  static_cast<size_t>(static_cast<uint8_t>(bytes[1])) << 8;
  bytes.remove_prefix(2);
  frames = std::min(frames, bytes.size());
  std::string_view index = bytes.substr(frames);
  auto number = [](uint64_t value, size_t size) {
    return std::string(reinterpret_cast<const char*>(&value), size);
  };
  constexpr uint32_t kSkippable = 0x184d2a5b;
  std::string file = number(kSkippable, 4) + number(16, 4) + "stoplog bundle 1";
  file += bytes.substr(0, frames);
  file += number(kSkippable, 4) + number(index.size() + 48, 4);
  file += index;
  file += number(index.size(), 8);
  Sha256Digest digest = sha256(index);
  file.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  file += "SLBEND01";
  read_sections(file);
}

void as_ranges(std::string_view bytes) {
  for (auto sized : {RangeSink::Sized::kNo, RangeSink::Sized::kYes}) {
    Fd fd = file_of("");
    RangeSink sink(fd.get(), sized);
    Status taken;
    for (size_t at = 0; at < bytes.size() && taken; at += 13)
      taken = sink.take(std::as_bytes(std::span(bytes.substr(at, 13))));
    if (taken) (void)sink.finish();
  }
}

void as_records(std::string_view bytes) {
  Compared compared;
  RecordMap map(compared, {.from_uid = 1, .to_uid = 2});
  while (bytes.size() >= 3) {
    uint16_t type = static_cast<uint8_t>(bytes[0]);
    size_t length = static_cast<uint8_t>(bytes[1]) |
                    static_cast<size_t>(static_cast<uint8_t>(bytes[2])) << 8;
    bytes.remove_prefix(3);
    length = std::min(length, bytes.size());
    auto record = fs::decode(type, bytes.substr(0, length));
    bytes.remove_prefix(length);
    if (record) (void)map.apply(*record);
  }
}

}  // namespace

void fuzz(std::string_view input) {
  read_sections(input);
  with_good_check(input);
  if (auto table = decode_base(input)) {
    auto again = decode_base(encode(*table));
    require(again && again->entries.size() == table->entries.size());
    for (const BaseEntry& entry : table->entries) {
      require(!entry.path.is_root());
      require(RelPath::parse(entry.path.str()).has_value());
    }
  }
  as_ranges(input);
  as_records(input);
}
