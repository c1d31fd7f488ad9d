// SPDX-License-Identifier: Apache-2.0
#include "snapshot/bundle_map.h"

namespace stoplog::snapshot {
namespace {

// No device has number 0: a file of the other machine that has no counterpart
// here is never taken for one that is here.
constexpr dev_t kNowhere = 0;
constexpr uint64_t kForeignIno = 3ull << 61;

Status check_path(const std::string& path) {
  if (RelPath::parse(path)) return {};
  return fail(Code::kCorrupt, "the bundle is damaged: a path leads out of it");
}

}  // namespace

void RecordMap::map(sys::Stat& st) const {
  auto found = compared_.files.find(fs::identity_of(st));
  uid_t uid = owners_.uid(st.uid);
  gid_t gid = owners_.gid(st.gid);
  if (found == compared_.files.end()) {
    st.dev = kNowhere;
    st.uid = uid;
    st.gid = gid;
    return;
  }
  const sys::Stat& seen = found->second.seen;
  sys::Stat here = found->second.here;
  // Another moment of the same file: its size, times and mode were others.
  if (!(fs::fingerprint_of(st) == fs::fingerprint_of(seen))) {
    here.size = st.size;
    here.mtime = st.mtime;
  }
  // A commit that changed a mode alone is known by the ctime before and after.
  if (!fs::same_time(st.ctime, seen.ctime)) here.ctime = st.ctime;
  if (st.mode != seen.mode) here.mode = st.mode;
  if (st.uid != seen.uid) here.uid = uid;
  if (st.gid != seen.gid) here.gid = gid;
  st = here;
}

void RecordMap::map_ino(uint64_t& ino, const sys::Stat& before,
                        const sys::Stat& after) const {
  if (ino != before.ino) return;
  ino = after.dev == kNowhere ? before.ino | kForeignIno : after.ino;
}

Status RecordMap::node(fs::NodeRecord& r) const {
  r.uid = owners_.uid(r.uid);
  r.gid = owners_.gid(r.gid);
  if (r.base && r.serial != fs::kRootSerial) {
    sys::Stat before = *r.base;
    map(*r.base);
    map_ino(r.ino, before, *r.base);
  }
  if (r.has_content && r.base) map(r.lower);
  TRY(check_path(r.lower_path));
  for (const fs::LinkState& link : r.links) TRY(check_path(link.origin));
  return {};
}

Status RecordMap::apply(fs::Record& record) const {
  if (auto* adopt = std::get_if<fs::AdoptRecord>(&record)) {
    sys::Stat before = adopt->base;
    map(adopt->base);
    map_ino(adopt->ino, before, adopt->base);
  } else if (auto* create = std::get_if<fs::CreateRecord>(&record)) {
    create->uid = owners_.uid(create->uid);
    create->gid = owners_.gid(create->gid);
  } else if (auto* attr = std::get_if<fs::SetAttrRecord>(&record)) {
    attr->uid = owners_.uid(attr->uid);
    attr->gid = owners_.gid(attr->gid);
  } else if (auto* unlink = std::get_if<fs::UnlinkRecord>(&record)) {
    map(unlink->lower);
  } else if (auto* rename = std::get_if<fs::RenameRecord>(&record)) {
    map(rename->lower);
  } else if (auto* take = std::get_if<fs::TakeRecord>(&record)) {
    map(take->base);
  } else if (auto* base = std::get_if<fs::BaseMapRecord>(&record)) {
    for (fs::BaseChange& change : base->changes) {
      map(change.now);
      map(change.before);
    }
  } else if (auto* deleted = std::get_if<fs::DeletedRecord>(&record)) {
    map(deleted->base);
    TRY(check_path(deleted->path));
  } else if (auto* held = std::get_if<fs::NodeRecord>(&record)) {
    TRY(node(*held));
  }
  return {};
}

}  // namespace stoplog::snapshot
