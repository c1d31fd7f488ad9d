// SPDX-License-Identifier: Apache-2.0
// The inside of Tree. Live slots are the nodes that the kernel knows; a slot
// either stands for a held node (serial) or for an untouched lower one (parent
// slot + name). What is durable is in State alone.
//
// Pattern of every change: look under the shared lock, do the system calls on
// the lower tree without any lock, then take the lock exclusively, look again,
// append the records, apply them. Who finds the world changed starts over.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "fs/closer.h"
#include "fs/fd_cache.h"
#include "fs/gc.h"
#include "fs/journal.h"
#include "fs/one_each.h"
#include "fs/ranges.h"
#include "fs/real.h"
#include "fs/replay.h"
#include "fs/ruled_links.h"
#include "fs/segments.h"
#include "fs/state.h"
#include "fs/tree.h"

namespace stoplog::fs {

using Slot = uint32_t;
using BodyPtr = std::shared_ptr<FileBody>;

// Those that hold the marks.
std::set<uint32_t> generations_of(const std::vector<Mark>& marks);

inline constexpr uint64_t kReclaimAt = 16u << 20;     // dead bytes worth a sync
inline constexpr size_t kReclaimRanges = 1u << 16;    // the same, if small
inline constexpr uint64_t kCheckpointAt = 16u << 20;  // journal bytes
// In memory whatever the quota: extended attributes and targets of symlinks in
// bytes, and ranges of files (some 100 bytes each; all are 32 GiB in pages).
inline constexpr uint64_t kMostBeside = 256u << 20;
inline constexpr uint64_t kRangeCost = 64;
inline constexpr uint64_t kMostRanges = 8u << 20;

struct Live {
  std::string name;  // untouched: in its parent
  uint64_t lookups = 0;
  uint64_t ino = 0;        // shown
  Serial serial = 0;       // 0: untouched
  uint64_t lower_ino = 0;  // identity, for untouched nodes
  dev_t dev = 0;
  timespec btime{};
  Slot parent = 0;        // untouched: the slot of its directory
  uint32_t children = 0;  // slots that have this one as parent
  // Those of them that do so by their own name, in no order.
  Slot first = 0, next = 0, before = 0;
  uint32_t generation = 0;
  mode_t type = 0;  // S_IFMT bits
  Rule rule = Rule::kNone;
  bool used = false;
  bool named = false;     // in by_name_
  bool unlinked = false;  // untouched, deleted by the draft
  bool links = false;     // lower nlink > 1
  // Of the times and size that were seen of a lower file last; 0: none. Sixteen
  // bits cost no memory here.
  uint16_t seen = 0;
};

// One name of a directory, as readdir gives it.
struct ListItem {
  uint64_t cookie = 0;
  uint64_t ino = 0;
  mode_t type = 0;
  std::string name;
};
struct Listing {
  NodeId dir = 0;
  uint64_t version = 0;
  std::vector<ListItem> items;  // by cookie
};

// A copy of what attributes need, taken under the lock.
struct NodeView {
  NodeId id = 0;
  Serial serial = 0;
  uint64_t ino = 0;
  mode_t mode = 0;  // type at least
  Rule rule = Rule::kNone;
  bool unlinked = false;
  bool links = false;
  bool has_base = false;
  bool name_held = false;
  uint8_t own = 0;
  uint32_t flags = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  dev_t rdev = 0;
  timespec atime{}, mtime{}, ctime{};
  int32_t nlink_delta = 0;
  sys::Stat base;  // held nodes with a base: as adopted
  std::string target;
  std::shared_ptr<FileBody> body;
  uint64_t size = 0, allocated = 0;  // of the body
  // Untouched: identity.
  Identity identity;
  uint64_t turn = 0;  // Impl::turns_ when it was taken
};

// What a change of attributes begins with: those that show now.
struct Attributes {
  Serial serial = 0;
  Attr attr;
  Xattrs xattrs;  // only where they were asked for
};

struct Tree::Impl {
  explicit Impl(const TreeOptions& options);
  ~Impl();
  Status open();
  void watch_dead();

