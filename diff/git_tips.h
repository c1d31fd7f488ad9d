// SPDX-License-Identifier: Apache-2.0
// What the commits and the index of a draft's repository contain beside the
// files under review. An agent can commit one thing and leave another in the
// work tree: a reviewer reads the files, and the push takes the commit.
//
//   TipsReport report = compare_tips({.objects = objects, ...});
//
// For each ref that moved or is new the tree of its commit is walked against
// that of where it was (only what differs), and each file in it is compared
// with the one that the draft shows at its place: content, mode, link. What is
// equal to neither is `unreviewed`. So are entries of the index that differ,
// and files that git ignores, which no review shows. Filters are not known;
// line ends alone are (CR LF in the file, LF in the commit).
//
// Everything is hostile and bounded (kReadBudget of objects, kHashBudget of
// files): what could not be read or was too much is in `unread`, a danger.
// Borrows everything. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "diff/git_facts.h"
#include "diff/git_meta.h"
#include "diff/git_objects.h"
#include "diff/git_shown.h"

namespace stoplog::diff {

inline constexpr size_t kComparedEntries = 200'000;

struct GitTip {
  std::string ref;  // "refs/heads/main"
  std::string id;   // hex: of a commit or a tag
  std::optional<std::string> from;
  bool current = false;  // HEAD, or its branch
};

// An entry of the index that was added, changed or, without an id, removed.
struct StagedEntry {
  std::string path;
  uint32_t mode = 0;
  std::string id;  // hex
};

struct TipsInput {
  GitObjects& objects;
  ShownFiles& files;
  ObjectFormat format = ObjectFormat::kSha1;
  std::vector<GitTip> tips{};                          // the current one first
  std::optional<std::string> base_head{}, new_head{};  // ids of commits
  std::vector<std::string> base_refs{};  // where the real refs point
  std::vector<StagedEntry> staged{};
};

struct TipsReport {
  std::vector<UnreviewedFile> unreviewed;  // the first 100
  uint64_t unreviewed_count = 0;
  Sha256Digest unreviewed_digest{};  // of all of them
  std::vector<std::string> unread;   // sentences
  // Paths that new commits or the index have as the draft shows them.
  std::vector<std::string> carried;
  // Of these, files of the real tree that git had not: the first 20.
  std::vector<std::string> untracked;
  uint64_t commits = 0;  // new ones
  // Paths that only commits between have: neither what was there before nor
  // what is there in the end.
  std::vector<std::string> passing;
};

// The ids in the files of refs beneath a directory of the real tree.
void add_real_refs(const fs::View& view, const RelPath& directory,
                   std::vector<std::string>& out);

TipsReport compare_tips(const TipsInput& input);

}  // namespace stoplog::diff
