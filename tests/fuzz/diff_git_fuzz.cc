// SPDX-License-Identifier: Apache-2.0
// fuzz: sources diff/git_index.cc diff/git_split_index.cc
// fuzz: sources diff/git_object.cc diff/git_config.cc
//
// The readers of a git directory over any bytes: no read outside, no growth
// beyond the input, and an index that reads compares equal to itself.
#include <cstdlib>
#include <string_view>

#include "diff/git_config.h"
#include "diff/git_object.h"
#include "diff/git_split_index.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check_index(std::string_view input, ObjectFormat format) {
  auto reader = IndexReader::open(input, format);
  if (!reader) return;
  size_t bytes = 0;
  for (;;) {
    auto entry = reader->next();
    if (!entry || !*entry) break;
    bytes += 1;
    require(bytes <= input.size());
  }
  // Split by whatever it says, over itself and over nothing.
  auto shared = [&](const std::string&) -> Result<std::string> {
    return std::string(input);
  };
  IndexText text{input, shared};
  if (auto same = compare_indexes(text, text, format)) require(!same->any());
  (void)compare_indexes({"", {}}, {input, {}}, format);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  check_index(input, ObjectFormat::kSha1);
  check_index(input, ObjectFormat::kSha256);
  if (auto commit = parse_loose_commit(input))
    require(commit->subject.size() <= 200);
  (void)parse_ref(input);
  (void)parse_packed_refs(input);
  (void)parse_git_config(input);
  return 0;
}
