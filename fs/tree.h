// SPDX-License-Identifier: Apache-2.0
// Tree: the draft's file system, free of FUSE. The mount layer translates
// requests to it one to one; tests drive it directly.
//
//   auto tree = TRY(Tree::open({.draft_dir = dfd, .base = bfd}));
//   Entry e = TRY(tree->lookup(kRootId, "src", caller));
//   tree->forget(e.id, 1);
//
// Lookups. Every Entry handed out (lookup, mknod, mkdir, symlink, link,
// readdir_plus) counts one lookup, as FUSE counts; forget() takes them back. A
// node without lookups, names or held changes is dropped. An unlinked node
// lives until its last forget.
//
// Failure. Errors carry the errno of the call that a local file system would
// give; a lower file that changed under its extents is EIO with Code::kDrift,
// a failed checksum EIO with Code::kCorrupt. After a failed append to the
// journal the operation has not happened. A journal damaged in the middle, or
// with a record that cannot be applied, opens read-only: what is left can be
// read, every change is EROFS, recovery_notes() say what is lost. A rollback to
// a mark before the damage makes it writable again.
//
// Durability. When a call has returned, its record and data are in the page
// cache: killing the process loses nothing. fsync() makes them durable.
//
// Permissions are the kernel's work (default_permissions); here is what it
// leaves to a file system: owner, group and mode of new nodes (setgid
// directory, umask, default ACL), sticky deletion, clearing of setuid, times.
//
// Threads. Every method may be called from any thread. Lock order: node I/O
// lock (content of one file) > tree lock (names, attributes) > leaf locks
// (journal, segments, lower fds). System calls on the lower tree and on
// segments run outside of the tree lock: a hung lower file hangs its own
// requests alone. The observer is called with no lock held.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fs/told.h"
#include "fs/tree_types.h"

namespace stoplog::fs {

struct GcPolicy;  // fs/gc.h
struct GcReport;

// What the draft sees of a path of the base: nothing, the directory there (and
// what is shown beneath it), or whatever is there.
enum class Shown : uint8_t { kNothing, kDirectory, kAll };

struct TreeOptions {
  int draft_dir = -1;  // borrowed during open(); duplicated
  int base = -1;       // the workspace's root, opened before any mount; ditto
  const PathRules* rules = nullptr;  // may be null; outlives the tree
  Observer* observer = nullptr;      // may be null; outlives the tree
  // Null: everything shows. What does not is as if it were not there, and may
  // be made in the draft. Pure; from any thread.
  std::function<Shown(std::string_view path)> base_shows{};
  Quota quota{};
  // Files up to this size are taken whole at their first write.
  uint64_t take_whole = 1u << 20;
  // Runs the slow pool (pinning, sealing) after start(). Off in tests that
  // count.
  bool background = true;
  // What commits replaced; needed for rolling back past one.
  ObjectSource objects{};
};

class Tree {
 public:
  // Opens or creates the journal beneath draft_dir and replays it. The caller
  // holds the draft's lock. `say` lines tell what a recovery did.
  static Result<std::unique_ptr<Tree>> open(const TreeOptions& options);
  // Waits for the slow pool to pin what is unpinned, then closes.
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  // Starts the slow pool's thread; open() starts none, so that a process that
  // still forks others does so alone.
  void start();
  // The mount ends: who waits for a walk of the real tree, or would, gets EIO.
  void end_waits();
  // What replay had to do or could not: empty when all was well.
  std::vector<std::string> recovery_notes() const;
  bool read_only() const;
  void set_observer(Observer* observer);  // before the first request

  // --- names -------------------------------------------------------------
  Result<Entry> lookup(NodeId parent, std::string_view name);
  // The parent of a directory, with a lookup counted (NFS, "..").
  Result<Entry> lookup_parent(NodeId dir);
  void forget(NodeId node, uint64_t count);
  // mode has the type bits; regular files, FIFOs, sockets and (as the kernel
  // permits) devices. No lookup of an absent name is needed before.
  Result<Entry> mknod(NodeId parent, std::string_view name, mode_t mode,
                      dev_t rdev, const Caller& caller);
  Result<Entry> mkdir(NodeId parent, std::string_view name, mode_t mode,
                      const Caller& caller);
  Result<Entry> symlink(NodeId parent, std::string_view name,
                        std::string_view target, const Caller& caller);
  Result<Entry> link(NodeId node, NodeId new_parent, std::string_view name,
                     const Caller& caller);
  // An unlinked regular file (O_TMPFILE); link() can give it a name.
  Result<Entry> tmpfile(NodeId parent, mode_t mode, const Caller& caller);
  Status unlink(NodeId parent, std::string_view name, const Caller& caller);
  Status rmdir(NodeId parent, std::string_view name, const Caller& caller);
  // flags: 0, RENAME_NOREPLACE or RENAME_EXCHANGE; others are EINVAL.
  Status rename(NodeId parent, std::string_view name, NodeId new_parent,
                std::string_view new_name, unsigned flags,
                const Caller& caller);
  // Stateless: `cookie` 0 starts, the cookie of an item resumes after it, also
  // after changes, eviction and remount. "." and ".." come first. The sink is
  // called without a lock.
  Status readdir(NodeId dir, uint64_t cookie, const DirSink& sink);
  // Each item the sink took holds a lookup of its entry (not "." and "..");
  // when the kernel refuses the reply, give them back with forget().
  Status readdir_plus(NodeId dir, uint64_t cookie, const DirSink& sink);

