// SPDX-License-Identifier: Apache-2.0
// Whether objects that went away are still there in other packs: what `git gc`
// and `git repack` do, told by the index files of packs (version 2).
//
//   MissingObjects missing(format, loose_ids, indexes_of_packs);
//   missing.found_in(pack_index_ids(index, format));   // each that is there
//   if (missing.left().empty()) ...                    // repacked: no loss
//
// The files are an agent's: an index that cannot be read has no objects, and
// one that is not in order only seems to have fewer. What is said rests on the
// index's word: it decides what is shown, and no commit removes an object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diff/git_index.h"

namespace stoplog::diff {

inline constexpr uint64_t kPackIndexLimit = 64ull << 20;  // 2 million objects

// The raw ids of an index, one after the other; empty when it cannot be read.
std::string_view pack_index_ids(std::string_view bytes, ObjectFormat format);

// The raw id of a loose object by its path in the git directory,
// "objects/ab/cdef…"; unset when that is no object's.
std::optional<std::string> loose_object_id(std::string_view path);

class MissingObjects {
 public:
  // Raw ids, and the bytes of the packs' indexes.
  MissingObjects(ObjectFormat format, std::vector<std::string> loose,
                 std::vector<std::string> packs);

  // `ids` as of pack_index_ids().
  void found_in(std::string_view ids);
  // What is still missing: loose objects, and packs of which any object is, by
  // their numbers in what was given, the loose ones first.
  std::vector<size_t> left() const;

 private:
  struct Item {
    std::string_view id;  // into loose_ or packs_
    size_t owner = 0;     // as left() counts
    bool found = false;
  };
  size_t id_size_;
  std::vector<std::string> loose_, packs_;
  std::vector<Item> items_;         // by id
  std::vector<size_t> unreadable_;  // packs, as left() counts
};

}  // namespace stoplog::diff
