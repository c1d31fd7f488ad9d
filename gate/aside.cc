// SPDX-License-Identifier: Apache-2.0
#include "gate/aside.h"

#include <linux/fs.h>

#include "base/dir.h"

namespace stoplog::gate {
namespace {

constexpr const char* kAsideDir = "aside";

// Devices may be numbered anew by a restart: they do not count.
std::string prefix_of(Identity root) { return fmt::format("{:x}-", root.ino); }

}  // namespace

Result<std::string> set_aside(int state, const Disk& disk, Identity root,
                              const std::string& id) {
  Status made = disk.mkdirat(state, kAsideDir, 0700);
  if (!made && made.error().err() != EEXIST)
    return std::unexpected(std::move(made.error()).context(kAsideDir));
  Fd dir = TRY(disk.openat(state, kAsideDir, O_RDONLY | O_DIRECTORY));
  std::string name = prefix_of(root) + id;
  TRY_CTX(disk.rename(state, kPendingDir, dir.get(), name, RENAME_NOREPLACE),
          "cannot set an interrupted commit aside");
  TRY(disk.syncfs(state));
  return std::string(kAsideDir) + "/" + name;
}

Result<std::optional<std::string>> find_aside(int state, int root) {
  auto dir = sys::openat(state, kAsideDir, O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().err() == ENOENT) return std::nullopt;
  if (!dir) return std::unexpected(std::move(dir).error());
  std::string prefix = prefix_of(gate::identity_of(TRY(sys::fstat(root))));
  for (std::string& name : TRY(list_names(dir->get(), ".")))
    if (name.starts_with(prefix)) return std::move(name);
  return std::nullopt;
}

Status bring_back(int state, const Disk& disk, int root) {
  auto name = TRY(find_aside(state, root));
  if (!name) return {};
  // An empty one, which every commit leaves behind, makes way.
  Status gone = disk.unlinkat(state, kPendingDir, AT_REMOVEDIR);
  if (!gone && gone.error().err() == ENOTEMPTY) return {};
  if (!gone && gone.error().err() != ENOENT) return gone;
  Fd dir = TRY(disk.openat(state, kAsideDir, O_RDONLY | O_DIRECTORY));
  return disk.rename(dir.get(), *name, state, kPendingDir, RENAME_NOREPLACE);
}

}  // namespace stoplog::gate
