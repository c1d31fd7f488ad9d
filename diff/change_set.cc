// SPDX-License-Identifier: Apache-2.0
#include "diff/change_set.h"

#include <algorithm>

#include "diff/content_hash.h"
#include "diff/normalize.h"

namespace stoplog::diff {

Level Change::level() const {
  Level worst = Level::kInfo;
  for (const Risk& risk : risks) worst = std::max(worst, risk.level);
  return worst;
}

bool Change::is_moved_directory() const {
  return kind == Kind::kRenamed && after && after->type == fs::Type::kDir;
}

uint64_t Change::size() const {
  return after ? after->size : before ? before->size : 0;
}

std::string Change::shown_path() const {
  if (path.is_root()) return ".";
  return git ? path.str() + "/" : path.str();
}

const Change* ChangeSet::find(const RelPath& path) const {
  auto it = std::lower_bound(
      changes.begin(), changes.end(), path,
      [](const Change& change, const RelPath& p) { return change.path < p; });
  return it != changes.end() && it->path == path ? &*it : nullptr;
}

std::vector<size_t> display_order(const ChangeSet& set) {
  std::vector<size_t> order(set.changes.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = i;
  auto rank = [&](size_t i) {
    const Change& change = set.changes[i];
    return change.is_danger() ? 0 : change.is_deletion() ? 1 : 2;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rank(a) < rank(b); });
  return order;
}

namespace {

// Paths beneath the directory that have a change of their own: not moved along
// untouched. Both lists are sorted, so each is a binary search.
bool has_own_change(const ChangeSet& set, const RelPath& path) {
  if (set.find(path) != nullptr) return true;
  auto it = std::lower_bound(
      set.directories.begin(), set.directories.end(), path,
      [](const Change& change, const RelPath& p) { return change.path < p; });
  return it != set.directories.end() && it->path == path;
}

}  // namespace

Status for_each_moved(const fs::View& view, const ChangeSet& set,
                      const Change& directory,
                      const std::function<Status(const Moved&)>& visit) {
  // An explicit stack: a tree can be deeper than the machine's.
  std::vector<RelPath> stack{directory.path};
  while (!stack.empty()) {
    RelPath here = std::move(stack.back());
    stack.pop_back();
    std::vector<RelPath> below;
    for (const fs::DirEntry& entry : TRY(view.draft_list(here))) {
      RelPath path = here / entry.name;
      if (entry.type == fs::Type::kDir) {
        // A directory with a move of its own tells its files itself.
        const Change* own = set.find(path);
        if (own != nullptr && (own->from || own->kind != Kind::kMode)) continue;
        below.push_back(std::move(path));
        continue;
      }
      if (has_own_change(set, path)) continue;
      auto state = TRY(view.draft_state(path));
      if (!state) continue;
      RelPath from =
          transplant(path, directory.path.str().size(), *directory.from);
      TRY(visit({.from = std::move(from),
                 .path = std::move(path),
                 .state = std::move(*state)}));
    }
    stack.insert(stack.end(), std::make_move_iterator(below.rbegin()),
                 std::make_move_iterator(below.rend()));
  }
  return {};
}

namespace {

bool is_hashed(const std::optional<fs::NodeState>& state) {
  return state && (state->type == fs::Type::kSymlink ||
                   (state->type == fs::Type::kFile && state->content));
}

Status hash_side(const std::optional<fs::NodeState>& state,
                 std::optional<Hash128>& fast,
                 std::optional<Sha256Digest>& strong) {
  if (!is_hashed(state) || (fast && strong)) return {};
  ContentHash hash = state->type == fs::Type::kSymlink
                         ? hash_text(state->target)
                         : TRY(hash_content(*state->content));
  fast = hash.xxh3;
  strong = hash.sha256;
  return {};
}

}  // namespace

Status ensure_hashes(Change& change) {
  TRY_CTX(hash_side(change.before, change.old_hash, change.old_sha256),
          change.path.str());
  TRY_CTX(hash_side(change.after, change.new_hash, change.new_sha256),
          change.path.str());
  return {};
}

bool has_hashes(const Change& change) {
  return (!is_hashed(change.before) ||
          (change.old_hash && change.old_sha256)) &&
         (!is_hashed(change.after) || (change.new_hash && change.new_sha256));
}

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kAdded:
      return "added";
    case Kind::kModified:
      return "modified";
    case Kind::kDeleted:
      return "deleted";
    case Kind::kRenamed:
      return "renamed";
    case Kind::kMode:
      return "mode";
    case Kind::kType:
      return "type";
  }
  return "modified";
}

std::string_view name_of(Level level) {
  switch (level) {
    case Level::kInfo:
      return "info";
    case Level::kWarn:
      return "warn";
    case Level::kDanger:
      return "danger";
  }
  return "danger";
}

std::string mode_text(const fs::NodeState& state) {
  mode_t type = 0;
  switch (state.type) {
    case fs::Type::kFile:
      type = S_IFREG;
      break;
    case fs::Type::kDir:
      type = S_IFDIR;
      break;
    case fs::Type::kSymlink:
      // Its permission bits mean nothing on Linux; git's 120000.
      return "120000";
    case fs::Type::kFifo:
      type = S_IFIFO;
      break;
    case fs::Type::kSocket:
      type = S_IFSOCK;
      break;
    case fs::Type::kChar:
      type = S_IFCHR;
      break;
    case fs::Type::kBlock:
      type = S_IFBLK;
      break;
  }
  return fmt::format("{:06o}", type | (state.mode & 07777));
}

}  // namespace stoplog::diff
