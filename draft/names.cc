// SPDX-License-Identifier: Apache-2.0
#include "draft/names.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/sys_process.h"

namespace stoplog::draft {
namespace {

constexpr std::string_view kAdjectives[] = {
    "able",   "amber",  "ample", "brave", "brisk",  "broad",  "calm",  "clear",
    "cool",   "coral",  "crisp", "dawn",  "deep",   "early",  "even",  "fair",
    "fine",   "firm",   "fleet", "free",  "fresh",  "gentle", "glad",  "gold",
    "good",   "grand",  "green", "happy", "hazel",  "ivory",  "jolly", "keen",
    "kind",   "large",  "late",  "light", "lively", "long",   "lucid", "lucky",
    "mellow", "merry",  "mild",  "mossy", "neat",   "noble",  "north", "open",
    "pale",   "plain",  "proud", "quick", "quiet",  "rapid",  "ready", "royal",
    "sharp",  "silent", "slow",  "small", "solid",  "sunny",  "swift", "warm"};
constexpr std::string_view kNouns[] = {
    "acorn",  "alder",  "arch",   "aspen",  "badger", "bay",    "beaver",
    "birch",  "bridge", "brook",  "canal",  "cedar",  "cliff",  "cloud",
    "cove",   "crane",  "creek",  "delta",  "dune",   "elm",    "falcon",
    "fern",   "finch",  "fjord",  "forest", "fox",    "garden", "glade",
    "harbor", "hawk",   "heron",  "hill",   "island", "ivy",    "juniper",
    "lagoon", "lake",   "larch",  "lark",   "linden", "lock",   "maple",
    "marsh",  "meadow", "mill",   "otter",  "owl",    "pebble", "pier",
    "pine",   "plover", "pond",   "reed",   "ridge",  "river",  "robin",
    "sluice", "spring", "stream", "swan",   "tern",   "valley", "weir",
    "willow"};
static_assert(std::size(kAdjectives) == 64 && std::size(kNouns) == 64);

template <size_t N>
Result<std::array<unsigned char, N>> random_bytes() {
  std::array<unsigned char, N> bytes{};
  TRY(sys::getrandom(std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

}  // namespace

Result<std::string> random_id() {
  auto bytes = TRY(random_bytes<kIdLength>());
  std::string id;
  for (unsigned char b : bytes) id += kIdDigits[b % kIdDigits.size()];
  return id;
}

Result<std::string> friendly_name() {
  auto bytes = TRY(random_bytes<2>());
  return fmt::format("{}-{}", kAdjectives[bytes[0] % 64],
                     kNouns[bytes[1] % 64]);
}

std::string mark_name(const fs::Mark& mark) {
  switch (mark.kind) {
    case fs::MarkKind::kCommandBegin:
      return fmt::format("@{}", mark.command);
    case fs::MarkKind::kCommandEnd:
      return fmt::format("@{}.", mark.command);
    case fs::MarkKind::kNamed:
      return mark.name;
    default:
      return "";
  }
}

}  // namespace stoplog::draft
