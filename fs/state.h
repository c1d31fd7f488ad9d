// SPDX-License-Identifier: Apache-2.0
// State: what a draft holds, in memory. Built from nothing but records: the
// live tree and every view apply the same records through the same apply(), so
// a replay gives what was there. No I/O, no locks (the owner has them).
//
//   State state;
//   TRY(state.apply(logged));          // validates; an error changed nothing
//   Held* node = state.find(serial);   // valid until it is dropped
//
// A held node is one that the draft made, changed, or had to know because it
// is an ancestor of such a one (a pin). All others are the lower's and do not
// appear here. A held directory has a map name -> serial, 0 for gone; one with
// a base also shows the names that the lower directory at its origin has.
//
// Any records, in any order, leave it sound: parents exist, directories have
// one name, no cycles. It never aborts on what a journal says.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fs/beneath.h"
#include "fs/extents.h"
#include "fs/journal.h"
#include "fs/records.h"
#include "fs/segments.h"

namespace stoplog::fs {

// Which attributes are the draft's own; the others are the lower's, live.
enum : uint8_t {
  kOwnMode = 1,   // mode, uid, gid
  kOwnTimes = 2,  // atime, mtime
  kOwnCtime = 4,
  kOwnAll = 7,
};
// Held::flags
enum : uint32_t {
  kAttrChanged = 1,    // the agent set mode, owner or times
  kXattrsOwn = 2,      // the map here counts, not the lower's
  kXattrsChanged = 4,  // and the agent changed it
};

enum class LinkFrom : uint8_t {
  kNew = 0,      // a name the draft made
  kDerived = 1,  // the base has it: parent's origin + name
  kMoved = 2,    // of the base, but it stood at `origin` there
};
struct Link {
  Serial parent = 0;
  std::string name;
  LinkFrom from = LinkFrom::kNew;
  std::string origin;    // kMoved: the path in the base
  bool shadows = false;  // when it goes, the name stays gone
};

// Content that the draft holds. Changed with `io` and the tree's lock held
// exclusively, read with either held shared.
struct FileContent {
  ExtentMap map;
  sys::Stat lower;    // guard of the lower ranges
  SegmentRange base;  // the base's content, when taken whole; length 0: not
  bool has_base = false;
  Hash128 base_hash;
};
struct FileBody : FileContent {
  FileBody() = default;
  explicit FileBody(const FileContent& other) : FileContent(other) {}
  std::shared_mutex io;
  // The past has it as well (a rollback took it away, or brought it back): it
  // stays as it is, and who changes it gets a copy first. By the tree's lock.
  bool kept = false;
};

// An owner whose copies own a copy.
template <typename T>
class Box : public std::unique_ptr<T> {
 public:
  Box() = default;
  Box(const Box& other)
      : std::unique_ptr<T>(other ? std::make_unique<T>(*other) : nullptr) {}
  Box(Box&&) = default;
  Box& operator=(const Box& other) { return *this = Box(other); }
  Box& operator=(Box&&) = default;
  Box& operator=(std::unique_ptr<T> other) {
    std::unique_ptr<T>::operator=(std::move(other));
    return *this;
  }
};

struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view s) const {
    return std::hash<std::string_view>()(s);
  }
};
using NameMap =
    std::unordered_map<std::string, Serial, NameHash, std::equal_to<>>;

struct Held {
  Serial serial = 0;
  uint64_t ino = 0;
  mode_t mode = 0;  // with the type bits
  uid_t uid = 0;
  gid_t gid = 0;
  uint8_t own = 0;
  uint32_t flags = 0;
  uint32_t command = 0;
  int32_t nlink_delta = 0;  // against the base's (against 0 without one)
  dev_t rdev = 0;
  timespec atime{}, mtime{}, ctime{};
  Position touched = 0;
  Box<sys::Stat> base;  // absent: made by the draft
  // Where the base stands, when that is no longer first link's derived path.
  std::string lower_path;
  std::vector<Link> links;  // empty: unlinked
  std::string target;
  Xattrs xattrs;
  std::shared_ptr<FileBody> body;  // files with content of their own
  NameMap names;                   // directories
  uint64_t version = 0;            // of the names; not kept on disk
  std::string drift;
  timespec drift_time{};
  uint64_t saved = 0;      // the span of the past that knows how it was before
  bool unwritten = false;  // the journal's generation does not have it

