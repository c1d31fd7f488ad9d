// SPDX-License-Identifier: Apache-2.0
// Sound frames that say anything, in several generations: what they tell of one
// another (older, from, tables, base maps) leads to no crash and no endless
// chain, and the whole is read the same twice.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/fd.h"
#include "fs/draft_view.h"
#include "fs/history.h"
#include "fs/layout.h"
#include "fuzz.h"

using namespace stoplog;
using namespace stoplog::fs;

namespace {

constexpr uint32_t kFiles = 4;

struct Place {
  Place() {
    std::string form =
        std::filesystem::temp_directory_path() / "stoplog-fuzz-XXXXXX";
    path = ::mkdtemp(form.data());
    std::filesystem::create_directory(path / layout::kJournalDir);
    fd = Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~Place() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
  Fd fd;
};

void put_frame(std::string& out, uint64_t sequence, uint16_t type,
               std::string_view payload, uint64_t draft) {
  size_t begin = begin_frame(out);
  out.append(payload);
  end_frame(out, begin, {.sequence = sequence, .type = type}, draft);
}

// A record is type, length (2) and payload; type 255 begins a generation.
void write_files(const Place& place, std::string_view input) {
  uint64_t sequence = 0;
  for (uint32_t number = 1; number <= kFiles; ++number) {
    std::string bytes, open;
    encode(OpenRecord{.draft = number % 2, .generation = number}, open);
    put_frame(bytes, ++sequence, 0, open, 0);
    while (input.size() >= 3) {
      auto type = static_cast<uint8_t>(input[0]);
      size_t length = static_cast<uint8_t>(input[1]) |
                      static_cast<size_t>(static_cast<uint8_t>(input[2])) << 8;
      input.remove_prefix(3);
      if (type == 255) break;
      length = std::min(length, input.size());
      put_frame(bytes, ++sequence, type, input.substr(0, length), number % 2);
      input.remove_prefix(length);
    }
    std::string path =
        place.path / layout::kJournalDir / layout::generation_name(number);
    Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    require(::write(fd.get(), bytes.data(), bytes.size()) ==
            static_cast<ssize_t>(bytes.size()));
  }
}

}  // namespace

void fuzz(std::string_view input) {
  static const Place place;
  write_files(place, input);
  auto all = replay(place.fd.get());
  auto again = replay(place.fd.get());
  require(all.has_value() == again.has_value());
  if (all) {
    require(all->damaged == again->damaged && all->notes == again->notes);
    require(!all->damaged || !all->notes.empty());
  }
  for (Position at : {Position{3}, Position{9}, Position{20}}) {
    (void)replay(place.fd.get(), at);
    (void)base_maps_since(place.fd.get(), at);
  }
  (void)read_timeline(place.fd.get());
  RangeSet needed;
  (void)add_needed(place.fd.get(), {}, needed);
  auto generations = Generations::list(place.fd.get());
  if (generations) (void)generations->older(1000, {1, 2});
}
