// SPDX-License-Identifier: Apache-2.0
#include "gate/merge.h"

#include <git2.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/escape.h"
#include "base/shown_path.h"
#include "diff/content_hash.h"
#include "diff/git_library.h"
#include "diff/hunks.h"
#include "fs/beneath.h"
#include "gate/merge_nodes.h"
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

// Content that a person is shown may not change while he looks.
void keep_text(fs::NodeState& state, std::string text) {
  state.size = text.size();
  state.content = snapshot::memory_content(std::move(text));
}

class Merger {
 public:
  Merger(const Disk& disk, int root, std::vector<Item> items,
         const diff::ChangeSet& set)
      : disk_(disk), root_(root), items_(std::move(items)), set_(set) {}

  Result<Merges> run(std::vector<Item>& items) {
    Verified verified = TRY(verify_base(disk_, root_, items_));
    std::map<size_t, std::vector<Drift>> drifted;
    for (Drift& drift : verified.drifts)
      drifted[drift.item].push_back(std::move(drift));
    for (auto& [index, drifts] : drifted) {
      drift_ = &drifts.front();
      TRY_CTX(merge(index, drifts), quote_name(shown_path(items_[index].path)));
    }
    if (!conflicts_.empty()) return std::unexpected(drift_error(conflicts_));
    follow_links();
    items.clear();
    for (size_t i = 0; i < items_.size(); ++i)
      if (!gone_.contains(i)) items.push_back(std::move(items_[i]));
    add_left_places(items);
    return std::move(merges_);
  }

 private:
  using MaybeStanding = std::optional<Standing>;

  // No answer: what drifted, and what stands against it.
  Status refuse(std::string_view why) {
    conflicts_.push_back(
        {drift_->path, drift_->item, fmt::format("{}, {}", drift_->what, why)});
    return {};
  }

  Result<MaybeStanding> look(const RelPath& path) const {
    auto dir = disk_.open_dir(root_, path.parent());
    if (!dir && fs::is_absence(dir.error())) return std::nullopt;
    if (!dir) return std::unexpected(std::move(dir.error()));
    return disk_.look(dir->get(), name_in(path), true);
  }

  Status merge(size_t index, const std::vector<Drift>& drifts) {
    Item& item = items_[index];
    MaybeStanding real, there;
    if (item.old) real = TRY(look(item.base_path()));
    if (item.from || !item.old) there = TRY(look(item.path));
    // What is held would then take the real edits back.
    if (item.rest_held)
      return refuse("and was not approved whole: cannot be merged");
    if (item.stays()) return follow_stay(index, real);
    if (is_done(item, item.from || !item.old ? there : real, real))
      return settle(item, there ? there : real);
    if (!item.old && there) return refuse("and is not what the draft has");
    if (item.old && !real) return refuse("and the draft changed it");
    if (!item.old || difference(*item.old, real->node).empty() ||
        drifts.size() > 1) {
      conflicts_.insert(conflicts_.end(), drifts.begin(), drifts.end());
      return {};
    }
    if (!item.fresh) return refuse("and the draft removes it");
    if (item.fresh->type != item.old->type)
      return refuse(fmt::format("and is a {} in the draft",
                                fs::name_of(item.fresh->type)));
    if (real->node.type != item.old->type)
      return refuse("and the draft changed it");
    return merge_sides(item, *real);
  }

  // The real tree has what the draft wants.
  static bool is_done(const Item& item, const MaybeStanding& at_path,
                      const MaybeStanding& at_base) {
    if (!item.fresh) return !at_base;
    if (item.from && at_base) return false;
    return at_path && difference(*item.fresh, at_path->node).empty();
  }

  // Nothing is to be done but to tell the draft.
  Status settle(Item& item, const MaybeStanding& there) {
    merges_.notes.push_back(quote_name(shown_path(item.path)) +
                            " is in the real tree as in the draft already");
    if (item.from) left_.push_back(*item.from);
    item.from.reset();
    item.content.reset();
    item.detach = false;
    item.old = item.fresh ? std::optional(there->node) : std::nullopt;
    item.fresh = item.old;
    return {};
  }

