// SPDX-License-Identifier: Apache-2.0
#include "fs/draft_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/sys_node.h"
#include "fs/drift.h"
#include "fs/held_content.h"

namespace stoplog::fs {
namespace {

// What commits after the view's position replaced, by path in the base.
struct Replaced {
  std::optional<sys::Stat> before;
  std::optional<Sha256Digest> preimage;
  std::string target;
};
using ReplacedMap = std::map<std::string, Replaced>;

class JournalView : public DraftView {
 public:
  JournalView(Replayed replayed, SharedRoot base,
              std::shared_ptr<Segments> segments, ReplacedMap replaced,
              ObjectSource objects)
      : shared_(std::make_shared<const Replayed>(std::move(replayed))),
        replayed_(*shared_),
        state_(replayed_.state),
        base_(std::move(base)),
        segments_(std::move(segments)),
        seals_(std::make_shared<SealChecks>(
            std::shared_ptr<const State::SealTable>(shared_,
                                                    &state_.seal_table()))),
        replaced_(std::move(replaced)),
        objects_(std::move(objects)) {}

  Result<std::vector<RawChange>> changes() const override;
  Status each_change(
      const std::function<Status(RawChange)>& visit) const override;
  Result<std::optional<NodeState>> draft_state(
      const RelPath& path) const override;
  Result<std::vector<DirEntry>> draft_list(const RelPath& path) const override;
  Result<std::optional<NodeState>> real_state(
      const RelPath& path) const override {
    return real_state_at(base_, path);
  }
  Result<std::vector<DirEntry>> real_list(const RelPath& path) const override {
    return list_beneath(base_->get(), path);
  }
  Position position() const override { return replayed_.end.sequence; }
  const std::vector<Mark>& marks() const override { return state_.marks(); }
  const std::vector<std::string>& notes() const override {
    return replayed_.notes;
  }
  bool damaged() const override { return replayed_.damaged; }
  uint64_t held_bytes() const override { return state_.live_bytes(); }
  uint64_t held_nodes() const override { return state_.nodes().size() - 1; }
  std::vector<RelPath> unpinned() const override;

 private:
  using Found = std::map<RelPath, RawChange>;
  // Where a path of the draft leads: a held node, or a path of the base.
  struct Place {
    const Held* held = nullptr;
    std::optional<std::string> lower;
  };
  // What stands at a path of the base, as one look at it found.
  struct Seen {
    std::string path;
    std::optional<sys::Stat> now;
  };
  Result<Place> resolve(const RelPath& path) const;
  Result<std::optional<NodeState>> base_state(const std::string& path) const;
  Result<NodeState> base_state_of(const sys::Stat& st, const std::string& path,
                                  const std::string& target,
                                  const SegmentRange* content,
                                  Seen* seen = nullptr) const;
  Result<std::shared_ptr<const Content>> base_content(
      const sys::Stat& st, const std::string& path) const;
  // `before`, when set, is the state of the base where the node stands.
  Result<NodeState> held_state(const Held& node,
                               const NodeState* before = nullptr) const;
  Result<RawChange> change_at(const Held& node, size_t link,
                              const std::string& path,
                              Seen* seen = nullptr) const;
  Status add_node(const Held& node, Found& found) const;
  Status add_deleted(const std::string& path, const Deleted& deleted,
                     Found& found) const;
  // Base paths whose node has another path in the draft.
  using Left = std::set<std::string, std::less<>>;
  Status note_drift(RawChange& change, const Left& left,
                    const Seen& seen) const;
  bool detaches(const Held& node) const;

