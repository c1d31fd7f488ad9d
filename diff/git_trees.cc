// SPDX-License-Identifier: Apache-2.0
#include "diff/git_trees.h"

#include <algorithm>
#include <cerrno>

#include "base/strings.h"

namespace stoplog::diff {
namespace {

constexpr size_t kKept = 16 << 20;       // bytes of trees
constexpr size_t kTags = 8;              // tags of tags
constexpr size_t kLookedBack = 20000;    // commits
constexpr size_t kRefsLookedAt = 10000;  // where a look back begins

}  // namespace

Result<GitTrees::Entries> GitTrees::tree(const std::string& id) {
  auto it = kept_.find(id);
  if (it != kept_.end()) return it->second;
  GitObject object = TRY(objects_.read(id, "tree", left_));
  auto entries = std::make_shared<const std::vector<TreeEntry>>(
      TRY(parse_tree(object.data, id_size(format_))));
  // An entry takes three times its data.
  kept_bytes_ += object.data.size() * 3;
  if (kept_bytes_ > kKept) {
    kept_.clear();
    kept_bytes_ = object.data.size() * 3;
  }
  kept_[id] = entries;
  return entries;
}

Result<Commit> GitTrees::commit(const std::string& id) {
  GitObject object = TRY(objects_.read(id, "commit", left_));
  return TRY_CTX(parse_commit(object.data), id.substr(0, 12));
}

Result<GitTrees::Peeled> GitTrees::peel(const std::string& id) {
  std::string at = id;
  for (size_t i = 0; i < kTags; i++) {
    GitObject object = TRY(objects_.read(at, "", left_));
    if (object.type != "tag") return Peeled{object.type, at};
    at = TRY(parse_tag(object.data)).id;
  }
  return fail(Code::kInvalid, "a tag of a tag of a tag");
}

Result<std::optional<TreeEntry>> GitTrees::find(const std::string& tree_id,
                                                std::string_view path) {
  std::string at = tree_id;
  for (;;) {
    size_t slash = std::min(path.find('/'), path.size());
    Entries entries = TRY(tree(at));
    auto entry =
        std::ranges::find(*entries, path.substr(0, slash), &TreeEntry::name);
    if (entry == entries->end()) return std::nullopt;
    if (slash == path.size()) return *entry;
    if (!entry->is_tree()) return std::nullopt;
    at = entry->id;
    path.remove_prefix(slash + 1);
  }
}

Result<std::string> GitTrees::blob(const std::string& id, uint64_t limit) {
  uint64_t left = std::min(limit, left_);
  return TRY(objects_.read(id, "blob", left)).data;
}

bool GitTrees::is_reached(const std::vector<std::string>& refs,
                          const std::string& id) {
  if (!objects_.is_real(id)) return false;
  if (std::ranges::find(refs, id) != refs.end()) return true;
  if (looked_back_) return reached_.contains(id);
  looked_back_ = true;
  uint64_t left = kReadBudget;
  std::vector<std::string> queue;
  for (const std::string& ref : refs)
    if (queue.size() < kRefsLookedAt && reached_.insert(ref).second)
      queue.push_back(ref);
  for (size_t i = 0; i < queue.size() && i < kLookedBack; i++) {
    auto object = objects_.read(queue[i], "", left);
    if (!object) continue;
    std::vector<std::string> next;
    if (object->type == "commit")
      if (auto commit = parse_commit(object->data))
        next = std::move(commit->parents);
    if (object->type == "tag")
      if (auto target = parse_tag(object->data)) next = {target->id};
    for (std::string& parent : next)
      if (reached_.insert(parent).second) queue.push_back(std::move(parent));
  }
  return reached_.contains(id);
}

}  // namespace stoplog::diff