  bool is_dir() const { return S_ISDIR(mode); }
  bool is_file() const { return S_ISREG(mode); }
  bool is_unlinked() const { return links.empty() && serial != kRootSerial; }
  // No name leads here, and none of the lower's that was not yet seen will.
  bool is_dead() const {
    return is_unlinked() &&
           (!base || is_dir() || int64_t{base->nlink} + nlink_delta <= 0);
  }
  // Nothing of the draft's is in it or beneath it (after a commit): the lower
  // at its name is what counts, whoever put it there.
  bool is_clean() const {
    if (is_touched() || own != 0 || links.empty() || !names.empty())
      return false;
    for (const Link& link : links)
      if (link.from != LinkFrom::kDerived) return false;
    return true;
  }
  // More than a pin: its own state may differ from the base's.
  bool is_touched() const {
    return !base || body || (flags & (kAttrChanged | kXattrsChanged)) != 0;
  }
};

struct Deleted {
  sys::Stat base;
  std::string target{};
  uint32_t command = 0;
  Position when = 0;
  SegmentRange content{};  // length counts only with segment != 0
};

struct IdentityHash {
  size_t operator()(const Identity& id) const {
    return std::hash<uint64_t>()(id.ino * 0x9e3779b97f4a7c15u ^ id.dev);
  }
};

class Past;  // fs/past.h

// Nothing in the real tree changed: a discard, which says what the draft is to
// show there.
bool is_discard(const BaseChange& change);

class State {
 public:
  State();
  ~State();
  State(State&&);
  State& operator=(State&&);

  Status apply(const Logged& logged);

  const Held* find(Serial serial) const;
  const Held& root() const { return *find(kRootSerial); }
  // The held node of this name, 0 for gone, absent when the map is silent.
  static std::optional<Serial> child(const Held& dir, std::string_view name);
  // Where the node's base stands in the real tree; absent without one.
  std::optional<std::string> origin_of(const Held& node) const;
  // The path in the base that a link came from; absent for a new name.
  std::optional<std::string> base_path(const Link& link) const;
  // The path in the draft of one of its names; absent when unlinked.
  std::optional<std::string> path_of(const Held& node, size_t link = 0) const;
  // True when `node` is `dir` or beneath it.
  bool is_within(const Held& node, const Held& dir) const;
  // The held file that is the lower one with this identity.
  Serial by_identity(const sys::Stat& st) const;
  Serial by_identity(const Identity& identity) const;
  // Does another held node show this inode number?
  Serial by_ino(uint64_t ino) const;

  const std::unordered_map<Serial, std::unique_ptr<Held>>& nodes() const {
    return nodes_;
  }
  const std::map<std::string, Deleted>& deleted() const { return deleted_; }
  const std::vector<Mark>& marks() const { return marks_; }
  uint32_t epoch() const { return epoch_; }
  uint32_t command() const { return command_; }
  Position position() const { return position_; }
  Serial next_serial() const { return next_serial_; }
  uint64_t next_ino() const { return next_ino_; }
  uint32_t next_mark() const { return next_mark_; }
  uint32_t next_segment() const { return next_segment_; }
  // Where the ranges on record of the segment before that end, as far as the
  // present generation tells: what older ones hold was synced before it began.
  uint64_t segment_end() const { return segment_end_; }
  uint64_t live_bytes() const { return live_bytes_; }
  // What nodes have beside their content, all of it in memory: bytes of
  // extended attributes and targets, names beyond each one's first, and ranges
  // of content beyond each one's first.
  struct Beside {
    uint64_t bytes = 0;
    uint64_t names = 0;
    uint64_t ranges = 0;
    bool operator==(const Beside&) const = default;
  };
  const Beside& beside() const { return beside_; }
  static Beside beside_of(const Held& node);
  static uint64_t further_ranges(const Held& node);
  // The sealed ranges of one segment: offset -> (length, hash).
  struct Seal {
    uint32_t length;
    uint64_t hash;
  };
  using SealMap = std::map<uint64_t, Seal>;
  const SealMap* seals(uint32_t segment) const;
  using SealTable = std::unordered_map<uint32_t, SealMap>;
  const SealTable& seal_table() const { return seals_; }

