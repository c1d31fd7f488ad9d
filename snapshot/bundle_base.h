// SPDX-License-Identifier: Apache-2.0
// What a draft knows of the real tree beneath it: for each path that any of
// its records speaks of, the file that stood there, with its content's digest.
// A bundle carries this table; on another machine it is compared with the tree
// there, and inode numbers and times are translated by it.
//
//   BaseTable table = TRY(gather_base(draft_dir, base, position));
//   Compared c = TRY(compare_base(table, other_base, owners));
//   if (!c.differences.empty()) ...          // named, refused
//
// Untouched files that merely lie beside or beneath are not in it: a draft
// shows those of the tree it stands over, wherever that is.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/sys_file.h"
#include "fs/beneath.h"
#include "fs/history.h"
#include "fs/tree_types.h"

namespace stoplog::snapshot {

struct BaseEntry {
  RelPath path;
  // What the draft saw there; absent: nothing (it made something itself).
  std::optional<sys::Stat> seen;
  // Of a regular file; absent when it can no longer be read (drift).
  std::optional<Sha256Digest> content;
  std::string target;  // of a symlink
  // Its mode counts: it is no directory that is only passed through.
  bool exact = false;
};

struct BaseTable {
  uid_t owner = 0;  // of the root
  gid_t group = 0;
  std::vector<BaseEntry> entries;      // by path
  std::vector<std::string> drifted{};  // paths; not carried
};
std::string encode(const BaseTable& table);
Result<BaseTable> decode_base(std::string_view bytes);

// Called now and then with bytes read so far; an error ends the work.
using Progress = std::function<Status(uint64_t)>;

// `needed` finds what the marks refer to on the same walk.
Result<BaseTable> gather_base(int draft_dir, int base, fs::Position until,
                              const Progress& progress = {},
                              fs::NeededRanges* needed = nullptr);

// Who owns the workspace there and here.
struct Owners {
  uid_t from_uid = 0, to_uid = 0;
  gid_t from_gid = 0, to_gid = 0;
  uid_t uid(uid_t id) const { return id == from_uid ? to_uid : id; }
  gid_t gid(gid_t id) const { return id == from_gid ? to_gid : id; }
};

struct Compared {
  // "src/main.c was modified": for people, paths not escaped.
  struct Difference {
    RelPath path;
    std::string what;
  };
  std::vector<Difference> differences;
  // What the files of the table are here, by what they were there.
  struct Local {
    sys::Stat seen, here;
  };
  struct Less {
    bool operator()(const fs::Identity& a, const fs::Identity& b) const;
  };
  std::map<fs::Identity, Local, Less> files;
};
Result<Compared> compare_base(const BaseTable& table, int base,
                              const Progress& progress = {});

}  // namespace stoplog::snapshot
