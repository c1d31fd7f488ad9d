// SPDX-License-Identifier: Apache-2.0
// git's lock files: taken before anything is looked at, given back at the end,
// by whoever gets there. Declared in gate/pending.h.
#include <linux/fs.h>

#include <set>
#include <thread>

#include "base/escape.h"
#include "base/shown_path.h"
#include "fs/beneath.h"
#include "gate/pending.h"

namespace stoplog::gate {
namespace {

constexpr std::string_view kLockMark = "stoplog commit\n";
// git itself waits a second for packed-refs and a tenth for a ref.
constexpr auto kLockPause = std::chrono::milliseconds(20);
constexpr int kLockTries = 50;

// The name under which a lock file is written where a file without a name
// cannot be made. Known from the lock's own, so that whoever recovers finds it;
// git looks at no name that begins with a dot.
std::string draft_name(const std::string& name) { return ".stoplog-" + name; }

// Appears with its mark in it, so that one that was left behind is known.
Status make_lock(const Disk& disk, int dir, const std::string& name) {
  TRY(disk.step("lock"));
  bool nameless = disk.step("O_TMPFILE").has_value();
  auto file = nameless ? sys::openat(dir, ".", O_TMPFILE | O_WRONLY, 0600)
                       : Result<Fd>(fail_errno(EOPNOTSUPP));
  if (!file) {
    std::string written = draft_name(name);
    Fd plain = TRY(disk.openat(dir, written, O_WRONLY | O_CREAT, 0600));
    TRY(sys::write_full(plain.get(), kLockMark));
    Status placed = disk.rename(dir, written, dir, name, RENAME_NOREPLACE);
    if (!placed) TRY(disk.unlinkat(dir, written));
    return placed;
  }
  TRY(sys::write_full(file->get(), kLockMark));
  return sys::linkat(AT_FDCWD, "/proc/self/fd/" + std::to_string(file->get()),
                     dir, name, AT_SYMLINK_FOLLOW);
}

}  // namespace

Status take_locks(const Ground& ground, const Disk& disk, Pending& pending,
                  std::set<RelPath>& unlocked) {
  if (ground.locks.empty()) return {};
  // Written first: a lock file without a note of it would stay for ever.
  TRY(pending.write_locks(ground.locks));
  for (const RelPath& path : ground.locks) {
    auto dir = disk.open_dir(ground.root, path.parent());
    // No directory for it yet: then nobody has a ref there either.
    if (!dir && fs::is_absence(dir.error())) continue;
    if (!dir)
      return std::unexpected(
          std::move(dir.error()).context(quote_name(shown_path(path))));
    for (int i = 0;; ++i) {
      Status made = make_lock(disk, dir->get(), std::string(path.name()));
      if (made) break;
      if (made.error().err() != EEXIST)
        return std::unexpected(
            std::move(made.error()).context(quote_name(shown_path(path))));
      if (i == kLockTries) {
        unlocked.insert(path);
        break;
      }
      std::this_thread::sleep_for(kLockPause);
    }
  }
  return {};
}

Status release_locks(const Ground& ground, const Disk& disk, Pending& pending) {
  auto locks = TRY(pending.locks());
  if (locks.empty()) return {};
  for (const RelPath& path : locks) {
    auto dir = disk.open_dir(ground.root, path.parent());
    if (!dir && fs::is_absence(dir.error())) continue;
    if (!dir) return std::unexpected(std::move(dir.error()));
    std::string name(path.name());
    auto mark = sys::read_file(dir->get(), name, 4096);
    if (mark && *mark == kLockMark) TRY(disk.unlinkat(dir->get(), name));
    Status gone = disk.unlinkat(dir->get(), draft_name(name));
    if (!gone && gone.error().err() != ENOENT) return gone;
  }
  return pending.remove_locks();
}

}  // namespace stoplog::gate