  // --- slots (tree_slots.cc); all with mutex_ held ---
  Live* get(NodeId id);
  const Live* get(NodeId id) const;
  NodeId id_of(Slot slot) const;
  Slot new_slot();
  void drop_if_idle(Slot slot);
  Slot slot_of_held(const Held& node);
  Slot find_named(Slot parent, std::string_view name) const;
  Slot find_inode(const Identity& identity) const;
  // `*linked`: a node that was known already turned out to have several names,
  // or one that has a rule.
  Slot add_lower(Slot parent, std::string_view name, const sys::Stat& st,
                 bool* linked = nullptr);
  void enter(Slot slot, Slot parent);  // one more child
  void leave(Slot slot);               // one less; it is not dropped
  struct Alias {
    Slot parent;
    std::string name;
  };
  void exchange_names(Slot slot, Alias& alias);
  void unname(Slot slot);
  // Of a file with several links: one name goes, or becomes the one by which
  // its lower side is reached.
  void unname_one(Slot slot, Slot parent, std::string_view name);
  void prefer_name(Slot slot, Slot parent, std::string_view name);
  // After a rollback: untouched nodes lose the names that are not shown now.
  void check_names(std::vector<Invalidation>& out);
  // True: somebody on the host gave an untouched file a second name.
  bool note_links(Slot slot, const sys::Stat& st);
  void become_held(Slot slot, Serial serial);
  std::pair<const Held*, std::string> held_above(const Live& live) const;
  std::optional<std::string> lower_path(const Live& live) const;
  std::optional<std::string> draft_path(const Live& live) const;
  uint64_t shown_ino(const sys::Stat& st) const;
  Rule rule_for(const Live& live, std::string_view origin,
                std::string_view path) const;
  Rule rule_at(const Live& dir, std::string_view name, bool is_dir) const;
  // A file of several names, one of which may have a rule that is not known
  // here: waits until it is (fs/ruled_links.h). With no lock held.
  Status learn_links(NodeId id, const sys::Stat& st);
  Status ask_links(NodeId id);
  Rule rule_of(NodeId id) const;
  // One more name of a node. True: it is under a stricter rule from now on.
  bool obey(Slot slot, Slot parent, std::string_view name);
  Result<NodeView> view_of(NodeId id) const;

  // --- the lower side (tree_lower.cc); no lock held ---
  Result<FdHandle> lower_dir(NodeId id);
  Result<sys::Stat> lower_child(NodeId dir, const std::string& name);
  // options_.base_shows: whether what is at this path shows, being of this
  // type.
  bool base_shows(std::string_view path, mode_t mode) const;
  // The names of a directory of the base that show.
  using DirVisitor =
      std::function<void(std::string_view, unsigned char, uint64_t)>;
  Status list_lower(NodeId dir, int fd, const DirVisitor& visit);
  Result<sys::Stat> lower_stat(const NodeView& view);
  Result<sys::Stat> lower_stat_once(const NodeView& view);
  bool find_other_name(NodeId id, const Identity& identity);
  Result<Fd> lower_open(NodeId id, int flags);
  Result<FdHandle> lower_file(const NodeView& view);
  // A rollback or a commit came since the view was taken.
  bool is_overtaken(const NodeView& view) const;
  void note_drift(NodeId id, std::string what);

  // --- changes of the lower (tree_watch.cc); no lock held ---
  void drop_listing(NodeId dir);
  void tell_links(NodeId id);
  void look(NodeId dir, const std::string& name,
            std::vector<Invalidation>& out);
  void look_at_held(Serial serial, const Result<sys::Stat>& st,
                    std::vector<Invalidation>& out);
  void look_at_base(Serial serial, std::vector<Invalidation>& out);
  void look_beneath(NodeId dir, std::vector<Invalidation>& out);
  bool still_stands(NodeId dir);
  void look_at_replaced(std::vector<Invalidation>& out);
  std::set<Serial> held_in_sight() const;  // with mutex_ held
  Serial serial_of(NodeId id) const;       // takes it