  // The state of an older mark goes on as the present: it takes over what
  // counts up, the seals and all marks.
  void succeed(const State& present);
  // What is held counts as touched now: a commit that was reviewed before did
  // not see it, and neither it nor its undo speaks of it.
  void touch_held();
  // Marks and what counts up of a state before this one, whose own were lost.
  void count_on(const State& older);
  // What succeed() takes over, but for the seals, as a generation's first
  // record; and the same on replay, when this is the state at its position.
  FromRecord from(Position position) const;
  void go_on_from(const FromRecord& record, Position now);
  void add_seal(const SealRecord& record);
  // And, as unlinked, those of `serials` that it does not have itself: the
  // kernel may still know them, and records about them may follow. Content is
  // shared with `present`, which is to go.
  void keep_orphans(const State& present, const std::vector<Serial>& serials);
  // A symlink that shows its base's target shows this one from now on.
  void keep_target(Serial serial, const std::string& target);
  // Marks are forgotten; the state itself stays as it is.
  void keep_marks(const std::set<Position>& keep);
  void set_marks(std::vector<Mark> marks) { marks_ = std::move(marks); }
  void drop_seals(
      const std::function<bool(uint32_t, uint64_t, uint32_t)>& gone);
  // The device of the real tree; 0: not known. Another number than before is
  // the same device under a new name.
  dev_t device() const { return device_; }
  void move_to_device(dev_t device);
  // Nodes touched and names gone since the last command began, as far as they
  // still count; to be asked before the mark of its end.
  uint64_t changed_by_command() const;
  // The journal ends within a base map, which is none then.
  bool has_part_of_base_map() const {
    return !base_changes_.empty() || telling_ != 0;
  }
  // The commits whose base maps were applied, oldest first; the newest of them
  // only, for who asks again does so before there is another.
  const std::vector<CommitId>& told() const { return told_; }
  // Forgets unlinked nodes: at the end of a replay nobody has them open.
  void drop_orphans();
  // All records that make this state, up to StartRecord; unlinked nodes too,
  // for as long as the kernel knows them, records about them may follow.
  void snapshot(const std::function<Status(Record)>& sink,
                Status& result) const;
  // Nodes without a name after a rollback: they are not in the generation that
  // it starts, and are written before the first record that speaks of them.
  void set_unwritten(bool unwritten);
  bool has_unwritten() const { return has_unwritten_; }
  std::vector<Record> unwritten_in(std::span<const Record> records) const;
  void set_written(const Record& node);
  // Called for each segment range that a change took out of use.
  void on_dead(DeadSink sink) { dead_ = std::move(sink); }
  void set_generation(uint32_t generation) { generation_ = generation; }
  // The held node at a path of the draft and which of its links that is.
  const Held* find_path(const RelPath& path, size_t* link) const;

  // From the next mark on, keeps how things were at marks, within bounds
  // (fs/past.h), so that going back costs what changed since.
  void remember();
  bool can_go_back(Position to) const;
  struct WentBack {
    std::vector<Serial> changed;   // there before and after, or only after
    std::vector<Serial> returned;  // the same, of content that did not change
    std::vector<Serial> vanished;  // left without a name, or dropped
    std::vector<std::pair<Serial, std::string>> names;  // by directory
  };
  // The state at the mark `to` goes on as the present, as succeed() says. What
  // is not in it and `is_known` stays as an unlinked node.
  WentBack go_back(Position to, const std::function<bool(Serial)>& is_known);
  // A body that the past has as well becomes one of its own.
  void own_body(Serial serial);
  // What the past no longer needs, to be freed where nobody waits; null: none.
  std::shared_ptr<void> take_let_go();

