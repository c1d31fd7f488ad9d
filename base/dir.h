// SPDX-License-Identifier: Apache-2.0
// Dir: the entries of a directory, by fd, without "." and "..".
//
//   Dir dir = TRY(Dir::open(parent.get(), "src"));
//   while (const Dir::Entry* entry = TRY(dir.next())) use(entry->name);
//
// An entry is valid until the next call of next(). Names come in the kernel's
// order and are hostile bytes. Memory is one block of 32 KiB whatever the
// directory's size; list_names() is for directories that are known to be small
// or that must be sorted. Move-only; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog {

class Dir {
 public:
  struct Entry {
    std::string_view name;
    uint64_t ino = 0;
    unsigned char type = 0;  // DT_*; DT_UNKNOWN where the file system has none
  };

  // `name` is one component or "." beneath `parent`; never follows a symlink.
  static Result<Dir> open(int parent, std::string_view name);
  // Takes over an fd opened with O_RDONLY|O_DIRECTORY.
  static Dir from(Fd fd);

  Result<const Entry*> next();  // nullptr at the end
  Status rewind();
  int fd() const { return fd_.get(); }

 private:
  explicit Dir(Fd fd);
  Fd fd_;
  std::unique_ptr<std::byte[]> block_;
  size_t used_ = 0;
  size_t at_ = 0;
  Entry entry_;
};

// All names, sorted by bytes.
Result<std::vector<std::string>> list_names(int parent, std::string_view name);

// Removes `name` and all beneath it, fd-relative, never following a symlink and
// never crossing into another mount (EXDEV). An absent name is success.
// Directories without permission bits are opened up first. However deep the
// tree, it holds few fds: what lies too deep is moved up and removed there.
Status remove_tree(int parent, std::string_view name);

}  // namespace stoplog