  // --- holding (tree_hold.cc); no lock held ---
  Status hold(NodeId id);
  std::vector<NodeId> other_parents(NodeId id) const;
  Status revive(NodeId id);
  Result<Fd> opened_path(NodeId id);
  Status take(NodeId id);
  Result<bool> take_from(int fd, Serial serial);
  Status take_strays();
  Result<BodyPtr> body_of(NodeId id);
  // Calls `change` with the file's body. It takes that one's lock, then the
  // tree's, then asks held_with(): when a rollback has given the file other
  // content by then it is called once more, with that. Who wrote while it went
  // back wrote after it.
  template <typename Change>
  auto change_body(NodeId id, Change change)
      -> decltype(change(std::declval<const BodyPtr&>())) {
    constexpr int kTries = 16;
    for (int left = kTries;; --left) {
      BodyPtr body = TRY(body_of(id));
      auto done = change(body);
      if (done || done.error().err() != ESTALE || left == 0) return done;
    }
  }
  // With mutex_ held: ESTALE when that is not its body any more.
  Result<const Held*> held_with(NodeId id, const BodyPtr& body) const;
  // With mutex_ held: the held node behind `id`, ESTALE when there is none. A
  // serial that was read under an earlier lock may be gone.
  Result<const Held*> held_now(NodeId id) const;
  // With mutex_ held exclusively.
  Status append(std::vector<Record> records);
  Status writable() const;
  uint64_t used_bytes() const;
  bool has_room(uint64_t bytes, bool writeback) const;
  Status charge(uint64_t bytes, bool writeback) const;
  Status charge_inode() const;  // or a further name of one
  Status charge_beside(uint64_t before, uint64_t after);
  // What nobody has open any more dies with a record that says so.
  void drop_pending();
  // With mutex_ held: the last record of the journal, where that is a reader's
  // mark and young.
  const Mark* standing_barrier() const;

  // --- attributes (tree_attr.cc); no lock held ---
  // `lower`: attributes of the lower file that were just asked for, or null.
  Result<Entry> entry_of(NodeId id, const sys::Stat* lower = nullptr);
  void note_seen(NodeId id, const Attr& attr);
  Result<Attr> compose(const NodeView& view, Source& source,
                       const sys::Stat* lower = nullptr);
  Status clear_privileges(NodeId id);
  Result<Xattrs> xattrs_of(const NodeView& view);
  // Holds the node and appends what `change` makes of its attributes, which is
  // called with mutex_ held: nothing can come between what it sees and what it
  // says. Called once more when a rollback or a commit came before that lock.
  using AttrChange = std::function<Result<std::vector<Record>>(Attributes&)>;
  enum class With : uint8_t { kAttr, kXattrs };
  Status change_attributes(NodeId id, With with, const AttrChange& change);
  Status change_attributes_once(NodeId id, With with, const AttrChange& change);

  // --- names (tree_names.cc) ---
  struct NewNode {
    mode_t mode = 0;
    dev_t rdev = 0;
    std::string_view target{};
  };
  Result<Entry> create(NodeId parent, std::string_view name,
                       const NewNode& what, const Caller& caller);
  // What stands at a name, looked up without counting.
  struct Target {
    Serial held = 0;                 // 0: none
    std::optional<sys::Stat> lower;  // when the lower alone has it
    std::string lower_target;
    bool gone = false;  // deleted by the draft
    bool exists() const { return held != 0 || lower.has_value(); }
    mode_t mode = 0;
  };
  Result<Target> target_at(NodeId parent, const std::string& name);
  Result<bool> still_so(const Held& dir, const std::string& name,
                        const Target& target);
  Status inherit(const NodeView& dir, mode_t umask, CreateRecord& record);
  // --- what names that are used again hide (tree_hidden.cc); no lock held ---
  std::optional<Deleted> hidden_at(NodeId parent, const std::string& name,
                                   std::string& path) const;
  Status take_hidden(NodeId parent, const std::string& name);
  Status check_replace(NodeId new_parent, const std::string& name, mode_t mode,
                       const Target& target, const Caller& caller);
  struct Move {
    NodeId parent;
    std::string name;
    NodeId new_parent;
    std::string new_name;
    NodeId id;
    bool exchange;
  };
  Result<bool> rename_locked(const Move& move, const Target& target);
  Status remove_name(NodeId parent, std::string_view name, bool directory,
                     const Caller& caller);
  Result<bool> lower_is_empty(NodeId dir);
  Status check_change(NodeId id, const char* operation, const Caller* caller);
  Status check_name(NodeId parent, std::string_view name, bool is_dir,
                    const char* operation, const Caller& caller);
  struct At {
    NodeId dir;
    const std::string& name;
  };
  Status check_beneath(const At& from, const At& to, const Caller& caller);
  // Counts, tells the observer; the error that the rule gives.
  Error deny(std::string path, Rule rule, const char* operation, pid_t pid);
  // One counted lookup, given back at the end of a scope.
  struct Counted {
    Impl& tree;
    NodeId id;
    ~Counted() { tree.uncount(id, 1); }
  };
  void uncount(NodeId id, uint64_t count);
  // Counts a lookup.
  Result<NodeId> peek(NodeId parent, const std::string& name,
                      std::optional<sys::Stat>* lower = nullptr);
  Status release_if_replaced(NodeId parent, const std::string& name,
                             Serial serial);
  Status resize(NodeId id, uint64_t size);
  void forget_lower_name(Slot dir, std::string_view name);

