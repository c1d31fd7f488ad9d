// SPDX-License-Identifier: Apache-2.0
// The plain data that Tree takes and gives: callers, attributes, entries,
// marks, rules, quota and what a tree tells its observer. See fs/tree.h.
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/relpath.h"
#include "base/result.h"
#include "base/sys_file.h"
#include "fs/view.h"

namespace stoplog::fs {

// A node as the kernel names it: the number of a slot in the low half, how
// often the slot was used before in the high half. A stale id is ESTALE, never
// another file. The root is 1, as FUSE wants.
using NodeId = uint64_t;
inline constexpr NodeId kRootId = 1;

// A place in the journal: the sequence number of the last record that counts.
using Position = uint64_t;

// Who asks. Ids are true host ids: the mount layer has translated them.
struct Caller {
  uid_t uid = 0;
  gid_t gid = 0;
  // Supplementary groups decide whether chmod keeps setgid; empty: unknown,
  // and then only `gid` counts.
  std::span<const gid_t> groups{};
  mode_t umask = 0;
  pid_t pid = 0;
  // CAP_FSETID in effect: setgid survives chmod by one outside of the group.
  bool fsetid = false;
};

struct Attr {
  uint64_t ino = 0;
  mode_t mode = 0;  // with the type bits
  uint32_t nlink = 1;
  uid_t uid = 0;
  gid_t gid = 0;
  dev_t rdev = 0;
  uint64_t size = 0;
  uint64_t blocks = 0;  // of 512 bytes
  timespec atime{}, mtime{}, ctime{};
};

// Whose word an answer is, and so how long it may be cached.
enum class Source : uint8_t {
  kHeld,   // the draft's own: changes only through this tree, cache for ever
  kLower,  // the real tree's, live: cache as long as a watch reports changes
};

struct Entry {
  NodeId id = 0;
  Attr attr;
  Source attr_source = Source::kHeld;  // of the attributes and the content
  Source name_source = Source::kHeld;  // of "this name leads to this node"
  // The lower file has more than one link, so a watch on its directory does
  // not see every change of it: watch the file itself.
  bool lower_links = false;
};

// What a name of the real tree is reached by: for putting watches. Valid as
// long as the lower directory is not moved by someone on the host.
struct LowerRef {
  RelPath path;  // beneath the base
  dev_t dev = 0;
  uint64_t ino = 0;
  bool any = false;  // whatever directory stands there, not this one alone
};

enum : uint32_t {
  kSetMode = 1u << 0,
  kSetUid = 1u << 1,
  kSetGid = 1u << 2,
  kSetSize = 1u << 3,
  kSetAtime = 1u << 4,
  kSetMtime = 1u << 5,
  kSetCtime = 1u << 6,
  kSetAtimeNow = 1u << 7,
  kSetMtimeNow = 1u << 8,
  // Clear setuid, setgid (of an executable group) and security.capability, as
  // FUSE_HANDLE_KILLPRIV_V2 asks for on truncate and chown.
  kKillSuidgid = 1u << 9,
};
struct SetAttr {
  uint32_t set = 0;  // kSet...
  mode_t mode = 0;   // permission bits
  uid_t uid = 0;
  gid_t gid = 0;
  uint64_t size = 0;
  timespec atime{}, mtime{}, ctime{};
};

struct WriteFlags {
  // FUSE_WRITE_KILL_SUIDGID: the writer lacks CAP_FSETID.
  bool kill_suidgid = false;
  // Page writeback of a shared mapping: nobody can be told of a failure, so it
  // may use the quota's reserve.
  bool writeback = false;
};

// One name of a directory. `cookie` resumes the listing after it.
struct DirItem {
  std::string_view name;
  uint64_t cookie = 0;
  uint64_t ino = 0;
  mode_t type = 0;  // S_IFMT bits
  // readdir_plus only, and absent for "." and "..": with one lookup counted.
  const Entry* entry = nullptr;
};
// False: no room, this item was not taken; the listing stops here.
using DirSink = std::function<bool(const DirItem&)>;

enum class MarkKind : uint8_t {
  kCommandBegin = 0,
  kCommandEnd = 1,
  kNamed = 2,    // `snapshot -m`
  kBarrier = 3,  // a reader's instant: review, commit, status
  kRollback = 4,
  kCommit = 5,
};
struct Mark {
  uint32_t id = 0;  // counts up from 1, never used again
  MarkKind kind = MarkKind::kNamed;
  Position position = 0;
  uint32_t command = 0;  // of the timeline; 0: none
  timespec time{};
  std::string name;         // may be empty
  uint32_t generation = 0;  // the journal file that holds it
};

// What a path rule says; the strictest of all routes to a node holds.
enum class Rule : uint8_t {
  kNone = 0,
  kReadOnly = 1,  // every change is EROFS
  kMask = 2,      // present, content replaced, every change EACCES
  kDeny = 3,      // the name shows, every use of it is EACCES
  kHide = 4,      // absent; making something there is EACCES
};
class PathRules {
 public:
  virtual ~PathRules() = default;
  // True when no path has a rule: paths are then never built.
  virtual bool empty() const = 0;
  // False when no path is hidden: listings are then not looked through.
  virtual bool hides() const = 0;
  // Pure: the same answer for the same path, from any thread, no blocking. A
  // rule on a directory answers for what is beneath it too.
  virtual Rule rule(std::string_view path, bool is_directory) const = 0;
  // The strictest rule (masks apart) that a directory's move could go round:
  // something beneath it would come under the rule, or leave a read-only path.
  virtual Rule evaded(std::string_view from, std::string_view to) const = 0;
  // What a masked file reads as.
  virtual std::string_view mask_content(std::string_view path) const = 0;
};

struct Quota {
  // Live content held by the draft, extended attributes, targets of symlinks.
  uint64_t bytes = UINT64_MAX;
  // Nodes that the draft made or touched, and further names of them.
  uint64_t inodes = UINT64_MAX;
  uint64_t reserve = 16u << 20;  // beyond `bytes`, for writeback alone
};

struct Stats {
  uint64_t live_nodes = 0;      // in memory
  uint64_t touched_nodes = 0;   // journaled
  uint64_t held_bytes = 0;      // live content in segments
  uint64_t beside_bytes = 0;    // of extended attributes and symlinks' targets
  uint64_t dead_bytes = 0;      // in segments, needed by nothing but marks
  uint64_t journal_bytes = 0;   // of the present generation
  uint64_t node_memory = 0;     // estimate, names included
  uint64_t open_fds = 0;        // lower and segment fds held now
  uint64_t unpinned_files = 0;  // large files still on lower extents
  uint64_t denials = 0;         // by rules
  // Since the tree was opened. What the kernel has in its cache is not asked
  // for again, and so not counted again.
  uint64_t read_bytes = 0, written_bytes = 0;
  uint64_t refused_bytes = 0, refused_nodes = 0;  // times the quota said no
};

// What the kernel must be told.
struct Invalidation {
  enum class Kind : uint8_t {
    kNode,       // attributes and content of `node`
    kExpire,     // the name `name` in `node`: ask again, keep what stands there
    kDrop,       // the name `name` in `node` leads elsewhere or nowhere now
    kEveryName,  // all names everywhere: ask again when one is used
  };
  Kind kind = Kind::kNode;
  NodeId node = 0;   // for names: the directory
  NodeId child = 0;  // for names: what was known there, 0 when nothing
  std::string name;
  // kNode: a file with several names in the real tree. It needs a watch of its
  // own, put before the kernel is told.
  bool links = false;
  // kNode: a directory in whose place another stands now in the real tree, or
  // none: a watch of it is one of the wrong directory.
  bool replaced = false;
  // kNode: only who has it open sees a difference, and nobody waits for it.
  bool later = false;
};
struct DriftNote {
  RelPath path;      // in the draft
  RelPath origin;    // in the real tree
  std::string what;  // a sentence for a person
  timespec time{};
};
struct Denial {
  std::string path;
  Rule rule = Rule::kNone;
  const char* operation = "";  // a static string
  pid_t pid = 0;
};
// Called without any lock held, from the thread whose call caused it, before
// that call returns. May not call the tree back but for lower_ref().
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void invalidate(std::span<const Invalidation> what) = 0;
  // Can be told kEveryName?
  virtual bool forgets_names() { return false; }
  // Whoever this thread works for was killed, and waits for nothing more?
  virtual bool is_given_up() { return false; }
  virtual void drift(const DriftNote& note) = 0;
  // Stores through a mapping of this file found no room and are gone. Told
  // every time: no program can be. Empty: the file has no name any more.
  virtual void lost(const std::string& path) { static_cast<void>(path); }
  virtual void denied(const Denial& denial) = 0;
};

// Reads content that a commit replaced, by its hash in the object store.
using ObjectSource =
    std::function<Result<std::shared_ptr<const Content>>(const Sha256Digest&)>;

// What a commit did to the real tree at one path; the gate fills it from what
// it verified, not from a later look.
struct BaseChange {
  RelPath path;  // in the real tree and in the draft
  // The state now: identity and fingerprint right after the switch. Absent:
  // the path was removed.
  std::optional<sys::Stat> now;
  // The real path that was renamed to `path`, when the commit moved it.
  std::optional<RelPath> from;
  // What stood there before, in the object store; absent: nothing did, or it
  // was a directory (or a link of `path` to itself that needs no content).
  std::optional<Sha256Digest> preimage;
  // The state before, for marks older than the commit. Absent: nothing.
  std::optional<sys::Stat> before;
  std::string before_target;  // of a symlink
  // Only a part of the draft's change was taken: what the draft has there stays
  // held, over the new base.
  bool rest_held = false;
};

}  // namespace stoplog::fs
