// SPDX-License-Identifier: Apache-2.0
// The change set: what a draft really changed, net, by content.
//
//   ChangeSet set = TRY(build_change_set(view, options));
//   for (size_t i : display_order(set)) show(set.changes[i]);
//
// Touched, rewritten with the same bytes, created and deleted again, renamed
// and back: none of these is a change. The cost follows what the view lists,
// never the size of the tree. Contents are streamed: memory follows the number
// of changes, not their size.
//
// A ChangeSet is plain data and owns everything in it; contents are read
// through the shared Content handles. Building uses a few threads of its own
// and returns when they are done. Errors are those of reading the view: a base
// file that moved under us is Code::kDrift.
//
// Everything in it was written by an agent and is hostile: escape before
// printing (the renderers do).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/relpath.h"
#include "base/result.h"
#include "fs/view.h"

namespace stoplog::diff {

// Where patches and listings go, piece by piece.
using Sink = std::function<void(std::string_view)>;
// Called now and then, on the calling thread, with how many changes are done
// and how many there are. False: nobody reads on, the rest may be left out.
using Progress = std::function<bool(size_t, size_t)>;

enum class Kind { kAdded, kModified, kDeleted, kRenamed, kMode, kType };
enum class Level { kInfo, kWarn, kDanger };

struct Risk {
  Level level = Level::kInfo;
  std::string code;     // "git-hook"; stable, see diff/risk.h
  std::string message;  // one line for a person; may quote hostile bytes
  uint32_t line = 0;    // of the new text, from 1; 0: none, or not known
  bool operator==(const Risk&) const = default;
};

struct GitChange;  // diff/git_meta.h
struct Edit;       // diff/hunks.h

struct Change {
  RelPath path;  // for a deletion, where it was in the base
  std::optional<RelPath> from;
  Kind kind = Kind::kModified;
  // kRenamed and kType may change content, mode or both as well.
  std::optional<fs::NodeState> before;
  std::optional<fs::NodeState> after;
  bool content_changed = false;  // bytes or link target
  bool mode_changed = false;     // mode, owner or extended attributes

  // Of file content or link target (diff/content_hash.h); nullopt for other
  // types, for an absent side, and where DiffOptions left hashing out. XXH3 is
  // for finding, SHA-256 is what approvals and commits are bound by.
  std::optional<Hash128> old_hash, new_hash;
  std::optional<Sha256Digest> old_sha256, new_sha256;

  bool binary = false;
  // Too large for a line diff: shown as such, a binary literal in the patch.
  bool too_large = false;
  // Unset for what has no lines (binary, too large, not a regular file).
  std::optional<uint64_t> lines_added, lines_deleted;
  // The edits of two texts, when they were looked for and are few: whoever
  // compares them again need not search (diff_texts() checks).
  std::shared_ptr<const std::vector<Edit>> edits;

  uint32_t command = 0;  // of the timeline; 0: unknown
  bool ignored = false;  // by the base's .gitignore rules
  std::optional<std::string> drift;
  // What the draft wrote stood on bytes of the real tree that are gone: a
  // change, whatever it compares to.
  bool is_lost = false;
  // What the draft saw of the base is gone from the real tree and was not kept:
  // the hash of the old side is another's. Who decided before knows the true
  // one (gate::as_decided).
  bool base_lost = false;
  bool follows = false;  // see fs::RawChange; base_lost then
  bool detaches_links = false;
  bool replaced = false;  // see fs::RawChange
  uint64_t too_deep = 0;  // see fs::RawChange
  // A directory that stands where the base had another one, and where the draft
  // moved it from: its content is told name by name, and committed at once.
  std::optional<RelPath> merges;
  // A path that shares its inode in the draft: one of ChangeSet::unchanged,
  // else the first in order among the changes; unset when this is it or there
  // is no other.
  std::optional<RelPath> link_to;
  std::vector<Risk> risks;  // gravest first
  // Set for the one row that stands for a git directory (".git/"): what moved
  // inside it and the plain changes that make it up.
  std::shared_ptr<const GitChange> git;