  // Shared with contents, which may outlive the view: they use the seals and
  // maps of it, which for 100,000 files would be 20 MB more.
  std::shared_ptr<const Replayed> shared_;
  const Replayed& replayed_;
  const State& state_;
  SharedRoot base_;
  std::shared_ptr<Segments> segments_;
  std::shared_ptr<SealChecks> seals_;
  ReplacedMap replaced_;
  ObjectSource objects_;
};

Result<JournalView::Place> JournalView::resolve(const RelPath& path) const {
  const Held* at = &state_.root();
  auto parts = path.components();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!at->is_dir()) return Place{};
    auto serial = State::child(*at, parts[i]);
    if (serial && *serial == 0) return Place{};
    if (serial) {
      at = state_.find(*serial);
      if (at == nullptr) return Place{};
      if (!at->is_clean()) continue;
      // Committed and left alone: what the real tree has there counts.
      auto origin = state_.origin_of(*at);
      for (++i; origin && i < parts.size(); ++i)
        *origin = join_path(*origin, parts[i]);
      return Place{.held = nullptr, .lower = std::move(origin)};
    }
    auto origin = state_.origin_of(*at);
    if (!origin) return Place{};
    for (; i < parts.size(); ++i) *origin = join_path(*origin, parts[i]);
    return Place{.held = nullptr, .lower = std::move(origin)};
  }
  return Place{.held = at, .lower = {}};
}

Result<std::shared_ptr<const Content>> JournalView::base_content(
    const sys::Stat& st, const std::string& path) const {
  auto it = replaced_.find(path);
  if (it == replaced_.end() || !it->second.preimage)
    return std::make_shared<RealContent>(base_, path, st);
  if (!objects_)
    return fail(Code::kDrift, "{} was replaced by a commit since", path);
  return objects_(*it->second.preimage);
}

// The state of the base as recorded; the rest (xattrs, a symlink's target) is
// read now, as long as the same file stands there.
Result<NodeState> JournalView::base_state_of(const sys::Stat& st,
                                             const std::string& path,
                                             const std::string& target,
                                             const SegmentRange* content,
                                             Seen* seen) const {
  NodeState state = plain_state(st);
  auto fd = open_deep(base_->get(), path, O_PATH);
  auto now = fd ? sys::fstat(fd->get())
                : Result<sys::Stat>(std::unexpected(Error(ENOENT)));
  if (now && seen != nullptr) *seen = {path, *now};
  bool same = now && identity_of(*now) == identity_of(st);
  if (same) state.xattrs = TRY_CTX(read_xattrs(fd->get()), path);
  if (state.type == Type::kSymlink) {
    state.target = target;
    auto it = replaced_.find(path);
    if (state.target.empty() && it != replaced_.end())
      state.target = it->second.target;
    if (state.target.empty() && same)
      state.target = TRY_CTX(sys::path_readlink(fd->get()), path);
  }
  if (state.type != Type::kFile) return state;
  if (content != nullptr) {
    ExtentMap map;
    map.put({.offset = 0,
             .length = content->length,
             .where = Where::kSegment,
             .segment = content->segment,
             .at = content->at});
    state.content = std::make_shared<HeldContent>(
        segments_, seals_, std::make_shared<const ExtentMap>(std::move(map)),
        nullptr, path);
  } else {
    state.content = TRY(base_content(st, path));
  }
  return state;
}

Result<NodeState> JournalView::held_state(const Held& node,
                                          const NodeState* before) const {
  NodeState state;
  std::string origin = state_.origin_of(node).value_or("");
  if (node.base) {
    bool live = node.own != kOwnAll || (node.is_file() && !node.body);
    sys::Stat st = *node.base;
    if (live)
      if (auto now = TRY(stat_beneath(base_->get(), origin));
          now && identity_of(*now) == identity_of(st))
        st = *now;
    if (node.body)
      state = plain_state(st);
    else
      state = TRY(base_state_of(st, origin, node.target, nullptr));
    if ((node.flags & kXattrsOwn) == 0 && node.body)
      state.xattrs =
          before != nullptr
              ? before->xattrs
              : TRY(base_state_of(*node.base, origin, "", &node.body->base))
                    .xattrs;
  }
  state.type = type_of(node.mode);
  if ((node.own & kOwnMode) != 0) {
    state.mode = node.mode & 07777;
    state.uid = node.uid;
    state.gid = node.gid;
  }
  if ((node.own & kOwnTimes) != 0) state.mtime = node.mtime;
  if ((node.flags & kXattrsOwn) != 0) state.xattrs = node.xattrs;
  if (!node.base) {
    state.rdev = node.rdev;
    state.target = node.target;
    state.size = node.target.size();
  }
  if (node.body) {
    std::shared_ptr<const Content> lower;
    if (node.body->map.has_lower())
      lower = TRY(base_content(node.body->lower, origin));
    std::string path = state_.path_of(node).value_or(origin);
    state.size = node.body->map.size();
    state.content = std::make_shared<HeldContent>(
        segments_, seals_,
        std::shared_ptr<const ExtentMap>(node.body, &node.body->map),
        std::move(lower), std::move(path));
  }
  state.link_group = node.links.size() > 1 ? node.serial : 0;
  return state;
}

