// SPDX-License-Identifier: Apache-2.0
// A draft's tree in and out of a bundle: every generation of the journal up to
// a position, and of the segments what its marks need. Inode numbers, times
// and owners of the real tree are translated on the way in.
//
//   fs::NeededRanges needed;
//   BaseTable table = TRY(gather_base(d, base, p, progress, &needed));
//   TRY(export_tree(writer, {.prefix = "", .draft_dir = d, .until = p, ...}));
//   TRY(import_tree(reader, {.prefix = "", .draft_dir = fresh, ...}));
//
// The caller of an export holds the draft's lock or stands on a barrier mark,
// and removes a half-made import. An imported tree has been replayed from its
// first record to its last, and every byte that any mark needs is there:
// what does not fit together is Code::kCorrupt.
#pragma once

#include <set>
#include <string>

#include "fs/ranges.h"
#include "fs/tree_types.h"
#include "snapshot/bundle_base.h"
#include "snapshot/bundle_file.h"
#include "snapshot/objects.h"

namespace stoplog::snapshot {

struct ExportTree {
  std::string prefix;  // of section names: "" or "home/"
  int draft_dir = -1;
  fs::Position until = UINT64_MAX;
  const fs::RangeSet& needed;  // by the marks up to `until`
  const Progress& progress;    // bytes of content so far
};
Status export_tree(BundleWriter& out, const ExportTree& what);

struct ImportTree {
  std::string prefix;
  int draft_dir = -1;  // empty
  const Compared& compared;
  Owners owners;
  const Progress& progress;
};
Status import_tree(BundleReader& in, const ImportTree& what);

// What commits replaced, for marks that are older. `missing` counts objects
// that the store no longer has.
struct ObjectsOut {
  uint64_t objects = 0, missing = 0;
};
Result<ObjectsOut> export_objects(BundleWriter& out, ObjectStore& store,
                                  int draft_dir, fs::Position until);
// The objects that marks of this draft need.
Result<std::set<Sha256Digest>> replaced_objects(
    int draft_dir, fs::Position until = UINT64_MAX);
// Code::kCorrupt when one has not the digest that it is named by. `scratch` is
// a directory for unnamed files.
Status import_objects(BundleReader& in, ObjectStore& store, int scratch);

// True for the section names that this version writes.
bool is_section_name(std::string_view name);

}  // namespace stoplog::snapshot
