// SPDX-License-Identifier: Apache-2.0
// What changed in a draft, with the state before and after and the drift.
#include <algorithm>

#include "base/parallel.h"
#include "fs/drift.h"
#include "fs/journal_view.h"

namespace stoplog::fs {
namespace {

// Changes that are looked at together.
constexpr size_t kBatch = 4096;

// Paths of all changes together: memory is to follow their number. A path of
// 1 KiB for each is beyond all that people or programs make.
constexpr uint64_t kPathBytes = 64ull << 20;
constexpr uint64_t kPathBytesEach = 1024;

Status count_path(PathSum& sum, const std::string& path) {
  sum.bytes += path.size();
  if (sum.bytes <= kPathBytes + ++sum.paths * kPathBytesEach) return {};
  return std::unexpected(
      Error(Code::kUnsupported,
            "directories in directories: the paths of all that changed have "
            "more than 1 KiB each")
          .with_hint("`stoplog rollback` goes back to before the command that "
                     "made them"));
}

// Names of a node that nobody touched and that no other than it has are no
// changes.
bool tells(const Held& node, const Link& link) {
  return node.is_touched() || link.from != LinkFrom::kDerived ||
         (node.links.size() > 1 &&
          std::ranges::any_of(node.links, [](const Link& other) {
            return other.from != LinkFrom::kDerived;
          }));
}

// Whether the base lacks the directory of a path: one look for all the new
// files of a new directory. Paths come sorted.
class AbsentParents {
 public:
  explicit AbsentParents(int base) : base_(base) {}
  Result<bool> of(std::string_view path) {
    const size_t slash = path.rfind('/');
    if (slash == path.npos) return false;
    if (path.substr(0, slash) != parent_) {
      parent_ = path.substr(0, slash);
      absent_ = !TRY(stat_beneath(base_, parent_));
    }
    return absent_;
  }

