// SPDX-License-Identifier: Apache-2.0
// Records of a journal from one machine to another: what they say of the real
// tree (device, inode, times) is put in terms of the tree here, owners of the
// workspace there become those of the one here. Everything else stays, so
// positions, marks and serials are the same.
//
//   RecordMap map(compared, owners);
//   TRY(map.apply(record));          // Code::kCorrupt for paths that lead out
#pragma once

#include "fs/records.h"
#include "snapshot/bundle_base.h"

namespace stoplog::snapshot {

class RecordMap {
 public:
  RecordMap(const Compared& compared, const Owners& owners)
      : compared_(compared), owners_(owners) {}
  Status apply(fs::Record& record) const;

 private:
  void map(sys::Stat& st) const;
  void map(std::optional<sys::Stat>& st) const {
    if (st) map(*st);
  }
  // The number that a node shows, when it was its file's own.
  void map_ino(uint64_t& ino, const sys::Stat& before,
               const sys::Stat& after) const;
  Status node(fs::NodeRecord& record) const;

  const Compared& compared_;
  const Owners owners_;
};

}  // namespace stoplog::snapshot
