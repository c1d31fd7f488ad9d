// SPDX-License-Identifier: Apache-2.0
#include "fs/view.h"

#include <algorithm>
#include <set>

#include "fs/real.h"

namespace stoplog::fs {
namespace {

bool same_attributes(const NodeState& a, const NodeState& b) {
  return a.type == b.type && a.mode == b.mode && a.uid == b.uid &&
         a.gid == b.gid && a.rdev == b.rdev && a.target == b.target &&
         a.size == b.size && a.xattrs == b.xattrs &&
         // A directory's mtime follows from what happened inside.
         (a.type == Type::kDir || same_time(a.mtime, b.mtime));
}

Result<bool> same_content(const NodeState& a, const NodeState& b) {
  if (a.type != Type::kFile) return true;
  std::vector<std::byte> left(1u << 16), right(1u << 16);
  for (uint64_t at = 0; at < a.size; at += left.size()) {
    size_t n = TRY(a.content->read(at, left));
    size_t m = TRY(b.content->read(at, right));
    if (n != m ||
        !std::equal(left.begin(), left.begin() + long(n), right.begin()))
      return false;
  }
  return true;
}

// Two directories stand for the base and the draft. The walk goes over the
// draft's side, each path with the base path that it came from, and notes the
// base paths it met; what is left of the base was deleted.
class DirectoriesView : public View {
 public:
  DirectoriesView(SharedRoot before, SharedRoot after,
                  std::map<std::string, std::string> moved)
      : before_(std::move(before)),
        after_(std::move(after)),
        moved_(std::move(moved)) {}

  Result<std::vector<RawChange>> changes() const override {
    std::map<RelPath, RawChange> found;
    std::set<std::string> met;
    TRY(walk_draft({}, RelPath{}, met, found));
    TRY(walk_base({}, met, found));
    std::vector<RawChange> list;
    for (auto& [path, change] : found) list.push_back(std::move(change));
    return list;
  }
  Result<std::optional<NodeState>> draft_state(
      const RelPath& path) const override {
    return real_state_at(after_, path);
  }
  Result<std::vector<DirEntry>> draft_list(const RelPath& path) const override {
    return list_beneath(after_->get(), path);
  }
  Result<std::optional<NodeState>> real_state(
      const RelPath& path) const override {
    return real_state_at(before_, path);
  }
  Result<std::vector<DirEntry>> real_list(const RelPath& path) const override {
    return list_beneath(before_->get(), path);
  }

 private:
  using Found = std::map<RelPath, RawChange>;
  using Met = std::set<std::string>;

  // `origin`: where `path` came from; absent for what has no base.
  Status walk_draft(const RelPath& path, const std::optional<RelPath>& origin,
                    Met& met, Found& found) const {
    for (const DirEntry& entry : TRY(list_beneath(after_->get(), path))) {
      RelPath here = path / entry.name;
      std::optional<RelPath> from = TRY(origin_of(here, origin, entry.name));
      auto state = TRY(real_state_at(after_, here));
      if (!state) continue;
      std::optional<NodeState> base;
      if (from) base = TRY(real_state_at(before_, *from));
      if (base && base->type != state->type) {
        if (*from == here) met.insert(from->str());
        // Another kind of thing stands here: the base is replaced, and what
        // was beneath it deleted.
        TRY(note(here, {}, std::move(base), std::move(*state), found));
        from.reset();
      } else {
        if (base) met.insert(from->str());
        bool has_base = base.has_value();
        TRY(note(here, from, std::move(base), std::move(*state), found));
        if (!has_base) from.reset();
      }
      if (entry.type == Type::kDir) TRY(walk_draft(here, from, met, found));
    }
    return {};
  }

  Result<std::optional<RelPath>> origin_of(const RelPath& here,
                                           const std::optional<RelPath>& parent,
                                           const std::string& name) const {
    if (auto it = moved_.find(here.str()); it != moved_.end())
      return TRY(RelPath::parse(it->second));
    if (!parent) return std::nullopt;
    RelPath same = *parent / name;
    for (const auto& [to, from] : moved_)
      if (from == same.str()) return std::nullopt;  // it went elsewhere
    return same;
  }

  Status note(const RelPath& path, const std::optional<RelPath>& from,
              std::optional<NodeState> base, NodeState state,
              Found& found) const {
    bool is_move = from && *from != path && moved_.contains(path.str());
    if (base && !is_move && same_attributes(*base, state) &&
        TRY(same_content(*base, state)))
      return {};
    RawChange change;
    change.path = path;
    if (base && from && *from != path) change.from = from;
    change.before = std::move(base);
    change.after = std::move(state);
    found.emplace(path, std::move(change));
    return {};
  }

  Status walk_base(const RelPath& path, const Met& met, Found& found) const {
    for (const DirEntry& entry : TRY(list_beneath(before_->get(), path))) {
      RelPath here = path / entry.name;
      if (!met.contains(here.str())) {
        auto state = TRY(real_state_at(before_, here));
        if (!state) continue;
        RawChange& change = found[here];
        change.path = here;
        if (!change.before && !change.from) change.before = std::move(state);
      }
      if (entry.type == Type::kDir) TRY(walk_base(here, met, found));
    }
    return {};
  }

  SharedRoot before_, after_;
  std::map<std::string, std::string> moved_;
};

}  // namespace

std::unique_ptr<View> view_of_directories(
    int before, int after, std::map<std::string, std::string> moved) {
  auto share = [](int fd) {
    auto root = share_root(fd);
    return root ? std::move(*root) : std::make_shared<const Fd>();
  };
  return std::make_unique<DirectoriesView>(share(before), share(after),
                                           std::move(moved));
}

std::string_view name_of(Type type) {
  switch (type) {
    case Type::kFile:
      return "file";
    case Type::kDir:
      return "directory";
    case Type::kSymlink:
      return "symlink";
    case Type::kFifo:
      return "FIFO";
    case Type::kSocket:
      return "socket";
    case Type::kChar:
      return "character device";
    case Type::kBlock:
      return "block device";
  }
  return "file";
}

}  // namespace stoplog::fs
