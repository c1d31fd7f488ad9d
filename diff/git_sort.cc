// SPDX-License-Identifier: Apache-2.0
#include "diff/git_sort.h"

#include <algorithm>

#include "diff/git_pack_index.h"

namespace stoplog::diff {
namespace {

GitSort sort_of_pack(std::string_view name) {
  if (name.starts_with("tmp_") || name.starts_with(".tmp-"))
    return GitSort::kRebuilt;  // of a git that died
  if (name.ends_with(".pack")) return GitSort::kPack;
  if (name.ends_with(".idx")) return GitSort::kPackIndex;
  // Without its .mtimes a pack of cruft is a pack as others are.
  for (std::string_view end : {".rev", ".bitmap", ".mtimes"})
    if (name.ends_with(end)) return GitSort::kRebuilt;
  if (name.starts_with("multi-pack-index")) return GitSort::kRebuilt;
  return name.ends_with(".keep") || name.ends_with(".promisor")
             ? GitSort::kBookkeeping
             : GitSort::kOther;
}

GitSort sort_of_object(std::string_view rel) {
  if (rel.starts_with("objects/pack/")) return sort_of_pack(rel.substr(13));
  if (rel == "objects/info/packs" || rel == "objects/info/commit-graph" ||
      rel.starts_with("objects/info/commit-graphs/"))
    return GitSort::kRebuilt;
  if (rel.substr(rel.rfind('/') + 1).starts_with("tmp_obj_"))
    return GitSort::kRebuilt;
  return loose_object_id(rel) ? GitSort::kObject : GitSort::kOther;
}

}  // namespace

std::string_view within_objects(std::string_view rel) {
  if (!rel.starts_with("modules/")) return rel;
  size_t at = rel.find("/objects/");
  return at == std::string_view::npos ? rel : rel.substr(at + 1);
}

GitSort git_sort(std::string_view rel) {
  rel = within_objects(rel);
  if (rel == "index") return GitSort::kIndex;
  if (rel == "HEAD" || rel.starts_with("refs/")) return GitSort::kRef;
  if (rel == "packed-refs") return GitSort::kPackedRefs;
  if (rel.starts_with("objects/")) return sort_of_object(rel);
  // A list of the refs for those who fetch over plain HTTP; `git gc` writes it.
  // Where git was before, and what it fetched last: ids that nobody looks at.
  if (rel == "info/refs" || rel == "gc.pid" || rel == "ORIG_HEAD" ||
      rel == "FETCH_HEAD" || rel.starts_with("fsmonitor--"))
    return GitSort::kRebuilt;
  if (rel == "logs/refs/stash") return GitSort::kStashLog;
  constexpr std::string_view kNotes[] = {
      "COMMIT_EDITMSG", "gc.log",     "description", "TAG_EDITMSG",
      "SQUASH_MSG",     "index.lock", "HEAD.lock",   "branches"};
  bool note =
      std::find(std::begin(kNotes), std::end(kNotes), rel) != std::end(kNotes);
  // The shared part of a split index says nothing without the index.
  return note || rel.starts_with("logs/") || rel.starts_with("sharedindex.")
             ? GitSort::kBookkeeping
             : GitSort::kOther;
}

bool is_own_git_change(std::string_view rel) {
  if (rel == "info/refs") return false;
  if (rel == "config" || rel == "config.worktree" || rel == "commondir" ||
      rel == "objects/info/alternates" || rel.starts_with("hooks/") ||
      rel.starts_with("info/"))
    return true;
  // A submodule's git directory, and a work tree's.
  if (!rel.starts_with("modules/") && !rel.starts_with("worktrees/"))
    return false;
  return rel.ends_with("/config") || rel.ends_with("/config.worktree") ||
         rel.ends_with("/commondir") ||
         rel.find("/hooks/") != std::string_view::npos ||
         rel.ends_with("/objects/info/alternates") ||
         (rel.find("/info/") != std::string_view::npos &&
          rel.find("/objects/") == std::string_view::npos);
}

bool is_foreign_git_part(const Change& change) {
  auto foreign = [](const std::optional<fs::NodeState>& state) {
    return state && state->type != fs::Type::kFile &&
           state->type != fs::Type::kDir;
  };
  return change.after && (foreign(change.after) || foreign(change.before));
}

}  // namespace stoplog::diff