Result<std::optional<NodeState>> JournalView::base_state(
    const std::string& path) const {
  auto it = replaced_.find(path);
  if (it != replaced_.end()) {
    if (!it->second.before) return std::nullopt;
    return TRY(
        base_state_of(*it->second.before, path, it->second.target, nullptr));
  }
  return real_state_at(base_, TRY(RelPath::parse(path)));
}

Result<std::optional<NodeState>> JournalView::draft_state(
    const RelPath& path) const {
  Place place = TRY(resolve(path));
  if (place.held != nullptr) {
    if (place.held->serial == kRootSerial && place.held->own == 0)
      return real_state_at(base_, path);
    return TRY(held_state(*place.held));
  }
  if (!place.lower) return std::nullopt;
  // Another name of a file that the draft holds?
  if (auto st = TRY(stat_beneath(base_->get(), *place.lower));
      st && st->nlink > 1 && !S_ISDIR(st->mode))
    if (const Held* held = state_.find(state_.by_identity(*st)))
      return TRY(held_state(*held));
  return base_state(*place.lower);
}

Result<std::vector<DirEntry>> JournalView::draft_list(
    const RelPath& path) const {
  Place place = TRY(resolve(path));
  if (place.lower)
    return list_beneath(base_->get(), TRY(RelPath::parse(*place.lower)));
  if (place.held == nullptr) return fail_errno(ENOENT, "{}", path.str());
  if (!place.held->is_dir()) return fail_errno(ENOTDIR, "{}", path.str());
  std::vector<DirEntry> entries;
  auto shines_through = [&](const std::string& name) {
    auto serial = State::child(*place.held, name);
    const Held* node = serial ? state_.find(*serial) : nullptr;
    return !serial || (node != nullptr && node->is_clean());
  };
  for (const auto& [name, serial] : place.held->names)
    if (const Held* node = serial != 0 ? state_.find(serial) : nullptr;
        node != nullptr && !node->is_clean())
      entries.push_back({name, type_of(node->mode)});
  if (auto origin = state_.origin_of(*place.held)) {
    auto lower = list_beneath(base_->get(), TRY(RelPath::parse(*origin)));
    if (!lower && !is_absence(lower.error()))
      return std::unexpected(std::move(lower).error());
    if (lower)
      for (DirEntry& entry : *lower)
        if (shines_through(entry.name)) entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, &DirEntry::name);
  return entries;
}

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

// Names of a node that nobody touched and that no other than it has are no
// changes.
bool tells(const Held& node, const Link& link) {
  return node.is_touched() || link.from != LinkFrom::kDerived ||
         (node.links.size() > 1 &&
          std::ranges::any_of(node.links, [](const Link& other) {
            return other.from != LinkFrom::kDerived;
          }));
}

Result<RawChange> JournalView::change_at(const Held& node, size_t link,
                                         const std::string& path,
                                         Seen* seen) const {
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
  change.after =
      TRY_CTX(held_state(node, here ? &*change.before : nullptr), path);
  change.command = node.command;
  change.detaches_links = detaches(node);
  return change;
}

Status JournalView::add_node(const Held& node, Found& found) const {
  for (size_t i = 0; i < node.links.size(); ++i) {
    if (!tells(node, node.links[i])) continue;
    auto path = state_.path_of(node, i);
    if (!path) continue;
    RawChange change = TRY(change_at(node, i, *path));
    RelPath key = change.path;
    found.insert_or_assign(std::move(key), std::move(change));
  }
  return {};
}