  // --- listing (tree_dir.cc) ---
  Result<std::shared_ptr<const Listing>> listing(NodeId dir, bool fresh);
  void merge_held(const Held& dir, std::vector<ListItem>& items);

  // --- timeline (tree_time.cc) ---
  Status check_mark(Position at) const;
  Result<State> state_at(Position at);
  size_t commits_since(Position at) const;  // with mutex_ held
  std::optional<Mark> told_before(Position reviewed,
                                  const ToldBy& told) const;  // the same
  bool was_rolled_back(Position reviewed) const;  // with mutex_ held
  Status write_state(Journal& journal, const State& state);
  // With mutex_ held exclusively: the journal goes on in a new generation, with
  // a whole state or from an older position.
  Status start_generation(const State& state);
  Status start_from(Position at);
  Result<uint32_t> depth_of(Position at) const;
  bool goes_on_from(Position at) const;
  Result<Mark> note_rollback(Position to);
  Position nearest_like(Position to) const;  // with mutex_ held
  void become(State next, std::vector<Invalidation>& out);
  void go_back(Position to, bool names_at_once, std::vector<Invalidation>& out);
  void tell_went_back(const State::WentBack& what, bool names_at_once,
                      std::vector<Invalidation>& out);
  // All of what was written so far, with no lock held. Also ahead of what syncs
  // with the tree's lock: the others wait for what came since, and no more.
  Status sync();
  Status fork_whole(int to_dir, const OpenRecord& open, Position at);
  Status keep_young_journal();
  Status checkpoint();
  void tell_name(const RelPath& path, std::vector<Invalidation>& out);
  // fs/tree_gc.cc
  Result<GcReport> gc(const GcPolicy& policy);
  Result<GcReport> gc_locked(const GcPolicy& policy);
  Status gc_if_due();
  Result<bool> has_outgrown();
  bool has_aged();
  bool has_crumbs();
  Result<std::set<Position>> choose_marks(const std::vector<Mark>& marks,
                                          const GcPolicy& policy,
                                          Position until);
  Result<uint64_t> drop_generations();
  Status free_segments(const RangeSet& needed, uint32_t last, bool dry_run,
                       GcReport& report);
  // fs/tree_restore.cc
  Status restore_replaced(State& state, Position at);
  Result<SegmentRange> store_object(const Sha256Digest& digest, uint64_t size);

  // --- content (tree_io.cc) ---
  Result<uint64_t> seek_body(const FileBody& body, NodeView view,
                             uint64_t offset, int whence);
  Status read_pieces(const FileBody& body, NodeId id, uint64_t offset,
                     std::span<std::byte> out);
  Result<size_t> read_once(NodeId node, uint64_t offset,
                           std::span<std::byte> out);
  Status read_segment(uint32_t segment, uint64_t at, std::span<std::byte> out,
                      bool check);
  Status check_seals(uint32_t segment, uint64_t at, size_t length);
  Result<size_t> write_to(const BodyPtr& body, NodeId node, uint64_t offset,
                          std::span<const std::byte> data, WriteFlags flags);
  Result<std::vector<Record>> allocation(const Held& held, int mode,
                                         uint64_t offset,
                                         uint64_t length) const;
  Status write_in_place(FileBody& body, uint64_t offset,
                        std::span<const std::byte> data, bool& done);

  TreeOptions options_;
  Fd draft_dir_;
  SharedRoot base_;
  sys::Stat base_stat_;
  std::atomic<Observer*> observer_{nullptr};
  std::vector<std::string> notes_;
  // The journal is damaged. There is no journal_ then, but these.
  std::atomic<bool> read_only_{false};
  OpenRecord damaged_open_;
  Position damaged_end_ = 0;
  uint64_t cookie_seed_ = 0;
  std::unique_ptr<Segments> segments_;
  bool base_is_local_ = false;  // close(2) there never hangs
  Closer closer_;
  FdCache dir_fds_{256};  // O_PATH: closing these asks nobody
  std::unique_ptr<RuledLinks> ruled_links_;  // null: there are no rules
  FdCache file_fds_{256};
  // Order: pin_mutex_ > work_mutex_ > take_ > FileBody::io > epoch_ > mutex_ >
  // leaves.
  OneEach take_;             // first content of a file, by its node
  std::shared_mutex epoch_;  // shared: writing in place; exclusive: a mark