  // It is there for others to be links of: these are links of what it is now,
  // or, when it is gone, files of their own.
  Status follow_stay(size_t index, const MaybeStanding& real) {
    Item& item = items_[index];
    if (!real || real->node.type != item.old->type) {
      gone_.insert(index);
      return {};
    }
    auto state = TRY(fs::state_beneath(root_, item.path));
    if (state) item.content = state->content;
    became_[index] = *item.fresh;
    item.old = item.fresh = real->node;
    return {};
  }

  Status merge_sides(Item& item, const Standing& real) {
    const Node draft = *item.fresh;
    const Sides sides{.base = *item.old, .real = real.node, .draft = draft};
    auto state = TRY(fs::state_beneath(root_, item.base_path()));
    if (!state) return refuse("and cannot be read for a merge");
    Node merged = draft;
    if (std::string why = merge_attributes(sides, merged); !why.empty())
      return refuse("and " + why);
    const Whose whose = content_of(sides);
    if (whose == Whose::kBoth) {
      std::string why = TRY(merge_content(item, real, *state, merged));
      if (!why.empty()) return refuse(why);
    } else if (whose == Whose::kReal) {
      merged.size = real.node.size;
      merged.mtime = real.node.mtime;
      merged.target = real.node.target;
      merged.rdev = real.node.rdev;
      merged.sha256 = real.node.sha256;
      item.content = state->content;
    }
    became_[static_cast<size_t>(&item - items_.data())] = draft;
    item.old = real.node;
    item.fresh = std::move(merged);
    show(item, std::move(*state));
    return {};
  }

  // Both sides wrote to it. Why there is no answer, or "".
  Result<std::string> merge_content(Item& item, const Standing& real,
                                    fs::NodeState& state, Node& merged) {
    if (!item.fresh->is_file()) return "and the draft changed it, too";
    const diff::Change* change = set_.find(item.path);
    if (change == nullptr || !change->before || !change->before->content ||
        change->base_lost)
      return "and the draft changed it, too: what it was before was not kept";
    const uint64_t largest = std::max({change->before->content->size(),
                                       real.node.size, item.content->size()});
    if (largest > kMergeLimit)
      return "and the draft changed it, too: it is too large for a merge of "
             "lines";
    auto base = diff::read_content(*change->before->content, kMergeLimit);
    auto mine = diff::read_content(*state.content, kMergeLimit);
    auto theirs = diff::read_content(*item.content, kMergeLimit);
    if (!base || !mine || !theirs || sha256(*base) != *item.old->sha256 ||
        sha256(*mine) != *real.node.sha256)
      return "and cannot be read for a merge";
    if (is_binary(*base) || is_binary(*mine) || is_binary(*theirs))
      return "and the draft changed it, too: it has no lines to merge";
    auto text = TRY(merge_texts(*base, *mine, *theirs));
    if (!text) return "and conflicts with the draft in the same lines";
    keep_text(state, std::move(*mine));
    merged.sha256 = sha256(*text);
    merged.size = text->size();
    item.content = snapshot::memory_content(std::move(*text));
    return "";
  }

  // From the real thing to what is made of it.
  void show(const Item& item, fs::NodeState real) {
    diff::Change change;
    change.path = item.path;
    if (!item.fresh->is_dir()) change.from = item.from;
    fs::NodeState& after = change.after.emplace(real);
    after.mode = item.fresh->mode;
    after.uid = item.fresh->uid;
    after.gid = item.fresh->gid;
    after.xattrs = item.fresh->xattrs;
    after.target = item.fresh->target;
    change.content_changed = !same_content(*item.old, *item.fresh);
    if (change.content_changed) {
      after.content = item.content;
      after.size = item.fresh->size;
    }
    change.mode_changed = !same_attributes(*item.old, *item.fresh);
    change.kind = change.from              ? diff::Kind::kRenamed
                  : change.content_changed ? diff::Kind::kModified
                                           : diff::Kind::kMode;
    change.old_sha256 = item.old->sha256;
    change.new_sha256 = item.fresh->sha256;
    change.before = std::move(real);
    merges_.changes.changes.push_back(std::move(change));
  }

