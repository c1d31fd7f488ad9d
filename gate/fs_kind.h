// SPDX-License-Identifier: Apache-2.0
// What a file system cannot promise a commit, by its type (statfs(2)): network
// file systems, where a save from another machine is seen late and leases do
// not reach, and directories that do not tell names apart by case.
#pragma once

#include <string>
#include <string_view>

namespace stoplog::gate {

struct FsKind {
  std::string name;  // "NFS"; "type 0x1234" for one that is not in the table
  bool network = false;
  bool folds_case = false;
};
FsKind kind_of_type(long type);
// Of an open directory; ext4 and f2fs fold case by directory.
FsKind kind_of_dir(int fd);

// The names are one where case is folded: ASCII only, which is what people
// write by mistake. For a warning, not for a decision.
bool equal_but_for_case(std::string_view a, std::string_view b);

}  // namespace stoplog::gate
