// SPDX-License-Identifier: Apache-2.0
// Directories that their owner may not look at or change: the last thing that a
// switch does, and the first that is taken back. See gate/switcher.h.
#include "base/escape.h"
#include "base/shown_path.h"
#include "base/sys_attr.h"
#include "fs/beneath.h"
#include "gate/name_in.h"
#include "gate/switcher.h"

namespace stoplog::gate {
namespace {

constexpr mode_t kOwners = 0700;

bool is_shut(const Node& node) {
  return node.is_dir() && (node.mode & kOwners) != kOwners;
}

}  // namespace

bool Switcher::is_made_shut(size_t index) const {
  const Item& item = record_.items[index];
  return item.fresh && is_shut(*item.fresh) && record_.now[index] &&
         !record_.places[index].empty();
}

// Of what was staged and stands in its place; anything else is somebody's.
Status Switcher::change_bits(size_t index, mode_t from, mode_t to) {
  const RelPath& path = record_.items[index].path;
  auto dir = disk_.open_dir(root_, path.parent());
  if (!dir && fs::is_absence(dir.error())) return {};
  if (!dir) return std::unexpected(std::move(dir.error()));
  auto there = disk_.openat(dir->get(), name_in(path), O_PATH);
  if (!there && fs::is_absence(there.error())) return {};
  if (!there) return std::unexpected(std::move(there.error()));
  sys::Stat stat = TRY(sys::fstat(there->get()));
  if (identity_of(stat) != identity_of(*record_.now[index]) ||
      (stat.mode & 0777) != (from & 0777))
    return {};
  TRY(disk_.step("chmod"));
  return sys::path_chmod(there->get(), (stat.mode & 07000) | (to & 0777));
}

Status Switcher::shut() {
  // In order of path: what is within goes first.
  for (size_t i = record_.items.size(); i-- > 0;) {
    if (!is_made_shut(i)) continue;
    mode_t mode = record_.items[i].fresh->mode;
    TRY_CTX(change_bits(i, mode | kOwners, mode),
            quote_name(shown_path(record_.items[i].path)));
  }
  return {};
}

void Switcher::open_up() {
  for (auto live = record_.ops.rbegin(); live != record_.ops.rend(); ++live)
    if (live->op.kind == SwitchOp::Kind::kAttr && is_shut(*item(*live).fresh))
      (void)change_attributes(*live, *item(*live).fresh, *item(*live).old);
  for (size_t i = 0; i < record_.items.size(); ++i) {
    if (!is_made_shut(i)) continue;
    mode_t mode = record_.items[i].fresh->mode;
    // Where that is not to be had, the step that needs it says so.
    (void)change_bits(i, mode, mode | kOwners);
  }
}

}  // namespace stoplog::gate