 private:
  Status on(const OpenRecord& r);
  Status on(const AdoptRecord& r);
  Status on(const CreateRecord& r);
  Status on(const LinkRecord& r);
  Status on(const UnlinkRecord& r);
  Status on(const RenameRecord& r);
  Status on(const SetAttrRecord& r);
  Status on(const XattrRecord& r);
  Status on(const TakeRecord& r);
  Status on(const ExtentRecord& r);
  Status on(const TruncateRecord& r);
  void note_range(uint32_t segment, uint64_t end);
  Status on(const TouchRecord& r);
  Status on(const PinRecord& r);
  Status on(const SealRecord& r);
  Status on(const MarkRecord& r);
  Status on(const BaseMapRecord& r);
  Status on(const DropRecord& r);
  Status on(const DriftRecord& r);
  Status on(const NodeRecord& r);
  Status on(const GoneRecord& r);
  Status on(const DeletedRecord& r);
  Status on(const TableRecord& r);
  Status on(const StartRecord& r);
  Status on(const ReleaseRecord& r);
  Status on(const RefusedRecord& r);
  Status on(const DeviceRecord& r);
  Status on(const FromRecord& r);
  Status on(const OlderRecord& r);
  Status on(const ToldRecord& r);
  TableRecord table() const;

  // For changing it.
  Held* edit(Serial serial);
  Held* edit_path(const RelPath& path, size_t* link);
  // All changes of these tables but those of a base map go through here, so
  // that the past can be kept.
  void set_name(Held& dir, const std::string& name,
                std::optional<Serial> serial);
  void set_deleted(const std::string& path, std::optional<Deleted> deleted);
  void set_identity(const Identity& identity, Serial serial);
  void set_ino(uint64_t ino, Serial serial);
  void forget_command();
  // fs/state_past.cc
  struct Target;
  using Targets = std::unordered_map<Serial, Target>;
  Targets targets_of(Position to) const;
  void restore_tables(Position to);
  void vanish(Serial serial, bool is_known, const std::string& origin,
              WentBack& out);
  FileBody& own_body(Held& node);
  void count_dead(Held& node);
  void weigh_parted(FileBody& body);
  void restore_node(Serial serial, const Target& target, WentBack& out);