  mutable std::shared_mutex mutex_;
  // By mutex_:
  State state_;
  std::shared_ptr<Journal> journal_;
  uint64_t turns_ = 0;  // how often it went back, or got another base
  std::deque<Live> slots_;
  std::vector<Slot> free_;
  std::unordered_multimap<uint64_t, Slot> by_name_;
  std::unordered_map<Serial, Slot> by_serial_;
  // Untouched nodes but directories, one of each identity: any of them can get
  // a second name on the host.
  std::unordered_multimap<uint64_t, Slot> by_inode_;
  // Further names of an untouched file with several links.
  std::unordered_multimap<Slot, Alias> aliases_;
  // Commands that run now, as they began. What is written while none does is
  // somebody's at the mount.
  std::vector<uint32_t> running_;
  uint32_t command_now() const {
    return running_.empty() ? 0 : running_.back();
  }
  std::vector<Serial> pending_drops_;
  uint64_t older_bytes_ =
      0;  // of generations that the present one goes on from
  Quota quota_;
  std::unordered_set<Serial> unpinned_;
  std::unordered_set<Serial> unsealed_;  // files with ranges without a seal
  // Ranges that died before any mark saw them, to be given back.
  std::vector<SegmentRange> dead_;
  uint64_t dead_bytes_ = 0;
  std::atomic<uint64_t> reclaims_ = 0;  // how often any were
  uint64_t crumbs_ = 0;  // dead and not given back; by work_mutex_
  uint64_t name_memory_ = 0;

  // --- slow work (tree_pool.cc); no lock held ---
  void start_pool();
  void stop_pool();
  void wake_pool();
  enum class Seal : uint8_t { kNow, kLater };
  // Whether copies of the real tree's files may go beyond the quota.
  enum class PinRoom : uint8_t { kQuota, kAny };
  // Everything that is queued.
  Status work(Seal when, PinRoom room);
  // kLower: only what stands on lower bytes. kBase: whatever has no copy of its
  // base yet.
  enum class PinWhat { kLower, kBase };
  Status pin(Serial serial, PinWhat what, PinRoom room);
  Status pin_all(PinRoom room);
  void pin_bases(std::span<const BaseChange> changes);
  Status fill_pin(int from, const sys::Stat& st, const Segments::Whole& to);
  Status seal();  // tree_seal.cc
  bool unsealed_in(const ExtentList& list, ExtentList::Place& at,
                   uint32_t epoch, std::vector<SegmentRange>& out) const;
  std::vector<SegmentRange> unsealed_ranges();
  Status reclaim(bool all);
  bool is_checkpoint_due() const;
  Status checkpoint_if_due();
  std::thread pool_;
  std::mutex pool_mutex_;  // a leaf
  std::condition_variable pool_wake_;
  bool pool_stop_ = false, pool_work_ = false;  // by pool_mutex_
  std::mutex pin_mutex_;  // one copy at a time; before all others
  // One at a time of what must not meet: sealing, giving back, gc, rollback,
  // fork. Before all others but pin_mutex_.
  std::mutex work_mutex_;
  std::unique_ptr<GcPolicy> history_;      // by work_mutex_
  uint64_t gc_at_ = 0;                     // by work_mutex_
  int64_t aged_at_ = 0;                    // by work_mutex_; seconds
  std::mutex verified_mutex_;              // a leaf
  std::unordered_set<uint64_t> verified_;  // seals that were checked

  std::atomic<uint64_t> denials_{0};
  std::atomic<uint64_t> hidden_bytes_{0};  // taken by take_hidden()
  std::atomic<uint64_t> read_bytes_{0}, written_bytes_{0};
  mutable std::atomic<uint64_t> refused_bytes_{0}, refused_nodes_{0};
  std::mutex listings_mutex_;  // a leaf
  std::deque<std::shared_ptr<const Listing>> listings_;
};

uint64_t name_key(Slot parent, std::string_view name);
size_t size_of(const Xattrs& xattrs);  // names and values
// For Live::seen.
uint16_t seen_of(const timespec& mtime, const timespec& ctime, uint64_t size);

}  // namespace stoplog::fs