  // New names of a file that was merged, or is another by now, are names of
  // that one.
  void follow_links() {
    std::map<RelPath, size_t> merged;  // group -> item
    auto group_of = [](const Item& item) {
      return item.link_to ? *item.link_to : item.path;
    };
    for (const auto& [index, draft] : became_)
      merged.emplace(group_of(items_[index]), index);
    for (Item& item : items_) {
      auto found = merged.find(group_of(item));
      if (found == merged.end() || item.old || !item.fresh) continue;
      const Item& whose = items_[found->second];
      const Node& draft = became_.at(found->second);
      if (&whose == &item || !same_content(draft, *item.fresh) ||
          !same_attributes(draft, *item.fresh))
        continue;
      if (!same_content(draft, *whose.fresh)) show_new_name(item, whose);
      item.fresh = whose.fresh;
      item.content = whose.content;
    }
  }

  void show_new_name(const Item& item, const Item& whose) {
    diff::Change change;
    change.path = item.path;
    change.kind = diff::Kind::kAdded;
    change.content_changed = true;
    fs::NodeState& after = change.after.emplace();
    after.type = whose.fresh->type;
    after.mode = whose.fresh->mode;
    after.uid = whose.fresh->uid;
    after.gid = whose.fresh->gid;
    after.mtime = whose.fresh->mtime;
    after.size = whose.fresh->size;
    after.target = whose.fresh->target;
    after.xattrs = whose.fresh->xattrs;
    after.content = whose.content;
    change.new_sha256 = whose.fresh->sha256;
    merges_.changes.changes.push_back(std::move(change));
  }

  // Where a move of both sides came from: the draft is told that nothing is
  // there.
  void add_left_places(std::vector<Item>& items) const {
    std::set<RelPath> places;
    for (const Item& item : items) places.insert(item.path);
    for (const RelPath& path : left_) {
      if (places.contains(path)) continue;
      Item item;
      item.path = path;
      items.push_back(std::move(item));
    }
  }

  const Disk& disk_;
  int root_;
  std::vector<Item> items_;
  const diff::ChangeSet& set_;
  const Drift* drift_ = nullptr;  // of the item that is looked at
  std::vector<Drift> conflicts_;
  std::set<size_t> gone_;
  std::vector<RelPath> left_;
  std::map<size_t, Node> became_;  // items that are another now: the draft's
  Merges merges_;
};

void put_side(Sha256& hash, const std::optional<fs::NodeState>& state,
              const std::optional<Sha256Digest>& content) {
  if (!state) {
    hash.update("absent\n");
    return;
  }
  hash.update(fmt::format("{} {:o} {}:{} {} {} {}\n", fs::name_of(state->type),
                          state->mode, state->uid, state->gid,
                          content ? hex(*content) : "-", state->target.size(),
                          state->xattrs.size()));
  hash.update(state->target);
  for (const auto& [name, value] : state->xattrs) {
    hash.update(fmt::format("{} {}\n", name.size(), value.size()));
    hash.update(name);
    hash.update(value);
  }
}

Status fill_digest(const std::optional<fs::NodeState>& state,
                   std::optional<Sha256Digest>& digest) {
  if (state && state->content && !digest)
    digest = TRY(snapshot::content_digest(*state->content));
  return {};
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

Result<Merges> merge_drifted(const Disk& disk, int root,
                             std::vector<Item>& items,
                             const diff::ChangeSet& set) {
  return Merger(disk, root, items, set).run(items);
}

Result<Sha256Digest> merge_digest(diff::ChangeSet& merges) {
  Sha256 hash;
  hash.update("stoplog merge 2\n");
  for (diff::Change& change : merges.changes) {
    TRY(fill_digest(change.before, change.old_sha256));
    TRY(fill_digest(change.after, change.new_sha256));
    std::string from = change.from ? change.from->str() : "";
    hash.update(fmt::format("{} {}\n", from.size(), change.path.str().size()));
    hash.update(from);
    hash.update(change.path.str());
    put_side(hash, change.before, change.old_sha256);
    put_side(hash, change.after, change.new_sha256);
  }
  return hash.finish();
}

}  // namespace stoplog::gate