Status JournalView::add_deleted(const std::string& path, const Deleted& deleted,
                                Found& found) const {
  RelPath key = TRY(RelPath::parse(path));
  const SegmentRange* taken =
      deleted.content.segment != 0 ? &deleted.content : nullptr;
  NodeState before =
      TRY_CTX(base_state_of(deleted.base, path, deleted.target, taken), path);
  auto it = found.find(key);
  if (it == found.end()) {
    RawChange change;
    change.path = key;
    change.before = std::move(before);
    change.after = TRY(draft_state(key));  // something untouched moved here
    change.command = deleted.command;
    found.emplace(key, std::move(change));
    return {};
  }
  RawChange& there = it->second;
  if (!there.from) {
    if (!there.before) there.before = std::move(before);
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
  RelPath source_key = source.path;
  auto [at, added] = found.emplace(source_key, std::move(source));
  if (!added && !at->second.before) at->second.before = source.before;
  return {};
}

Status JournalView::note_drift(RawChange& change, const Left& left,
                               const Seen& seen) const {
  const RelPath& at = change.from ? *change.from : change.path;
  auto now = seen.now && seen.path == at.str()
                 ? seen.now
                 : TRY(stat_beneath(base_->get(), at.str()));
  if (replaced_.contains(at.str())) return {};
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
  for (const auto& [serial, node] : state_.nodes())
    if (serial != kRootSerial) TRY(add_node(*node, found));
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

// Where nothing moved, each change stands alone: places first, then one change
// after the other.
Status JournalView::each_change(
    const std::function<Status(RawChange)>& visit) const {
  struct Spot {
    RelPath path;
    const Held* node = nullptr;
    size_t link = 0;
    const Deleted* deleted = nullptr;
  };
  std::vector<Spot> places;
  bool apart = !state_.root().is_touched();
  for (const auto& [serial, node] : state_.nodes()) {
    if (serial == kRootSerial) continue;
    for (size_t i = 0; apart && i < node->links.size(); ++i) {
      if (!tells(*node, node->links[i])) continue;
      auto path = state_.path_of(*node, i);
      if (!path) continue;
      std::optional<std::string> origin;
      if (node->base) origin = state_.base_path(node->links[i]);
      apart = !origin || *origin == *path;
      places.push_back({TRY(RelPath::parse(*path)), node.get(), i, nullptr});
    }
  }
  if (!apart) return DraftView::each_change(visit);
  for (const auto& [path, deleted] : state_.deleted())
    places.push_back({TRY(RelPath::parse(path)), nullptr, 0, &deleted});
  std::ranges::stable_sort(places, {}, &Spot::path);
  for (size_t i = 0; i < places.size();) {
    Found found;  // of one path
    Seen seen;
    RelPath path = places[i].path;
    for (; i < places.size() && places[i].path == path; ++i) {
      const Spot& place = places[i];
      if (place.node != nullptr)
        found.insert_or_assign(
            path, TRY(change_at(*place.node, place.link, path.str(), &seen)));
      else
        TRY(add_deleted(path.str(), *place.deleted, found));
    }
    RawChange& change = found.begin()->second;
    TRY(note_drift(change, {}, seen));
    TRY(visit(std::move(change)));
  }
  return {};
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

// The first commit to touch a path counts; a discard touched nothing.
Result<ReplacedMap> replaced_since(int draft_dir, Position at) {
  ReplacedMap map;
  if (at == kEnd) return map;
  for (BaseMapRecord& record : TRY(base_maps_since(draft_dir, at)))
    for (BaseChange& c : record.changes)
      if (!is_discard(c))
        map.try_emplace(c.path.str(), Replaced{.before = c.before,
                                               .preimage = c.preimage,
                                               .target = c.before_target});
  return map;
}

}  // namespace

Result<std::unique_ptr<DraftView>> open_view(const ViewOptions& options) {
  Replayed replayed = TRY(replay(options.draft_dir, options.at));
  replayed.state.move_to_device(TRY(sys::fstat(options.base)).dev);
  std::shared_ptr<Segments> segments =
      TRY(Segments::open(options.draft_dir, false));
  ReplacedMap replaced = TRY(replaced_since(options.draft_dir, options.at));
  return std::make_unique<JournalView>(
      std::move(replayed), TRY(share_root(options.base)), std::move(segments),
      std::move(replaced), options.objects);
}

Result<std::vector<Mark>> list_marks(int draft_dir) {
  return TRY(replay(draft_dir)).state.marks();
}

}  // namespace stoplog::fs
