// SPDX-License-Identifier: Apache-2.0
// States and contents of the real tree, as fs/view.h hands them out. A
// RealContent stands on one file at one moment: it is opened when read, by
// path beneath the root, and every read checks identity, size and mtime after
// the bytes are there, so old and new bytes are never mixed unseen.
#pragma once

#include <memory>

#include "base/sys_file.h"
#include "fs/beneath.h"
#include "fs/fd_cache.h"
#include "fs/view.h"

namespace stoplog::fs {

// A root directory that contents may outlive: shared, closed with the last.
using SharedRoot = std::shared_ptr<const Fd>;
Result<SharedRoot> share_root(int root);

class RealContent : public Content {
 public:
  // `cache` key of this file; contents are opened through one bounded cache.
  RealContent(SharedRoot root, std::string path, const sys::Stat& st);
  ~RealContent() override;
  uint64_t size() const override { return print_.size; }
  Result<size_t> read(uint64_t offset, std::span<std::byte> out) const override;
  std::vector<Range> data() const override;

 private:
  Result<FdHandle> handle() const;
  SharedRoot root_;
  std::string path_;
  Identity identity_;
  Fingerprint print_;
  uint64_t key_;
};

Type type_of(mode_t mode);
mode_t mode_of(Type type);  // S_IFMT bits
// Attributes alone; `xattrs`, `target` and `content` are left empty.
NodeState plain_state(const sys::Stat& st);
// True for the extended attributes that a draft holds and a commit carries.
bool is_kept_xattr(std::string_view name);
// All kept xattrs of what an O_PATH fd stands for.
Result<std::map<std::string, std::string>> read_xattrs(int path_fd);
Result<std::optional<NodeState>> real_state_at(const SharedRoot& root,
                                               const RelPath& path);

}  // namespace stoplog::fs