  Result<Held*> need(Serial serial);
  Result<Held*> need_dir(Serial serial);
  // A directory that names can be put into: not a removed one.
  Result<Held*> need_place(Serial serial);
  Result<Held*> need_body(Serial serial);
  Held& add(Serial serial, mode_t mode, uint64_t ino);
  void remove(Serial serial);
  void touch(Held& node);
  void touch_dir(Held& dir, const timespec& time);
  void index(const Held& node);
  void unindex(const Held& node);
  void pin_lower_path(Held& node);
  void note_deleted(const std::string& path, Deleted deleted);
  void delete_link(Held& node, size_t link, const timespec& time);
  void attach(Held& node, Held& dir, Link link);
  Link detach(Held& node, size_t link);
  Status replace(Held& dir, const std::string& name,
                 const std::optional<sys::Stat>& lower,
                 const std::string& target, const timespec& time);
  Status exchange(const RenameRecord& r);
  void counted(const Extent& dead);
  Status wire_snapshot();
  // fs/state_base.cc, fs/state_base_links.cc
  // Held directories by the place of their base, what the draft moved by where
  // it came from, and files by the name at which their base is read.
  struct BaseIndex {
    std::unordered_map<std::string, Serial> dirs;
    std::unordered_multimap<std::string, Serial> moved, read_at;
    // Nodes in a directory that the draft moved, by the place of their base.
    std::unordered_map<std::string, Serial> carried;
    std::unordered_map<std::string, Identity> committed;  // what stands now
  };
  BaseIndex base_index(const BaseMapRecord& r) const;
  void rebase(const BaseMapRecord& r);
  std::set<const BaseChange*> remove_beneath_moves(const BaseMapRecord& r,
                                                   BaseIndex& index);
  bool base_moves(const BaseMapRecord& r, BaseIndex& index);
  void settle_moves();
  void drop_agreed(const BaseChange& change, Position reviewed);
  void leave_discarded(const BaseChange& change, Position reviewed,
                       const BaseIndex& index);
  void show_again(const BaseChange& change, Position reviewed,
                  const BaseIndex& index);
  void show_times(const BaseMapRecord& r);
  void add_told(CommitId commit);
  void base_removed(const BaseChange& change, BaseIndex& index);
  void follow_base(Held& node, Held& dir, std::string_view name);
  void lose_base(Held& node, const Held& dir, const BaseChange& change);
  void base_of_top(const BaseChange& change, Position reviewed);
  void base_stands(const BaseChange& change, Position reviewed,
                   const BaseIndex& known);
  bool leave_group(Held& node, size_t at, Held& dir, const BaseIndex& index);
  bool part_from_group(Held& node, size_t at, const BaseChange& change,
                       const BaseIndex& index);
  static void stand_on(Held& node, const sys::Stat& base);
  void exchange_base(Held& node, const sys::Stat& base);
  bool base_under_move(const BaseChange& change, const BaseIndex& known);
  bool is_carried(const Held& node) const;
  void base_of_carried(const BaseChange& change, const BaseIndex& known);
  void orphan_moved(const BaseChange& change, const BaseIndex& index);
  void read_elsewhere(const BaseChange& change, const BaseIndex& index);
  std::map<std::string, Deleted> left_behind(const BaseMapRecord& r);
  bool is_gone(const std::string& path, const BaseIndex& index) const;
  // Around every change of a node's attributes, target or links.
  void uncount_beside(const Held& node);
  void count_beside(const Held& node);
  // After its content became other ranges; it had `before` beyond the first.
  void recount_ranges(const Held& node, uint64_t before);
  void own_wholly(Held& node);
  void own_alone(Held& node);
  void still_to_go(const Held& node, const std::string& origin);

  std::unordered_map<Serial, std::unique_ptr<Held>> nodes_;
  std::map<std::string, Deleted> deleted_;
  std::unordered_map<Identity, Serial, IdentityHash> identities_;
  std::unordered_map<uint64_t, Serial> inos_;
  SealTable seals_;
  std::vector<Mark> marks_;
  Serial next_serial_ = kRootSerial + 1;
  uint64_t next_ino_ = 1;
  uint32_t epoch_ = 1;
  uint32_t command_ = 0;
  uint32_t next_mark_ = 1;
  uint32_t next_segment_ = 1;
  uint64_t segment_end_ = 0;
  uint32_t generation_ = 1;
  Position position_ = 0;
  uint64_t live_bytes_ = 0;
  Beside beside_;
  dev_t device_ = 0;
  DeadSink dead_;
  // Since the last command began (`since_`; 0: none runs).
  Position since_ = 0;
  Serial since_serial_ = 0;            // later ones were made since
  std::vector<Serial> recent_;         // touched, some twice, some gone
  size_t recent_most_ = kRecentLeast;  // then those that are gone are let go
  static constexpr size_t kRecentLeast = 4096;
  // Names that were taken away, by directory.
  std::vector<std::pair<Serial, std::string>> recent_gone_;
  // The records so far of a base map that has more.
  std::vector<BaseChange> base_changes_;
  CommitId telling_ = 0;  // whose base map follows; 0: not known
  std::vector<CommitId> told_;
  std::unique_ptr<Past> past_;  // null: nothing is kept
  bool has_unwritten_ = false;
  // Of the record being applied.
  Position now_ = 0;
  uint32_t by_ = 0;
};

std::string join_path(std::string_view parent, std::string_view name);

}  // namespace stoplog::fs
