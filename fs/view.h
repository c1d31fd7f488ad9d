// SPDX-License-Identifier: Apache-2.0
// What the rooms below fs see of a draft at one position of its journal: the
// changed paths with their state before and after, readable content, and the
// unchanged rest on demand. Plain data and two small interfaces, so that diff
// and gate are tested without a mount, a journal or a daemon.
//
// A view never changes: it stands on a journal position (a mark), and later
// writes of the agent do not show in it. Views and Contents are immutable and
// may be used from several threads; a Content may outlive its view.
//
// Everything in it was written by an agent: names, targets, sizes and content
// are hostile. Reading the real tree through it never follows a symlink and
// never leaves the root.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/relpath.h"
#include "base/result.h"

namespace stoplog::fs {

// The content of a regular file at one moment.
class Content {
 public:
  virtual ~Content() = default;
  virtual uint64_t size() const = 0;
  // Fills `out` from `offset`; short only at the end. A lower file that changed
  // under us is Code::kDrift with EIO, a bad checksum is Code::kCorrupt: never
  // a mixture of old and new bytes.
  virtual Result<size_t> read(uint64_t offset,
                              std::span<std::byte> out) const = 0;
  // The ranges that are not holes, in order; one range for a dense file.
  struct Range {
    uint64_t offset;
    uint64_t length;
  };
  virtual std::vector<Range> data() const {
    return size() == 0 ? std::vector<Range>{} : std::vector<Range>{{0, size()}};
  }
};

enum class Type { kFile, kDir, kSymlink, kFifo, kSocket, kChar, kBlock };
std::string_view name_of(Type type);  // "file", "directory"

struct NodeState {
  Type type = Type::kFile;
  mode_t mode = 0;  // permission bits with setuid, setgid and sticky: 07777
  uid_t uid = 0;    // true owners on the host, translated back from the jail's
  gid_t gid = 0;
  timespec mtime{};
  dev_t rdev = 0;
  uint64_t size = 0;   // files: content; symlinks: target
  std::string target;  // symlinks
  std::map<std::string, std::string> xattrs;  // user.*, security.*, ACLs
  std::shared_ptr<const Content> content;     // files only
  // Names with the same non-zero number are hard links of one file. The number
  // means nothing outside of one view.
  uint64_t link_group = 0;
};

// One path whose state in the draft may differ from the base's. "May": the
// node was touched; whether anything really changed is for diff to find.
struct RawChange {
  RelPath path;
  // Where the node came from in the base when it was moved (known from node
  // identity, never guessed). A moved directory is one RawChange with `from`;
  // what lies beneath it, untouched, moved along and has no RawChange of its
  // own; what was touched beneath it has one, with its own `from`.
  std::optional<RelPath> from;
  // State of the base as the draft saw it, at `from` or `path`. Absent: the
  // draft created it (or something else stands at the path now).
  std::optional<NodeState> before;
  // Absent: deleted. A deleted directory has one RawChange for itself and one
  // for each path deleted beneath it.
  std::optional<NodeState> after;
  uint32_t command = 0;  // the last command of the timeline that touched it
  // Set when the real tree no longer is what the draft saw here: a sentence
  // for a person ("modified in the real tree at 12:04:11").
  std::optional<std::string> drift;
  // The lower file has more links than the names that the draft has seen: a
  // commit of this change detaches it from the others.
  bool detaches_links = false;
  // A file without content of its own whose base is another by now: both sides
  // have the content that stands there, for what the draft saw was not kept.
  bool follows = false;
  // `before` and `after` are two nodes: one was put in the place of the other.
  bool replaced = false;
  // A directory whose path is too long for what lies beneath it to be told: how
  // many names that may have changed there. They stay held whatever is
  // committed.
  uint64_t too_deep = 0;
};

struct DirEntry {
  std::string name;
  Type type;
};

class View {
 public:
  virtual ~View() = default;
  // Sorted by path; a rename appears at its new path only.
  virtual Result<std::vector<RawChange>> changes() const = 0;
  // The same, one by one, and without holding them all where the view can do
  // it: 100,000 of them are 50 MB. An error of `visit` ends it.
  virtual Status each_change(
      const std::function<Status(RawChange)>& visit) const {
    for (RawChange& change : TRY(changes())) TRY(visit(std::move(change)));
    return {};
  }
  // The same as far as it is known without a look at the real tree, which for
  // 100,000 of them takes a second: the base as the draft saw it, without its
  // extended attributes, and no drift. False: not here, and nothing was told.
  virtual Result<bool> each_known(
      const std::function<Status(RawChange)>&) const {
    return false;
  }
  // One of those that each_known() told, looked at as each_change() does.
  virtual Result<RawChange> look_at(const RelPath& path) const {
    return fail_errno(ENOENT, "{}", path.str());
  }
  // The draft's tree as the agent saw it, masks and hides aside: absent is
  // nullopt, a directory's list is sorted by name.
  virtual Result<std::optional<NodeState>> draft_state(
      const RelPath& path) const = 0;
  virtual Result<std::vector<DirEntry>> draft_list(
      const RelPath& path) const = 0;
  // The real tree as it is now.
  virtual Result<std::optional<NodeState>> real_state(
      const RelPath& path) const = 0;
  virtual Result<std::vector<DirEntry>> real_list(
      const RelPath& path) const = 0;
};

// The same interface over two plain directories, for tests and for comparing
// with git: `before` is the base, `after` the draft. Renames are not known
// (everything is a deletion and a creation) unless named in `moved`
// (new path -> old path). Borrowed fds must outlive it.
std::unique_ptr<View> view_of_directories(
    int before, int after, std::map<std::string, std::string> moved = {});

// State of one path beneath a directory fd, and a Content that reads it (the
// fd is kept open; changes of size or mtime while reading are kDrift).
Result<std::optional<NodeState>> state_beneath(int root, const RelPath& path);
// Sorted names of a directory beneath `root`.
Result<std::vector<DirEntry>> list_beneath(int root, const RelPath& path);

}  // namespace stoplog::fs
