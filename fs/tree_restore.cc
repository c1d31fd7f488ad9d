// SPDX-License-Identifier: Apache-2.0
// Going back past a commit. The older state knew the real tree as it was; the
// commits since changed it. What they replaced becomes held content (read from
// the object store), what they made is hidden, what they moved is moved back:
// the tree looks as it did, over the base that is there now.
#include <algorithm>

#include "base/sys_node.h"
#include "fs/tree_impl.h"

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

// The held directory at `path`, adopting it and its parents where needed.
Result<Serial> hold_dir(State& state, int base, const RelPath& path) {
  Serial at = kRootSerial;
  RelPath here;
  for (std::string_view name : path.components()) {
    here = here / name;
    const Held* dir = state.find(at);
    auto child = State::child(*dir, name);
    if (child && *child == 0) return fail_errno(ENOENT);
    if (!child) {
      Fd fd = TRY(open_deep(base, here.str(), O_PATH));
      sys::Stat st = TRY(sys::fstat(fd.get()));
      Serial serial = state.next_serial();
      TRY(put(state, AdoptRecord{.serial = serial,
                                 .parent = at,
                                 .name = std::string(name),
                                 .ino = free_ino(state, st.ino),
                                 .base = st}));
      child = serial;
    }
    at = *child;
    if (!state.find(at)->is_dir()) return fail_errno(ENOTDIR);
  }
  return at;
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

}  // namespace

// Copies an object into a segment: the content that a commit replaced.
Result<SegmentRange> Tree::Impl::store_object(const Sha256Digest& digest,
                                              uint64_t size) {
  if (!options_.objects)
    return fail(Code::kInvalid, "what the commit replaced cannot be read here");
  auto content = TRY(options_.objects(digest));
  if (content->size() != size)
    return fail(Code::kCorrupt, "an object has another size than it had");
  SegmentRange range = TRY(segments_->allocate(size));
  std::vector<std::byte> block(std::min<uint64_t>(size, 1u << 20));
  for (uint64_t done = 0; done < size;) {
    size_t n = TRY(content->read(done, block));
    if (n == 0) return fail(Code::kCorrupt, "an object ends early");
    TRY(segments_->write({range.segment, range.at + done, n},
                         std::span(block).first(n)));
    done += n;
  }
  return range;
}

// Gives a held file the content that it had over the old base.
Status Tree::Impl::restore_content(State& state, Serial serial,
                                   const BaseChange& change) {
  const Held* node = state.find(serial);
  if (node == nullptr || !node->is_file() || node->body || !change.before ||
      kept_in_place(change))
    return {};
  TakeRecord take{.serial = serial,
                  .base = *change.before,
                  .whole = true,
                  .segment = 0,
                  .at = 0,
                  .hash = {}};
  if (change.before->size > 0) {
    if (!change.preimage)
      return fail(Code::kInvalid, "{} has no pre-image", change.path.str());
    SegmentRange range =
        TRY(store_object(*change.preimage, change.before->size));
    take.segment = range.segment;
    take.at = range.at;
  }
  return put(state, std::move(take));
}

Status Tree::Impl::restore_one(State& state, const BaseChange& change) {
  RelPath path = change.from ? *change.from : change.path;
  auto parent = hold_dir(state, base_->get(), path.parent());
  // Absent or no directory in that state: nothing of it was seen.
  if (!parent) return {};
  std::string name(path.name());
  auto child = State::child(*state.find(*parent), name);
  if (change.from) {
    // Not moved yet at that time: it is moved back in the draft.
    if (!child && change.now) {
      Serial serial = state.next_serial();
      TRY(put(state, AdoptRecord{.serial = serial,
                                 .parent = *parent,
                                 .name = name,
                                 .ino = free_ino(state, change.now->ino),
                                 .base = *change.now}));
      // Touched, so that it stays when its base is found elsewhere.
      TRY(put(state, SetAttrRecord{.serial = serial,
                                   .own = kOwnAll,
                                   .by_user = true,
                                   .mode = change.now->mode & 07777,
                                   .uid = change.now->uid,
                                   .gid = change.now->gid,
                                   .atime = change.now->atime,
                                   .mtime = change.now->mtime,
                                   .ctime = change.now->ctime}));
      if (auto to = hold_dir(state, base_->get(), change.path.parent()))
        TRY(put(state, GoneRecord{.dir = *to,
                                  .names = {std::string(change.path.name())}}));
    }
    return {};
  }
  if (child && *child == 0) return {};  // deleted then, deleted still
  if (child) return restore_content(state, *child, change);
  if (!change.before) {
    // Made by the commit: that state did not have it.
    if (!change.now) return {};
    return put(state, UnlinkRecord{.parent = *parent,
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
                                .parent = *parent,
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
                      .parent = *parent,
                      .name = name,
                      .ino = free_ino(state, before.ino),
                      .base = kept_in_place(change) ? *change.now : before}));
  TRY(put(state, SetAttrRecord{.serial = serial,
                               .own = kOwnAll,
                               .by_user = true,
                               .mode = before.mode & 07777,
                               .uid = before.uid,
                               .gid = before.gid,
                               .atime = before.atime,
                               .mtime = before.mtime,
                               .ctime = before.ctime}));
  return restore_content(state, serial, change);
}

Status Tree::Impl::restore_replaced(State& state, Position at) {
  for (BaseMapRecord& map : TRY(base_maps_since(draft_dir_.get(), at))) {
    std::vector<BaseChange> downward = map.changes;
    std::ranges::sort(downward, {}, &BaseChange::path);
    for (const BaseChange& change : downward)
      TRY_CTX(restore_one(state, change), change.path.str());
    map.reviewed = 0;  // whatever is held stays held, over the new base
    TRY(put(state, std::move(map)));
  }
  return {};
}

}  // namespace stoplog::fs