 private:
  int base_;
  std::string parent_;
  bool absent_ = false;
};

}  // namespace

// Has the lower more names of this file than the draft has seen?
bool JournalView::detaches(const Held& node) const {
  if (!node.base || node.is_dir() || node.base->nlink < 2 || !node.is_touched())
    return false;
  uint32_t seen = 0;
  for (const Link& link : node.links)
    if (link.from != LinkFrom::kNew) ++seen;
  for (const auto& [path, deleted] : state_.deleted())
    if (identity_of(deleted.base) == identity_of(*node.base)) ++seen;
  return seen < node.base->nlink;
}

Result<RawChange> JournalView::change_at(const Held& node, size_t link,
                                         const std::string& path,
                                         Seen* seen) const {
  Seen own;
  if (seen == nullptr) seen = &own;
  RawChange change;
  change.path = TRY(RelPath::parse(path));
  auto origin = state_.base_path(node.links[link]);
  if (origin && node.base) {
    const SegmentRange* taken =
        node.body && node.body->has_base ? &node.body->base : nullptr;
    sys::Stat st = node.body ? node.body->lower : *node.base;
    change.before =
        TRY_CTX(base_state_of(st, *origin, node.target, taken, seen), *origin);
    if (*origin != path) change.from = TRY(RelPath::parse(*origin));
  }
  bool here = change.before && origin == state_.origin_of(node);
  change.after = TRY_CTX(
      held_state(node, here ? &*change.before : nullptr, seen->blind), path);
  if (here) TRY(follow_base(node, *origin, change, *seen));
  change.command = node.command;
  change.detaches_links = detaches(node);
  return change;
}

// What the draft did not take is the real tree's on both sides: neither content
// nor attributes that somebody else changed are the draft's doing.
Status JournalView::follow_base(const Held& node, const std::string& origin,
                                RawChange& change, const Seen& seen) const {
  NodeState &before = *change.before, &after = *change.after;
  if ((node.own & kOwnMode) == 0) {
    after.mode = before.mode;
    after.uid = before.uid;
    after.gid = before.gid;
  }
  if (!node.is_file() || node.body || seen.blind) return {};
  auto now = seen.now && seen.path == origin
                 ? seen.now
                 : TRY(stat_beneath(base_->get(), origin));
  if (!now || !S_ISREG(now->mode)) return {};
  const sys::Stat& then = *node.base;
  if (identity_of(*now) == identity_of(then) &&
      fingerprint_of(*now) == fingerprint_of(then))
    return {};
  change.follows = true;
  change.drift = drift_text("modified", now->mtime);
  before.content = after.content =
      std::make_shared<RealContent>(base_, origin, *now);
  before.size = after.size = now->size;
  return {};
}

Status JournalView::add_node(const Held& node, Found& found, DeepPaths& deep,
                             PathSum& sum) const {
  for (size_t i = 0; i < node.links.size(); ++i) {
    if (!tells(node, node.links[i]) || deep.folds(node.links[i])) continue;
    auto path = state_.path_of(node, i);
    if (!path) continue;
    TRY(count_path(sum, *path));
    RawChange change = TRY(change_at(node, i, *path));
    RelPath key = change.path;
    found.insert_or_assign(std::move(key), std::move(change));
  }
  return {};
}

Status JournalView::add_deleted(const std::string& path, const Deleted& deleted,
                                Found& found, Seen* seen) const {
  RelPath key = TRY(RelPath::parse(path));
  const SegmentRange* taken =
      deleted.content.segment != 0 ? &deleted.content : nullptr;
  NodeState before =
      TRY_CTX(base_state_of(deleted.base, path, deleted.target, taken,
                            seen != nullptr && seen->blind ? seen : nullptr),
              path);
  auto it = found.find(key);
  if (it == found.end()) {
    RawChange change;
    change.path = key;
    change.before = std::move(before);
    change.after = TRY(draft_state(key));  // something untouched moved here
    change.replaced = true;
    change.command = deleted.command;
    found.emplace(key, std::move(change));
    return {};
  }
  RawChange& there = it->second;
  if (!there.from) {
    if (!there.before) {
      there.before = std::move(before);
      there.replaced = true;
    }
    return {};
  }
  if (there.after && there.after->type == Type::kDir) return {};
  // A file moved over another: what stood here is changed, and the place it
  // came from is deleted.
  RawChange source;
  source.path = *there.from;
  source.before = std::move(there.before);
  source.command = there.command;
  there.from.reset();
  there.before = std::move(before);
  there.replaced = true;
  RelPath source_key = source.path;
  auto [at, added] = found.emplace(source_key, std::move(source));
  if (!added && !at->second.before) at->second.before = source.before;
  return {};
}

Status JournalView::note_drift(RawChange& change, const Left& left,
                               const Seen& seen) const {
  if (change.follows) return {};  // told already
  const RelPath& at = change.from ? *change.from : change.path;
  auto now = seen.now && seen.path == at.str()
                 ? seen.now
                 : TRY(stat_beneath(base_->get(), at.str()));
  if (!change.before) {
    // Something of the base stands here still when its node moved in the
    // draft, by itself or with a directory above it.
    for (std::string_view up = at.str(); now && !up.empty();
         up = up.substr(0, up.rfind('/') == up.npos ? 0 : up.rfind('/')))
      if (left.contains(up)) return {};
    if (now) change.drift = drift_text("created", now->ctime);
    return {};
  }
  if (!now) {
    change.drift = "removed in the real tree";
    return {};
  }
  change.drift = drift_of(base_, at, *change.before, *now);
  return {};
}

Result<std::vector<RawChange>> JournalView::changes() const {
  Found found;
  PathSum sum;
  DeepPaths deep(state_);
  for (const auto& [serial, node] : state_.nodes())
    if (serial != kRootSerial) TRY(add_node(*node, found, deep, sum));
  for (const auto& [serial, names] : deep.folded()) {
    const Held& node = *state_.find(serial);
    auto path = state_.path_of(node);
    if (!path) continue;
    RawChange change = TRY(change_at(node, 0, *path));
    change.too_deep = names;
    RelPath key = change.path;
    found.insert_or_assign(std::move(key), std::move(change));
  }
  if (state_.root().is_touched()) {
    RawChange change;
    change.before = TRY(real_state_at(base_, {}));
    change.after = TRY(held_state(state_.root()));
    change.command = state_.root().command;
    found.emplace(RelPath(), std::move(change));
  }
  for (const auto& [path, deleted] : state_.deleted())
    TRY(add_deleted(path, deleted, found));
  std::vector<RawChange> list;
  list.reserve(found.size());
  Left left;
  for (const auto& [path, change] : found)
    if (change.from) left.insert(change.from->str());
  for (auto& [path, change] : found) {
    TRY(note_drift(change, left, {}));
    list.push_back(std::move(change));
  }
  return list;
}

// Where nothing moved, each change stands alone.
Result<std::optional<std::vector<JournalView::Spot>>> JournalView::spots()
    const {
  std::vector<Spot> places;
  bool apart = !state_.root().is_touched();
  PathSum sum;
  DeepPaths deep(state_);
  for (const auto& [serial, node] : state_.nodes()) {
    if (serial == kRootSerial) continue;
    for (size_t i = 0; apart && i < node->links.size(); ++i) {
      if (!tells(*node, node->links[i]) || deep.folds(node->links[i])) continue;
      auto path = state_.path_of(*node, i);
      if (!path) continue;
      TRY(count_path(sum, *path));
      std::optional<std::string> origin;
      if (node->base) origin = state_.base_path(node->links[i]);
      apart = !origin || *origin == *path;
      places.push_back(
          {.path = TRY(RelPath::parse(*path)), .node = node.get(), .link = i});
    }
  }
  if (!apart) return std::nullopt;
  // After those of the same path: the last one counts.
  for (const auto& [serial, names] : deep.folded()) {
    const Held* node = state_.find(serial);
    if (auto path = state_.path_of(*node))
      places.push_back({.path = TRY(RelPath::parse(*path)),
                        .node = node,
                        .too_deep = names});
  }
  for (const auto& [path, deleted] : state_.deleted())
    places.push_back({.path = TRY(RelPath::parse(path)), .deleted = &deleted});
  std::ranges::stable_sort(places, {}, &Spot::path);
  return places;
}

std::vector<std::span<const JournalView::Spot>> JournalView::by_path(
    const std::vector<Spot>& spots) {
  std::vector<std::span<const Spot>> paths;
  for (size_t i = 0, end = 0; i < spots.size(); i = end) {
    while (end < spots.size() && spots[end].path == spots[i].path) ++end;
    paths.push_back(std::span(spots).subspan(i, end - i));
  }
  return paths;
}

// Places first, then one change after the other.
Status JournalView::each_change(
    const std::function<Status(RawChange)>& visit) const {
  auto found = TRY(spots());
  if (!found) return DraftView::each_change(visit);
  std::vector<std::span<const Spot>> paths = by_path(*found);
  // Looking at the real tree takes most of the time: on a few threads, and
  // given out in order.
  std::vector<RawChange> batch;
  std::vector<char> absent;
  AbsentParents parents(base_->get());
  for (size_t i = 0; i < paths.size(); i += batch.size()) {
    batch.clear();
    batch.resize(std::min(kBatch, paths.size() - i));
    absent.assign(batch.size(), 0);
    for (size_t k = 0; k < batch.size(); ++k) {
      const Spot& spot = paths[i + k][0];
      bool fresh = spot.node != nullptr && !spot.node->base;
      absent[k] = fresh && TRY(parents.of(spot.path.str()));
    }
    TRY(parallel_for(batch.size(), 0, [&](size_t k) -> Status {
      batch[k] = TRY(change_of(paths[i + k], absent[k] != 0));
      return {};
    }));
    for (RawChange& change : batch) TRY(visit(std::move(change)));
  }
  return {};
}

Result<RawChange> JournalView::change_of(std::span<const Spot> spots,
                                         bool absent) const {
  Seen seen;
  RawChange change = TRY(merge(spots, seen));
  if (!absent || change.before || change.from)
    TRY(note_drift(change, {}, seen));
  return change;
}

// What stands at one path, without its drift.
Result<RawChange> JournalView::merge(std::span<const Spot> spots,
                                     Seen& seen) const {
  Found found;
  const RelPath& path = spots[0].path;
  for (const Spot& spot : spots) {
    if (spot.node == nullptr) {
      TRY(add_deleted(path.str(), *spot.deleted, found, &seen));
      continue;
    }
    RawChange change = TRY(change_at(*spot.node, spot.link, path.str(), &seen));
    change.too_deep = spot.too_deep;
    found.insert_or_assign(path, std::move(change));
  }
  return std::move(found.begin()->second);
}

Result<bool> JournalView::each_known(
    const std::function<Status(RawChange)>& visit) const {
  auto places = TRY(spots());
  if (!places) return false;
  Seen blind{.blind = true};
  for (std::span<const Spot> at : by_path(*places))
    TRY(visit(TRY(merge(at, blind))));
  return true;
}

Result<RawChange> JournalView::look_at(const RelPath& path) const {
  std::vector<Spot> at;
  Place place = TRY(resolve(path));
  if (place.held != nullptr)
    for (size_t i = 0; i < place.held->links.size(); ++i)
      if (tells(*place.held, place.held->links[i]) &&
          state_.path_of(*place.held, i) == path.str())
        at.push_back({.path = path, .node = place.held, .link = i});
  auto deleted = state_.deleted().find(path.str());
  if (deleted != state_.deleted().end())
    at.push_back({.path = path, .deleted = &deleted->second});
  if (at.empty()) return fail_errno(ENOENT, "{}", path.str());
  return change_of(at, false);
}

std::vector<RelPath> JournalView::unpinned() const {
  std::vector<RelPath> list;
  for (const auto& [serial, node] : state_.nodes())
    if (node->body && node->body->map.has_lower())
      if (auto path = state_.path_of(*node))
        if (auto parsed = RelPath::parse(*path)) list.push_back(*parsed);
  std::ranges::sort(list);
  return list;
}

}  // namespace stoplog::fs
