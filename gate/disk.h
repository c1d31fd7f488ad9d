// SPDX-License-Identifier: Apache-2.0
// Every system call with which a commit touches a disk, behind one seam.
//
//   Disk disk;                              // the real thing
//   Disk disk([&](const char* call) { return ++n == k ? ENOSPC : 0; });
//
// The hook is called before each call; an errno other than 0 is returned
// instead of making it. Tests let the process die there, or fail there, at
// every call in turn: gate/transaction.h must leave the real tree all old or
// all new whichever it is. A large commit verifies, stages and packs on several
// threads: the hook is called by one at a time.
//
// `name` is one component, or a path within the stage, which is ours alone.
// Paths of the real tree are resolved by open_dir() only.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/relpath.h"
#include "base/result.h"
#include "base/sys_file.h"
#include "base/temp_file.h"
#include "fs/view.h"
#include "gate/fs_kind.h"
#include "gate/node.h"

namespace stoplog::gate {

// What stands at a name.
struct Standing {
  Node node;
  sys::Stat stat;
};

class Disk {
 public:
  using Hook = std::function<int(const char* call)>;
  Disk() = default;
  explicit Disk(Hook hook) : hook_(std::move(hook)) {}
  // `kind` answers for the file system beneath a directory: one that is not at
  // hand.
  using KindHook = std::function<FsKind(int dir)>;
  Disk(Hook hook, KindHook kind)
      : hook_(std::move(hook)), kind_(std::move(kind)) {}
  FsKind kind_of(int dir) const {
    return kind_ ? kind_(dir) : kind_of_dir(dir);
  }

  // A directory beneath `root`, no symlink followed anywhere, any depth.
  Result<Fd> open_dir(int root, const RelPath& path) const;
  Result<Fd> openat(int dir, const std::string& name, int flags,
                    mode_t mode = 0) const;
  Result<std::optional<sys::Stat>> statat(int dir,
                                          const std::string& name) const;
  // Everything about `name` but, with `hash` false, the content's digest. A
  // file whose content moves while it is read is read again, a few times.
  Result<std::optional<Standing>> look(int dir, const std::string& name,
                                       bool hash) const;

  // The same of an open file; `seen` must come from it.
  Result<Standing> look_open(int fd, const sys::Stat& seen) const;

  Status mkdirat(int dir, const std::string& name, mode_t mode) const;
  Status unlinkat(int dir, const std::string& name, int flags = 0) const;
  Status linkat(int from_dir, const std::string& from, int to_dir,
                const std::string& to) const;
  Status symlinkat(const std::string& target, int dir,
                   const std::string& name) const;
  Status mknodat(int dir, const std::string& name, mode_t mode,
                 dev_t dev) const;
  Status rename(int from_dir, const std::string& from, int to_dir,
                const std::string& to, unsigned flags) const;
  Status syncfs(int fd) const;
  // Writes the content, holes left out, and returns its digest.
  Result<Sha256Digest> write_content(int fd, const fs::Content& content) const;
  // Mode, owner, extended attributes and, unless null, the mtime of what an
  // O_PATH fd stands for. Owners and attributes that this user may not set are
  // named in `missed` (may be null) and left.
  Status set_attributes(int path_fd, const Node& node, const timespec* mtime,
                        std::vector<std::string>* missed) const;
  // The same for a regular file just made by us, by its own fd: nothing but
  // what `node` has needs to be set, and nothing taken off. What it is then.
  Result<sys::Stat> set_new_attributes(int fd, const Node& node,
                                       std::vector<std::string>* missed) const;
  Status set_mtime(int path_fd, const timespec& mtime) const;
  // A file that appears whole under `name`; synced unless a syncfs follows.
  Status write_file(int dir, const std::string& name, std::string_view bytes,
                    Sync sync = Sync::kYes) const;
  Status remove_tree(int dir, const std::string& name) const;
  // For calls made elsewhere (object packs).
  Status step(const char* call) const;

 private:
  Hook hook_;
  KindHook kind_;
  mutable std::mutex hook_mutex_;
};

}  // namespace stoplog::gate
