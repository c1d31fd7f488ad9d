// SPDX-License-Identifier: Apache-2.0
#include "fs/restore.h"

#include <algorithm>

#include "base/sys_node.h"

namespace stoplog::fs {
namespace {

constexpr uint64_t kNewIno = 1ull << 62;

// Applies one record that the snapshot will carry; it is in no journal.
Status put(State& state, Record record) {
  return state.apply({state.position(), 0, std::move(record)});
}

uint64_t free_ino(const State& state, uint64_t wanted) {
  if (wanted != 0 && state.by_ino(wanted) == 0) return wanted;
  return kNewIno | state.next_serial() << 20;
}

// Directories that commits took away, as they were before.
class Removed {
 public:
  explicit Removed(const std::vector<BaseMapRecord>& maps) {
    for (size_t number = 0; number < maps.size(); ++number)
      for (const BaseChange& change : maps[number].changes)
        if (change.before && !change.now && S_ISDIR(change.before->mode))
          all_[change.path.str()].push_back({number, &*change.before});
  }
  // By the first commit from `number` on that took it away.
  const sys::Stat* find(const std::string& path, size_t number) const {
    auto it = all_.find(path);
    if (it == all_.end()) return nullptr;
    auto one = std::ranges::lower_bound(it->second, number, {}, &One::number);
    return one == it->second.end() ? nullptr : one->st;
  }

 private:
  struct One {
    size_t number;
    const sys::Stat* st;  // of the maps
  };
  std::unordered_map<std::string, std::vector<One>> all_;
};

// Held nodes by the place of their base, which is not where the draft shows
// them when they, or a directory above them, were moved.
class Origins {
 public:
  // `number`: of the commit that is being undone.
  Origins(const State& state, const Removed& removed, size_t number)
      : removed_(removed), number_(number) {
    for (const auto& [serial, node] : state.nodes()) {
      if (auto origin = state.origin_of(*node)) serials_[*origin] = serial;
      for (const Link& link : node->links)
        if (auto path = state.base_path(link)) serials_[*path] = serial;
    }
  }
  Serial find(const std::string& path) const {
    auto it = serials_.find(path);
    return it == serials_.end() ? 0 : it->second;
  }
  void add(const std::string& path, Serial serial) { serials_[path] = serial; }
  // A directory that it or a later commit took away, as it was.
  const sys::Stat* find_removed(const std::string& path) const {
    return removed_.find(path, number_);
  }

