// SPDX-License-Identifier: Apache-2.0
#include "diff/guess_moves.h"

#include <algorithm>
#include <map>

#include "diff/content_hash.h"
#include "diff/examine.h"
#include "diff/select.h"

namespace stoplog::diff {
namespace {

// Shorter files are alike by accident.
constexpr uint64_t kLeast = 32;

// Both sides of the possible pairs, by what they hold.
struct Candidates {
  std::vector<Change*> gone;
  std::vector<Change*> come;
};

bool is_candidate(const Change& change, Kind kind) {
  const auto& state = kind == Kind::kAdded ? change.after : change.before;
  return change.kind == kind && !change.ignored && state &&
         state->type == fs::Type::kFile && state->content &&
         state->size >= kLeast && !is_inside_git(change);
}

Result<Sha256Digest> digest_of(const Change& change) {
  if (change.after)
    return change.new_sha256 ? *change.new_sha256
                             : TRY(content_sha256(*change.after->content));
  return change.old_sha256 ? *change.old_sha256
                           : TRY(content_sha256(*change.before->content));
}

void join(Change& gone, Change& come) {
  come.from = gone.path;
  come.before = gone.before;
  come.old_hash = come.new_hash;
  come.old_sha256 = come.new_sha256;
  come.kind = Kind::kRenamed;
  come.content_changed = false;
  come.mode_changed = gone.before->mode != come.after->mode ||
                      gone.before->uid != come.after->uid ||
                      gone.before->gid != come.after->gid ||
                      gone.before->xattrs != come.after->xattrs;
  if (come.lines_added) come.lines_added = come.lines_deleted = 0;
  if (!come.drift) come.drift = gone.drift;
  // What is lost is lost no more; what else was said of it still holds.
  for (Risk& risk : gone.risks)
    if (!risk.code.starts_with("deletion") &&
        std::ranges::find(come.risks, risk) == come.risks.end())
      come.risks.push_back(std::move(risk));
  std::ranges::stable_sort(come.risks, std::ranges::greater(), &Risk::level);
  gone.before.reset();  // marks it as told
}

void pair_up(Candidates& same) {
  if (same.gone.size() == 1 && same.come.size() == 1)
    return join(*same.gone[0], *same.come[0]);
  // Several of the same content: the name decides, where it can.
  std::map<std::string_view, Candidates> by_name;
  for (Change* change : same.gone)
    by_name[change->path.name()].gone.push_back(change);
  for (Change* change : same.come)
    by_name[change->path.name()].come.push_back(change);
  for (auto& [name, one] : by_name)
    if (one.gone.size() == 1 && one.come.size() == 1)
      join(*one.gone[0], *one.come[0]);
}

}  // namespace

Status guess_moves(std::vector<Change>& changes) {
  std::map<uint64_t, Candidates> by_size;
  for (Change& change : changes) {
    if (is_candidate(change, Kind::kDeleted))
      by_size[change.before->size].gone.push_back(&change);
    if (is_candidate(change, Kind::kAdded))
      by_size[change.after->size].come.push_back(&change);
  }
  for (auto& [size, group] : by_size) {
    if (group.gone.empty() || group.come.empty()) continue;
    std::map<Sha256Digest, Candidates> by_content;
    for (Change* change : group.gone)
      by_content[TRY(digest_of(*change))].gone.push_back(change);
    for (Change* change : group.come)
      by_content[TRY(digest_of(*change))].come.push_back(change);
    for (auto& [digest, same] : by_content) pair_up(same);
  }
  std::erase_if(changes, [](const Change& change) {
    return !change.before && !change.after;
  });
  return {};
}

}  // namespace stoplog::diff
