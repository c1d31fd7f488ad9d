// SPDX-License-Identifier: Apache-2.0
#include "draft/sweep.h"

#include <fcntl.h>

#include <set>

#include "base/log.h"
#include "base/sys_file.h"
#include "base/sys_fuse.h"
#include "draft/names.h"
#include "draft/store.h"
#include "fs/mount_device.h"

namespace stoplog::draft {
namespace {

// The mount points of ours that lie beneath `directory`.
Result<std::set<std::string>> mounts_beneath(const std::string& directory) {
  std::vector<sys::MountEntry> all = TRY(sys::list_mounts());
  std::set<std::string> found;
  for (const sys::MountEntry& mount : all)
    if (mount.path.starts_with(directory + "/") &&
        !fs::our_mounts(all, mount.path).empty())
      found.insert(mount.path);
  return found;
}

// A draft that was removed has no daemon, nor a lock to ask.
bool is_removed(const Layout& layout, std::string_view id) {
  auto there = sys::statat(AT_FDCWD, layout.draft(id));
  return !there && there.error().err() == ENOENT;
}

// The directory of all run directories.
std::string above_runs(const Layout& layout, std::string_view id) {
  const std::string run = layout.run(id);
  return run.substr(0, run.rfind('/'));
}

std::string draft_of(const std::string& mount, const std::string& above) {
  std::string id = mount.substr(above.size() + 1);
  id.erase(std::min(id.find('/'), id.size()));
  return id;
}

}  // namespace

Status clear_dead_mounts(const Layout& layout, std::string_view id) {
  return clear_dead_mounts_in(layout.run(id));
}

Status clear_dead_mounts_in(const std::string& run) {
  for (const std::string& path : TRY(mounts_beneath(run)))
    TRY_CTX(fs::clear_dead_mount(path),
            fmt::format("cannot clear the dead mount '{}'", path));
  return {};
}

void sweep_dead_mounts(const Layout& layout, std::string_view mine) {
  const std::string above = above_runs(layout, mine);
  auto mounts = mounts_beneath(above);
  if (!mounts) return;
  std::set<std::string> ids;
  for (const std::string& path : *mounts) {
    std::string id = draft_of(path, above);
    if (id != mine) ids.insert(std::move(id));
  }
  for (const std::string& id : ids) {
    std::optional<DraftLock> lock;
    if (!is_removed(layout, id)) {
      auto taken = DraftLock::take(layout, id, LockMode::kExclusive,
                                   std::chrono::milliseconds(0));
      if (!taken) continue;  // it lives
      lock = std::move(*taken);
    }
    if (auto cleared = clear_dead_mounts(layout, id); !cleared)
      log::warn("{}", cleared.error().text());
    else
      log::info("cleared the dead mounts of draft {}", id);
  }
}

Result<std::vector<std::string>> list_dead_mounts(const Layout& layout) {
  // Any id will do: all have one length.
  const std::string above = above_runs(layout, std::string(kIdLength, '0'));
  std::vector<std::string> dead;
  for (const std::string& path : TRY(mounts_beneath(above))) {
    const std::string id = draft_of(path, above);
    if (is_removed(layout, id) || !TRY(DraftLock::is_held(layout, id)))
      dead.push_back(path);
  }
  return dead;
}

}  // namespace stoplog::draft
