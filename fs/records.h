// SPDX-License-Identifier: Apache-2.0
// The records of the journal as plain structs, and their bytes. docs/FORMAT.md
// describes each. A record says what happened in terms of serials (numbers of
// held nodes), never of paths, so that a rename of a directory is one record.
//
// decode() takes any bytes: names are checked, counts bounded by the bytes
// that are there, unknown types refused.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "base/sys_file.h"
#include "fs/extents.h"
#include "fs/told.h"
#include "fs/tree_types.h"

namespace stoplog::fs {

using Serial = uint64_t;  // of a held node, from 1 (the root); 0: none
inline constexpr Serial kRootSerial = 1;

using Xattrs = std::map<std::string, std::string>;

// The first record of each generation file.
struct OpenRecord {
  uint64_t draft = 0;  // random; seeds the checks of all records
  uint32_t generation = 1;
  uint64_t cookie_seed = 0;  // of readdir's name hashes
};
// A lower node becomes a held one: nothing changes but that it is known.
struct AdoptRecord {
  Serial serial = 0;
  Serial parent = 0;
  std::string name;
  uint64_t ino = 0;  // shown from now on
  sys::Stat base;
};
struct CreateRecord {
  Serial serial = 0;
  Serial parent = 0;  // 0: a file without a name (O_TMPFILE)
  std::string name;
  uint64_t ino = 0;
  mode_t mode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  dev_t rdev = 0;
  timespec time{};
  std::string target;
  Xattrs xattrs;
};
struct LinkRecord {
  Serial serial = 0;
  Serial parent = 0;
  std::string name;
  // A second name that the lower already has, seen now: no times change.
  bool lower = false;
  timespec time{};
};
struct UnlinkRecord {  // files and directories
  Serial parent = 0;
  std::string name;
  timespec time{};
  // What the lower has at that name, when no held node stands there.
  std::optional<sys::Stat> lower;
  std::string lower_target;  // of a symlink
};
struct RenameRecord {
  Serial parent = 0;
  std::string name;
  Serial new_parent = 0;
  std::string new_name;
  bool exchange = false;
  timespec time{};
  // What is replaced, when the lower alone has it.
  std::optional<sys::Stat> lower;
  std::string lower_target;
};
struct SetAttrRecord {
  Serial serial = 0;
  // Which of them are the draft's own from now on: kOwn... of fs/state.h.
  uint8_t own = 0;
  bool by_user = false;  // asked for; else a side effect (setuid cleared)
  mode_t mode = 0;       // permission bits
  uid_t uid = 0;
  gid_t gid = 0;
  timespec atime{}, mtime{}, ctime{};
};
// All xattrs of the node, taken over from the lower or changed.
struct XattrRecord {
  Serial serial = 0;
  Xattrs xattrs;
  timespec ctime{};
};
// The content of a lower file becomes the draft's: whole (a copy in a
// segment, hashed) or as a range of the lower file.
struct TakeRecord {
  Serial serial = 0;
  sys::Stat base;
  bool whole = false;
  uint32_t segment = 0;
  uint64_t at = 0;
  Hash128 hash;
};
struct ExtentRecord {
  Serial serial = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  Where where = Where::kSegment;  // kSegment, kZero, or kHole to punch
  uint32_t segment = 0;
  uint64_t at = 0;
  bool keep_size = false;
  timespec time{};
};
struct TruncateRecord {
  Serial serial = 0;
  uint64_t size = 0;
  timespec time{};
};
// An open extent was overwritten in place: only the times moved.
struct TouchRecord {
  Serial serial = 0;
  timespec time{};
};
// Lower ranges of the file now lie in `segment` at `at` + offset.
struct PinRecord {
  Serial serial = 0;
  uint32_t segment = 0;
  uint64_t at = 0;
  Hash128 hash;
};
struct SealRecord {
  uint32_t segment = 0;
  uint64_t at = 0;
  uint32_t length = 0;
  uint64_t hash = 0;  // XXH3-64
};
struct MarkRecord {
  Mark mark;  // position and generation are the record's own
};
struct BaseMapRecord {
  Position reviewed = 0;
  bool more = false;  // another record of the same commit follows
  std::vector<BaseChange> changes;
};
// Unlinked nodes that nobody holds open any more.
struct DropRecord {
  std::vector<Serial> serials;
};
struct DriftRecord {
  Serial serial = 0;
  std::string what;
  timespec time{};
};

// --- a whole state, at the start of a generation -------------------------
struct LinkState {
  Serial parent = 0;
  std::string name;
  uint8_t from = 0;  // LinkFrom of fs/state.h
  std::string origin;
  bool shadows = false;
};
struct NodeRecord {
  Serial serial = 0;
  uint64_t ino = 0;
  mode_t mode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  dev_t rdev = 0;
  timespec atime{}, mtime{}, ctime{};
  uint32_t flags = 0;
  uint32_t command = 0;
  int32_t nlink_delta = 0;
  Position touched = 0;
  std::optional<sys::Stat> base;
  std::string lower_path;
  std::vector<LinkState> links;
  std::string target;
  Xattrs xattrs;
  bool has_content = false;
  uint64_t size = 0;
  std::vector<Extent> extents;
  sys::Stat lower;  // guard of lower extents
  bool has_base = false;
  uint32_t base_segment = 0;
  uint64_t base_at = 0;
  Hash128 base_hash;
  std::string drift;
  timespec drift_time{};
};
// Names of one directory that are gone.
struct GoneRecord {
  Serial dir = 0;
  std::vector<std::string> names;
};
struct DeletedRecord {
  std::string path;  // of the base
  sys::Stat base;
  std::string target;
  uint32_t command = 0;
  Position when = 0;
  uint32_t segment = 0;  // 0: the content was not taken
  uint64_t at = 0;
};
struct TableRecord {  // what the state counts
  Serial next_serial = 0;
  uint64_t next_ino = 0;
  uint32_t epoch = 0;
  uint32_t command = 0;
  uint32_t next_mark = 0;
  uint32_t next_segment = 0;
  Position position = 0;
  std::vector<Mark> marks;
};
// The snapshot is complete; what follows are changes.
struct StartRecord {};
// A clean node whose lower side was replaced or removed is the lower's again.
struct ReleaseRecord {
  Serial serial = 0;
};

// Records that the live tree refused after they were written (a bug): they
// changed nothing then, and must not now.
struct RefusedRecord {
  std::vector<Position> positions;
};

// The number of the real tree's device from here on; it may be another after a
// restart of the machine, and all that was known of files there still holds.
struct DeviceRecord {
  dev_t device = 0;
};

// First in a generation that goes on from an older moment (a rollback, a fork):
// the state is the one at `position`, which lies in the generation before or in
// one before that, with what is counted here. Nodes that had no name then are
// gone.
struct FromRecord {
  Position position = 0;
  uint32_t depth = 1;          // generations to be read before this one
  bool keeps_command = false;  // the command is the one of then
  TableRecord table;
};

// Which generations there are before this one and where each ends for this
// draft, oldest first. Next to the open record of every generation but the
// first: a damaged head, another file in its place or what a fork's parent went
// on writing there is known by it.
struct OlderRecord {
  struct Part {
    uint32_t generation = 0;
    uint64_t draft = 0;
    Position first = 0, last = 0;
  };
  std::vector<Part> parts;
};

// Commits that the draft was told of, by the identity that each has: in a whole
// state all that are known, and right before a base map (`follows`) the one
// that the map tells of, which counts once that is complete.
struct ToldRecord {
  bool follows = false;
  std::vector<CommitId> commits;
};

using Record =
    std::variant<OpenRecord, AdoptRecord, CreateRecord, LinkRecord,
                 UnlinkRecord, RenameRecord, SetAttrRecord, XattrRecord,
                 TakeRecord, ExtentRecord, TruncateRecord, TouchRecord,
                 PinRecord, SealRecord, MarkRecord, BaseMapRecord, DropRecord,
                 DriftRecord, NodeRecord, GoneRecord, DeletedRecord,
                 TableRecord, StartRecord, ReleaseRecord, RefusedRecord,
                 DeviceRecord, FromRecord, OlderRecord, ToldRecord>;

// The type number on disk is the index in the variant: append only.
uint16_t record_type(const Record& record);
// The node that a record is about; 0 when it is about none or several.
Serial subject_of(const Record& record);
void encode(const Record& record, std::string& out);
Result<Record> decode(uint16_t type, std::string_view bytes);

}  // namespace stoplog::fs
