// SPDX-License-Identifier: Apache-2.0
#include "gate/merge.h"

#include <git2.h>

#include <set>

#include "base/escape.h"
#include "base/shown_path.h"
#include "diff/content_hash.h"
#include "diff/git_library.h"
#include "diff/hunks.h"
#include "gate/name_in.h"
#include "gate/verify.h"
#include "snapshot/content_digest.h"

namespace stoplog::gate {
namespace {

// Merging is quadratic at its worst: the same bound as for showing lines.
constexpr uint64_t kMergeLimit = diff::kTextLimit;

bool is_binary(std::string_view text) {
  return text.substr(0, 8000).find('\0') != std::string_view::npos;
}

git_merge_file_input input_of(std::string_view text) {
  git_merge_file_input input = GIT_MERGE_FILE_INPUT_INIT;
  input.ptr = text.data();
  input.size = text.size();
  return input;
}

struct Real {
  fs::NodeState state;
  std::string text;
};

Result<Real> real_file(int root, const RelPath& path) {
  auto state = TRY(fs::state_beneath(root, path));
  if (!state || !state->content)
    return fail(Code::kDrift, "{} is gone", quote_name(shown_path(path)));
  std::string text = TRY(diff::read_content(*state->content, kMergeLimit));
  state->content = snapshot::memory_content(text);
  state->size = text.size();
  return Real{std::move(*state), std::move(text)};
}

diff::Change change_of(const Item& item, fs::NodeState real) {
  diff::Change change;
  change.path = item.path;
  change.after = real;
  change.after->content = item.content;
  change.after->size = item.content->size();
  change.after->mode = item.fresh->mode;
  change.mode_changed = real.mode != item.fresh->mode;
  change.content_changed = true;
  change.before = std::move(real);
  return change;
}

// Base text: what the change set has as the old side.
Result<std::string> base_text(const diff::ChangeSet& set, const Item& item) {
  const diff::Change* change = set.find(item.path);
  if (change == nullptr || !change->before || !change->before->content)
    return fail(Code::kUnsupported, "no base");
  return diff::read_content(*change->before->content, kMergeLimit);
}

bool can_merge(const Item& item, const Standing& now) {
  return item.old && item.fresh && !item.from && item.old->is_file() &&
         item.fresh->is_file() && item.content && now.node.is_file();
}

}  // namespace

Result<std::optional<std::string>> merge_texts(std::string_view base,
                                               std::string_view ours,
                                               std::string_view theirs) {
  if (is_binary(base) || is_binary(ours) || is_binary(theirs))
    return std::nullopt;
  TRY(diff::start_libgit2());
  git_merge_file_input ancestor = input_of(base), mine = input_of(ours),
                       other = input_of(theirs);
  git_merge_file_options options = GIT_MERGE_FILE_OPTIONS_INIT;
  git_merge_file_result result{};
  if (git_merge_file(&result, &ancestor, &mine, &other, &options) < 0)
    return fail(Code::kInternal, "cannot merge: {}", diff::libgit2_error());
  std::optional<std::string> merged;
  if (result.automergeable != 0)
    merged.emplace(result.len > 0 ? std::string(result.ptr, result.len) : "");
  git_merge_file_result_free(&result);
  return merged;
}

Result<diff::ChangeSet> merge_drifted(const Disk& disk, int root,
                                      std::vector<Item>& items,
                                      const diff::ChangeSet& set) {
  std::vector<Item> copy = items;
  Verified verified = TRY(verify_base(disk, root, copy));
  diff::ChangeSet merged;
  std::vector<Drift> conflicts;
  std::set<size_t> gone;
  for (const Drift& drift : verified.drifts) {
    Item& item = copy[drift.item];
    auto refuse = [&](std::string why) {
      conflicts.push_back({drift.path, drift.item, std::move(why)});
    };
    // What was to be a link of it is a file of its own then.
    if (item.stays()) {
      gone.insert(drift.item);
      continue;
    }
    auto dir = disk.open_dir(root, item.path.parent());
    std::optional<Standing> now;
    if (dir) now = TRY(disk.look(dir->get(), name_in(item.path), true));
    // What is held would then take the real edits back.
    if (item.rest_held) {
      refuse(drift.what + ", and was not approved whole: cannot be merged");
      continue;
    }
    if (!now || !can_merge(item, *now)) {
      refuse(drift.what + ", and cannot be merged");
      continue;
    }
    auto base = base_text(set, item);
    auto mine = real_file(root, item.path);
    auto theirs = diff::read_content(*item.content, kMergeLimit);
    if (!base || !mine || !theirs || sha256(mine->text) != *now->node.sha256) {
      refuse(drift.what + ", and cannot be read for a merge");
      continue;
    }
    auto text = TRY(merge_texts(*base, mine->text, *theirs));
    if (!text) {
      refuse("conflicts with the draft in the same lines");
      continue;
    }
    // The draft's attributes where it changed them, else those of the real
    // file.
    if (same_attributes(*item.old, *item.fresh)) {
      item.fresh->mode = now->node.mode;
      item.fresh->uid = now->node.uid;
      item.fresh->gid = now->node.gid;
      item.fresh->xattrs = now->node.xattrs;
    }
    item.old = now->node;
    item.fresh->sha256 = sha256(*text);
    item.fresh->size = text->size();
    item.content = snapshot::memory_content(std::move(*text));
    merged.changes.push_back(change_of(item, std::move(mine->state)));
  }
  if (!conflicts.empty()) return std::unexpected(drift_error(conflicts));
  items.clear();
  for (size_t i = 0; i < copy.size(); ++i)
    if (!gone.contains(i)) items.push_back(std::move(copy[i]));
  return merged;
}

Result<Sha256Digest> merge_digest(diff::ChangeSet& merges) {
  Sha256 hash;
  hash.update("stoplog merge 1\n");
  for (diff::Change& change : merges.changes) {
    change.old_sha256 = TRY(snapshot::content_digest(*change.before->content));
    change.new_sha256 = TRY(snapshot::content_digest(*change.after->content));
    hash.update(fmt::format("{} {:o} {} {:o} {}\n", hex(*change.old_sha256),
                            change.before->mode, hex(*change.new_sha256),
                            change.after->mode, change.path.str().size()));
    hash.update(change.path.str());
    hash.update("\n");
  }
  return hash.finish();
}

}  // namespace stoplog::gate