  // --- one node ----------------------------------------------------------
  Result<Entry> getattr(NodeId node);  // counts no lookup
  Result<Entry> setattr(NodeId node, const SetAttr& set, const Caller& caller);
  Result<std::string> readlink(NodeId node);
  // Fills `out` from `offset`; short only at the end of the file.
  Result<size_t> read(NodeId node, uint64_t offset, std::span<std::byte> out);
  Result<size_t> write(NodeId node, uint64_t offset,
                       std::span<const std::byte> data, WriteFlags flags);
  // mode: FALLOC_FL_KEEP_SIZE, PUNCH_HOLE (with KEEP_SIZE), ZERO_RANGE (with
  // or without KEEP_SIZE), 0. Others are EOPNOTSUPP.
  Status fallocate(NodeId node, int mode, uint64_t offset, uint64_t length,
                   WriteFlags flags = {});
  // whence: SEEK_DATA or SEEK_HOLE.
  Result<uint64_t> lseek(NodeId node, uint64_t offset, int whence);
  Result<size_t> copy_range(NodeId from, uint64_t from_offset, NodeId to,
                            uint64_t to_offset, uint64_t length,
                            WriteFlags flags = {});
  Result<std::string> getxattr(NodeId node, std::string_view name);
  Result<std::vector<std::string>> listxattr(NodeId node);
  // flags: 0, XATTR_CREATE, XATTR_REPLACE. POSIX ACLs change the mode along.
  Status setxattr(NodeId node, std::string_view name, std::string_view value,
                  int flags, const Caller& caller);
  Status removexattr(NodeId node, std::string_view name);
  // The quota where there is one, else the file system that holds the draft.
  Result<struct statvfs> statfs();
  // All data written so far, then the journal: durable on return. (One file
  // cannot be synced alone: its record would carry others of which the data
  // is not yet durable.)
  Status fsync();

  // --- lower side --------------------------------------------------------
  // Where a node's live lower side stands; absent for nodes without one.
  std::optional<LowerRef> lower_ref(NodeId node);
  // Called by the watch when an event named `name` in the lower directory of
  // `dir` (empty: the directory itself, or anything in it). Looks, drops what
  // is no longer so, notes drift, tells the observer what to invalidate.
  void lower_changed(NodeId dir, std::string_view name);
  // Everything may have changed (the event queue overflowed).
  void lower_changed_everywhere();

  // --- timeline ----------------------------------------------------------
  // O(1). Everything that returned before is in; `command` is also noted on
  // what is touched between its kCommandBegin and its kCommandEnd.
  Result<Mark> mark(MarkKind kind, uint32_t command, std::string_view name);
  std::vector<Mark> marks() const;
  Position position() const;
  // The tree of a mark, as one more point of the timeline: what stood before
  // stays reachable by its marks. The observer is told everything that
  // differs. Ids stay valid; those that are gone behave as unlinked. EINVAL
  // when no mark has this position. What commits since replaced in the real
  // tree becomes a held change.
  Result<Mark> rollback(Position to);
  // After a commit of the change set at `reviewed`: what was committed and not
  // touched since is clean lower again (its inode number kept), what was
  // touched since stays held over the new base. Call settle() before the
  // commit, so that no held file stands on lower bytes that it replaces. What
  // was told before, by the same id, changes nothing, however often it is told.
  Result<Mark> commit_base(Position reviewed,
                           std::span<const BaseChange> changes,
                           const ToldBy& told = {});
  // A new generation of the journal that starts with the present state. Done
  // by itself too, when dead records exceed half.
  Status checkpoint();
  // Hard-links the segments into `to_dir` (they never change from then on) and
  // writes there a journal whose state is the one at mark position `at`. Both
  // drafts' locks are held by the caller.
  Status fork_into(int to_dir, Position at);

  // --- upkeep ------------------------------------------------------------
  void set_quota(const Quota& quota);
  Stats stats() const;
  // Paths of large files that still stand on lower extents.
  std::vector<RelPath> unpinned() const;
  // Forgets marks by `policy` and gives back what nothing needs any more; other
  // calls go on beside it.
  Result<GcReport> gc(const GcPolicy& policy);
  // The policy by which the slow pool does so by itself.
  void set_history(const GcPolicy& policy);
  // Files and directories that changed since the last command began, what it
  // made and removed again left out.
  uint64_t changed_by_command() const;
  // After ENOSPC: gives back what died since, so that it may be tried once
  // more. False: nothing did.
  bool make_room();
  // Runs queued background work (pinning, sealing, reclaiming) to its end in
  // the calling thread.
  Status settle();

  struct Impl;

 private:
  explicit Tree(std::unique_ptr<Impl> impl);
  // A denial is told only of a name that was asked for.
  Result<Entry> look(NodeId parent, std::string_view name, bool asked);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoplog::fs