  Level level() const;  // gravest risk; kInfo when there is none
  bool is_danger() const { return level() == Level::kDanger; }
  bool is_deletion() const { return kind == Kind::kDeleted; }
  // A directory that moved with all beneath it: one row, see for_each_moved().
  bool is_moved_directory() const;
  uint64_t size() const;  // of the draft's side, of the base's when deleted
  // The path as shown: with a final slash for a git directory, "." for the top.
  std::string shown_path() const;
};

// Ignored files of one top directory, counted instead of listed. What was
// deleted among them, and every danger, is listed as well.
struct Group {
  std::string path;    // "node_modules/", or a file at the top
  std::string reason;  // "ignored"
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t deleted = 0;
};

struct ChangeSet {
  // SHA-256 over the canonical form (docs/FORMAT.md, "diff"); unset when
  // DiffOptions::digest is false.
  std::optional<Sha256Digest> digest;
  std::vector<Change> changes;  // canonical order: by path
  // Directories that come or go only because of what changed in them. Not
  // shown; they carry the modes a commit needs. By path.
  std::vector<Change> directories;
  // Names of the base's files that are as they were, and that changes are new
  // names of (link_to). Not shown. By path.
  std::vector<Change> unchanged;
  std::vector<Group> groups;  // by path

  bool empty() const { return changes.empty(); }
  const Change* find(const RelPath& path) const;
};

// A user's own rule: raises (never lowers) the level of what the glob matches.
// Globs are those of .gitignore: "*" within a component, "**" across them, no
// slash means at any depth. Without a glob: raises what another rule found, by
// its code.
struct PolicyRule {
  std::string glob;
  Level level = Level::kDanger;
  std::string code = "policy";
  std::string message;
};

// What can be told of a draft before its contents are read, and mostly before
// the real tree is looked at: see suppose() in diff/examine.h. What is supposed
// to have changed may turn out not to have; git directories, hashes, counts,
// drift and the risks that lie in contents come with the set itself.
struct Early {
  ChangeSet set;
  // One of its changes looked at and read: as the set itself will have it,
  // unless all of them together tell more (moves that are guessed, links, risks
  // of several). Nullopt: no change after all. Any thread; the view must live.
  std::function<Result<std::optional<Change>>(const Change&)> look;
};

// Everything is on by default. For a patch alone, without lists, digest and
// risks, turn the first three off: files of different size are then not read
// before they are printed (10,000 files: a third of the time).
struct DiffOptions {
  // Hash both sides (SHA-256, XXH3) and make the digest. Without, only what is
  // needed to know whether something changed is read.
  bool digest = true;
  bool count_lines = true;
  bool risks = true;  // off: those alone that the digest needs
  // Whether ignored files are part of the digest and hashed like all others
  // (policy ignored = "commit"). When not, they are found, grouped and listed
  // where deleted or dangerous, but not read.
  bool include_ignored = false;
  // Absolute path of the real tree, where git's own repository answers what is
  // ignored, tracked and restorable. Empty: nothing is ignored, and git can
  // restore nothing.
  std::string real_root;
  std::vector<PolicyRule> rules;
  unsigned threads = 0;  // 0: as many as the machine has, at most 4
  // Of the reading; its answer means nothing, a change set is always whole.
  Progress progress;
  // Called once, on the calling thread, before any content is read.
  std::function<void(Early)> early;
  // Set by another thread: there will be no change set, but EINTR.
  const std::atomic<bool>* stop = nullptr;
};

Result<ChangeSet> build_change_set(const fs::View& view,
                                   const DiffOptions& options);

// Indices into set.changes: dangers first, then deletions, then the rest, each
// by path.
std::vector<size_t> display_order(const ChangeSet& set);

// The files and symlinks that moved along with a directory, untouched: each
// with its old path, its new path and its state, in order of the new path.
// Streams; an error of `visit` ends it.
struct Moved {
  RelPath from;
  RelPath path;
  fs::NodeState state;
};
Status for_each_moved(const fs::View& view, const ChangeSet& set,
                      const Change& directory,
                      const std::function<Status(const Moved&)>& visit);

// Takes the hashes of a change that DiffOptions left out.
Status ensure_hashes(Change& change);
// None is left out.
bool has_hashes(const Change& change);

std::string_view name_of(Kind kind);    // "added"
std::string_view name_of(Level level);  // "danger"
// "100644", "120000", "040755": type and all permission bits, in octal.
std::string mode_text(const fs::NodeState& state);

}  // namespace stoplog::diff
