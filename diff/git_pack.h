// SPDX-License-Identifier: Apache-2.0
// Whether objects that an agent put into a git directory are what their names
// say, and their content: git looks for a name and, of most objects, believes
// what it finds there.
//
//   uint64_t left = kObjectBudget;
//   check_loose(*content, id, format, left) == Verdict::kTrue
//   Pack pack = TRY(Pack::open(content, index_bytes, format));
//   pack.check(left) == Verdict::kTrue       // each name of its index
//   auto object = TRY(pack.read(id, left));
//
// The files are hostile. What is inflated or built from deltas is taken from
// `left`, and what goes beyond it is Verdict::kUnknown (EFBIG of read()): time
// and memory have that bound whatever the files say. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diff/git_index.h"
#include "fs/view.h"

namespace stoplog::diff {

inline constexpr uint64_t kObjectBudget = 256ull << 20;

enum class Verdict { kTrue, kFalse, kUnknown };

struct GitObject {
  std::string type;  // "blob", "tree", "commit", "tag"
  std::string data;
};

// `id` is raw, 20 or 32 bytes.
Verdict check_loose(const fs::Content& content, std::string_view id,
                    ObjectFormat format, uint64_t& left);
Result<GitObject> read_loose(const fs::Content& content, uint64_t& left);

class Pack {
 public:
  // Code::kInvalid for an index (version 2) or a pack that is none, or when one
  // is not the other's.
  static Result<Pack> open(std::shared_ptr<const fs::Content> pack,
                           std::string index, ObjectFormat format);
  Verdict check(uint64_t& left) const;
  bool has(std::string_view id) const { return find(id).has_value(); }
  // nullopt: it has none of this name.
  Result<std::optional<GitObject>> read(std::string_view id,
                                        uint64_t& left) const;

 private:
  struct Entry {
    uint64_t offset = 0, size = 0, data = 0;
    int64_t base = -1;  // number of the entry that it is a delta of
    unsigned type = 0;
  };
  Pack() = default;
  std::string_view id_at(size_t number) const;
  uint64_t offset_at(size_t number) const;
  std::optional<size_t> find(std::string_view id) const;
  Status check_index() const;
  void sort_offsets() const;
  Result<Entry> entry_at(uint64_t offset) const;
  Result<std::vector<Entry>> entries(uint64_t& left) const;
  Result<std::string> inflate_at(const Entry& entry, uint64_t& left) const;
  Verdict hash_at(const Entry& entry, std::string_view id,
                  uint64_t& left) const;

  std::shared_ptr<const fs::Content> pack_;
  std::string index_;
  ObjectFormat format_ = ObjectFormat::kSha1;
  size_t count_ = 0, id_size_ = 20;
  size_t large_ = 0;  // offsets beyond 2 GiB
  // By offset; made when first asked for.
  mutable std::vector<std::pair<uint64_t, uint32_t>> by_offset_;
};

}  // namespace stoplog::diff