 private:
  std::unordered_map<std::string, Serial> serials_;
  const Removed& removed_;
  const size_t number_;
};

// The held directory whose base is at `path`, adopting it and its parents
// where needed; 0 when the draft does not show it.
Result<Serial> hold_dir(State& state, int base, const RelPath& path,
                        Origins& origins) {
  if (path.is_root()) return kRootSerial;
  if (Serial known = origins.find(path.str())) {
    const Held* node = state.find(known);
    return node != nullptr && node->is_dir() ? known : 0;
  }
  Serial parent = TRY(hold_dir(state, base, path.parent(), origins));
  if (parent == 0) return 0;
  // Gone, or something of the draft's own stands there.
  if (State::child(*state.find(parent), path.name())) return 0;
  auto fd = open_deep(base, path.str(), O_PATH);
  std::optional<sys::Stat> st;
  if (fd) st = TRY(sys::fstat(fd->get()));
  if (!st || !S_ISDIR(st->mode)) {
    const sys::Stat* was = origins.find_removed(path.str());
    if (was == nullptr) return 0;
    st = *was;
  }
  Serial serial = state.next_serial();
  TRY(put(state, AdoptRecord{.serial = serial,
                             .parent = parent,
                             .name = std::string(path.name()),
                             .ino = free_ino(state, st->ino),
                             .base = *st}));
  origins.add(path.str(), serial);
  return serial;
}

// The commit changed attributes alone, or (a discard) nothing: the content is
// where it was.
bool kept_in_place(const BaseChange& change) {
  return change.now && change.before && !change.preimage &&
         identity_of(*change.now) == identity_of(*change.before);
}

bool same_attributes(const sys::Stat& a, const sys::Stat& b) {
  return a.mode == b.mode && a.uid == b.uid && a.gid == b.gid &&
         same_time(a.mtime, b.mtime);
}

SetAttrRecord attributes_of(const sys::Stat& st, Serial serial, uint8_t own) {
  return {.serial = serial,
          .own = own,
          .by_user = true,
          .mode = st.mode & 07777,
          .uid = st.uid,
          .gid = st.gid,
          .atime = st.atime,
          .mtime = st.mtime,
          .ctime = st.ctime};
}

// A held node shows the base's attributes where it has none of its own. What
// is neither a file nor holds any name has nothing else to stay by when its
// base goes.
Status restore_attributes(State& state, Serial serial,
                          const BaseChange& change) {
  const Held* node = state.find(serial);
  if (node == nullptr || !change.before ||
      (node->mode & S_IFMT) != (change.before->mode & S_IFMT))
    return {};
  bool stays = node->is_file() || kept_in_place(change) ||
               std::ranges::any_of(node->names,
                                   [](const auto& e) { return e.second != 0; });
  if (stays && (!change.now || same_attributes(*change.now, *change.before)))
    return {};
  state.keep_target(serial, change.before_target);
  auto missing = static_cast<uint8_t>(kOwnAll & ~node->own);
  if (missing == 0) return {};
  const sys::Stat& before = *change.before;
  return put(state, attributes_of(before, serial, missing));
}

// Gives a held file the content that it had over the old base.
Status restore_content(State& state, Serial serial, const BaseChange& change,
                       const StoreObject& store) {
  const Held* node = state.find(serial);
  if (node == nullptr || !node->is_file() || !change.before ||
      kept_in_place(change))
    return {};
  if (node->body) {
    // A large file that stood on the real one's bytes at that time.
    const sys::Stat& lower = node->body->lower;
    if (!node->body->map.has_lower() || !change.preimage ||
        !(identity_of(lower) == identity_of(*change.before)) ||
        !(fingerprint_of(lower) == fingerprint_of(*change.before)))
      return {};
    SegmentRange range = TRY(store(*change.preimage, lower.size));
    return put(state, PinRecord{.serial = serial,
                                .segment = range.segment,
                                .at = range.at,
                                .hash = {}});
  }
  TakeRecord take{.serial = serial,
                  .base = *change.before,
                  .whole = true,
                  .segment = 0,
                  .at = 0,
                  .hash = {}};
  if (change.before->size > 0) {
    if (!change.preimage)
      return fail(Code::kInvalid, "{} has no pre-image", change.path.str());
    SegmentRange range = TRY(store(*change.preimage, change.before->size));
    take.segment = range.segment;
    take.at = range.at;
  }
  return put(state, std::move(take));
}

// Not moved yet at that time: it is moved back in the draft.
Status restore_moved(State& state, int base, const BaseChange& change,
                     Origins& origins) {
  if (!change.now || origins.find(change.from->str()) != 0) return {};
  Serial parent = TRY(hold_dir(state, base, change.from->parent(), origins));
  std::string name(change.from->name());
  if (parent == 0 || State::child(*state.find(parent), name)) return {};
  Serial serial = state.next_serial();
  TRY(put(state, AdoptRecord{.serial = serial,
                             .parent = parent,
                             .name = name,
                             .ino = free_ino(state, change.now->ino),
                             .base = *change.now}));
  // Touched, so that it stays when its base is found elsewhere.
  TRY(put(state, attributes_of(*change.now, serial, kOwnAll)));
  origins.add(change.from->str(), serial);
  Serial to = TRY(hold_dir(state, base, change.path.parent(), origins));
  if (to == 0) return {};
  return put(state,
             GoneRecord{.dir = to, .names = {std::string(change.path.name())}});
}

Status restore_one(State& state, int base, const BaseChange& change,
                   Origins& origins, const StoreObject& store) {
  if (change.from) return restore_moved(state, base, change, origins);
  // Held then, wherever the draft shows it.
  if (Serial held = origins.find(change.path.str())) {
    TRY(restore_attributes(state, held, change));
    return restore_content(state, held, change, store);
  }
  Serial parent = TRY(hold_dir(state, base, change.path.parent(), origins));
  std::string name(change.path.name());
  // Made in a directory that the draft did not show: to be gone like it.
  if (parent == 0 && change.now && !change.before &&
      !state.deleted().contains(change.path.str()))
    return put(state, DeletedRecord{.path = change.path.str(),
                                    .base = *change.now,
                                    .target = {},
                                    .command = 0,
                                    .when = state.position()});
  // The draft did not show what the base had there.
  if (parent == 0 || State::child(*state.find(parent), name)) return {};
  if (!change.before) {
    // Made by the commit: that state did not have it.
    if (!change.now) return {};
    return put(state, UnlinkRecord{.parent = parent,
                                   .name = name,
                                   .time = sys::coarse_now(),
                                   .lower = change.now,
                                   .lower_target = {}});
  }
  Serial serial = state.next_serial();
  sys::Stat before = *change.before;
  if (kept_in_place(change) && same_attributes(*change.now, before)) return {};
  if (S_ISLNK(before.mode)) {
    TRY(put(state, CreateRecord{.serial = serial,
                                .parent = parent,
                                .name = name,
                                .ino = free_ino(state, before.ino),
                                .mode = before.mode,
                                .uid = before.uid,
                                .gid = before.gid,
                                .rdev = 0,
                                .time = before.mtime,
                                .target = change.before_target,
                                .xattrs = {}}));
    return {};
  }
  TRY(put(state,
          AdoptRecord{.serial = serial,
                      .parent = parent,
                      .name = name,
                      .ino = free_ino(state, before.ino),
                      .base = kept_in_place(change) ? *change.now : before}));
  origins.add(change.path.str(), serial);
  TRY(put(state, attributes_of(before, serial, kOwnAll)));
  return restore_content(state, serial, change, store);
}

}  // namespace

Status restore_replaced(State& state, std::vector<BaseMapRecord> maps, int base,
                        const StoreObject& store) {
  // A discard changed nothing in the real tree: there is nothing to undo.
  for (BaseMapRecord& map : maps)
    std::erase_if(map.changes,
                  [](const BaseChange& change) { return is_discard(change); });
  const Removed removed(maps);
  for (size_t number = 0; number < maps.size(); ++number) {
    std::vector<BaseChange> downward = maps[number].changes;
    std::ranges::sort(downward, {}, &BaseChange::path);
    Origins origins(state, removed, number);
    for (const BaseChange& change : downward)
      TRY_CTX(restore_one(state, base, change, origins, store),
              change.path.str());
    BaseMapRecord map = maps[number];
    map.reviewed = 0;  // whatever is held stays held, over the new base
    TRY(put(state, std::move(map)));
  }
  return {};
}

}  // namespace stoplog::fs
