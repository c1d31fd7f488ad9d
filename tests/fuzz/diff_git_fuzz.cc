// SPDX-License-Identifier: Apache-2.0
// fuzz: sources diff/git_index.cc diff/git_split_index.cc diff/git_inflate.cc
// fuzz: sources diff/git_object.cc diff/git_config.cc diff/git_pack_index.cc
//
// The readers of a git directory over any bytes: no read outside, no growth
// beyond the input, and an index that reads compares equal to itself.
#include <cstdlib>
#include <string_view>

#include "diff/git_config.h"
#include "diff/git_object.h"
#include "diff/git_pack_index.h"
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

void check_packs(std::string_view input, ObjectFormat format) {
  std::string_view ids = pack_index_ids(input, format);
  require(ids.size() % id_size(format) == 0);
  require(ids.empty() ||
          (ids.data() >= input.data() &&
           ids.data() + ids.size() <= input.data() + input.size()));
  // What is missing is found where it is, when that is in order.
  std::vector<std::string> loose;
  if (auto id = loose_object_id(input)) loose.push_back(*id);
  MissingObjects missing(format, loose, {std::string(input)});
  size_t before = missing.left().size();
  require(before <= loose.size() + 1);
  missing.found_in(ids);
  require(missing.left().size() <= before);
}

void check_config(std::string_view input) {
  size_t values = 0;
  for (const auto& [key, all] : parse_git_config(input)) values += all.size();
  require(values <= input.size() + 1);
  require(risk_of_git_config(input, input).level != Level::kDanger);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  check_index(input, ObjectFormat::kSha1);
  check_index(input, ObjectFormat::kSha256);
  if (auto commit = parse_loose_commit(input))
    require(commit->subject.size() <= 200);
  if (auto entries = parse_tree(input, 20))
    for (const TreeEntry& entry : *entries)
      require(entry.id.size() == 40 && !entry.name.empty());
  if (auto tag = parse_tag(input)) require(is_git_id(tag->id));
  if (auto bare = index_without_extras(input, ObjectFormat::kSha1))
    check_index(*bare, ObjectFormat::kSha1);
  (void)parse_ref(input);
  (void)parse_packed_refs(input);
  check_config(input);
  for (ObjectFormat format : {ObjectFormat::kSha1, ObjectFormat::kSha256})
    check_packs(input, format);
  return 0;
}
