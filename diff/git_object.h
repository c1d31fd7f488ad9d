// SPDX-License-Identifier: Apache-2.0
// Bounded readers of what an agent left in a git directory: a loose commit
// object, packed-refs, a ref. Pure; they read nothing but their argument, and
// inflate at most kCommitLimit bytes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoplog::diff {

inline constexpr size_t kCommitLimit = 64 << 10;
inline constexpr uint64_t kRefFile = 4096;
inline constexpr uint64_t kPackedRefsLimit = 16ull << 20;
inline constexpr uint64_t kRefLogLimit = 1ull << 20;

struct Commit {
  std::string tree;
  std::vector<std::string> parents;  // 40 (SHA-256: 64) hex digits each
  std::string subject;               // first line, at most 200 bytes
};
// `bytes` is a whole loose object file, deflated. A long message is cut.
Result<Commit> parse_loose_commit(std::string_view bytes);
// The same of an object's data. git takes the first line for the tree and the
// next ones for parents, whatever else there is: what it never writes so is
// Code::kInvalid.
Result<Commit> parse_commit(std::string_view data);

struct TreeEntry {
  uint32_t mode = 0;  // 0100644, 0100755, 0120000, 0160000, 040000
  std::string name;
  std::string id;  // hex
  bool is_tree() const { return mode == 040000; }
  bool operator==(const TreeEntry&) const = default;
};
// In the order of the data. Names that are none in a file system, or ".git",
// are Code::kInvalid: git checks such a tree out nowhere.
Result<std::vector<TreeEntry>> parse_tree(std::string_view data,
                                          size_t id_size);

// What a tag's data is a tag of: type and hex id.
struct TagTarget {
  std::string type, id;
};
Result<TagTarget> parse_tag(std::string_view data);

// 40 or 64 lower-case hex digits.
bool is_git_id(std::string_view text);

// The content of HEAD or of a loose ref: an id, or "ref: refs/…". git reads
// more than that as one; it writes nothing else.
Result<std::string> parse_ref(std::string_view bytes);

// Name to id. Lines that are neither entry, comment nor peeled id fail.
Result<std::map<std::string, std::string>> parse_packed_refs(
    std::string_view bytes);
// The same as git writes them, but without what a tag is said to be a tag of.
std::string packed_refs_text(const std::map<std::string, std::string>& refs);

// The ids that a log of a ref says it was moved to.
Result<std::vector<std::string>> parse_ref_log(std::string_view bytes);

}  // namespace stoplog::diff
