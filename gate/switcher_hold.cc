// SPDX-License-Identifier: Apache-2.0
// What can be done before the first rename and after the last. See
// gate/switcher.h.
#include <linux/fs.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/escape.h"
#include "base/parallel.h"
#include "base/shown_path.h"
#include "base/sys_attr.h"
#include "fs/beneath.h"
#include "gate/name_in.h"
#include "gate/switcher.h"

namespace stoplog::gate {
namespace {

using Kind = SwitchOp::Kind;

constexpr size_t kRun = 32;
// A file is read again as it leaves when its times say that it may have changed
// since it was verified, and up to this size also when no lease holds it still:
// reading gigabytes here would keep readers looking at a mixture.
constexpr uint64_t kReadAgain = 1u << 20;
// Open files that are left to everything else.
constexpr size_t kSpare = 512;
constexpr size_t kMaxHeld = 1u << 17;

size_t runs_of(size_t count) { return (count + kRun - 1) / kRun; }

// Nothing moved since it was verified, and the verification was not so soon
// after a change that the clock could hide another one behind it.
bool is_unmoved(const sys::Stat& seen, const sys::Stat& now) {
  timespec clock = Clock::real().now();
  return seen.ino == now.ino && seen.dev == now.dev && seen.size == now.size &&
         fs::same_time(seen.mtime, now.mtime) &&
         fs::same_time(seen.ctime, now.ctime) &&
         seen.ctime.tv_sec + 2 < clock.tv_sec;
}

}  // namespace

// An edit can come in four ways. By a writer that has the file open: the guard
// is busy. Before the guard: the content differs. By a rename onto the name
// between the guard and our rename: another inode came out. By a writer that
// waits for the guard: it is wanted. In each the old file gets its name back
// before the guard ends, and the writer goes on with the right one.
Status Switcher::leave_guarded(const LiveOp& live, int dir,
                               const std::string& name) {
  bool moves = live.op.kind == Kind::kMove;
  Guard guard = moves ? TRY(Guard::take(disk_, TRY(parent(live.op.from)),
                                        name_in(live.op.from)))
                      : TRY(Guard::take(disk_, dir, name));
  TRY(compare_held(live, guard));
  auto out = TRY(step(live, dir, name, gate::identity_of(guard.stat())));
  return settle_held(live, dir, name, guard, out);
}

Status Switcher::compare_held(const LiveOp& live, const Guard& guard) const {
  if (guard.busy())
    return drifted(live, "is open for writing by another program");
  const sys::Stat& now = guard.stat();
  if (!S_ISREG(now.mode)) return drifted(live, "is no file any more");
  bool unmoved = is_unmoved(*item(live).old_stat, now);
  if (unmoved && (now.size > kReadAgain || guard.holds())) return {};
  Standing standing = TRY(disk_.look_open(guard.fd(), now));
  std::string what = difference(*item(live).old, standing.node);
  if (!what.empty()) return drifted(live, what);
  return {};
}

bool Switcher::is_as_held(const Guard& guard,
                          const std::optional<sys::Stat>& out) {
  const sys::Stat& was = guard.stat();
  return out && identity_of(*out) == identity_of(was) &&
         out->mode == was.mode && out->uid == was.uid && out->gid == was.gid &&
         !guard.is_wanted();
}

Status Switcher::settle_held(const LiveOp& live, int dir,
                             const std::string& name, const Guard& guard,
                             const std::optional<sys::Stat>& out) {
  if (!out) return saved(live);
  if (is_as_held(guard, out)) {
    if (guard.holds()) sealed_.insert(live.op.item);
    return {};
  }
  TRY(step_back(live, dir, name));
  return saved(live);
}

// A file that keeps its place until its own step. Without a time of birth what
// was staged could not be told from somebody's new file later; a file of
// several names may get another mode by a step of ours at another one.
bool Switcher::can_hold(const LiveOp& live) const {
  if (!item(live).old || !item(live).old->is_file()) return false;
  if (!item(live).old_stat || item(live).old_stat->nlink != 1) return false;
  if (live.op.kind == Kind::kTake) return !live.op.moving;
  const auto& staged = record_.now[live.op.item];
  return live.op.kind == Kind::kSwap && staged && staged->btime.tv_sec != 0;
}

// No fd: it is not there before the steps are made, or is another one.
Result<Fd> Switcher::parent_to_hold(const RelPath& dir) const {
  auto fd = disk_.open_dir(root_, dir);
  if (!fd && fs::is_absence(fd.error())) return Fd();
  if (!fd) return fd;
  auto expected = expected_.find(dir);
  if (expected != expected_.end() &&
      identity_of(TRY(sys::fstat(fd->get()))) != expected->second)
    return Fd();
  return fd;
}

// What cannot be held here is perform()'s, which says why.
Status Switcher::hold_one(const LiveOp& live, int dir, Guard& guard) const {
  auto taken = Guard::take(disk_, dir, name_in(live.op.path));
  if (!taken &&
      (fs::is_absence(taken.error()) || taken.error().err() == EMFILE ||
       taken.error().err() == ENFILE))
    return {};
  guard = TRY(std::move(taken));
  if (identity_of(guard.stat()) == live.old_id) {
    if (guard.holds()) TRY(sys::call_process(guard.fd(), process_));
    return compare_held(live, guard);
  }
  guard = {};
  return {};
}

Status Switcher::hold() {
  begun_ = record_.ops.data();
  leave_.emplace();
  size_t room = leave_->room() > 2 * kSpare ? leave_->room() - kSpare : 0;
  // A quarter of it for directories.
  max_parents_ = std::max(max_parents_, room / 4);
  room = std::min(room - room / 4, kMaxHeld);
  std::vector<Held> held;
  for (const LiveOp& live : record_.ops)
    if (held.size() < room && can_hold(live)) held.push_back({&live, {}});
  leave_->reserve(root_, held.size() + kSpare);
  calls_.emplace();
  process_ = ::getpid();
  TRY(parallel_for(runs_of(held.size()), 0, [&](size_t run) -> Status {
    if (calls_->any()) return {};
    Fd dir;
    RelPath dir_path;
    size_t end = std::min(held.size(), (run + 1) * kRun);
    for (size_t i = run * kRun; i < end; ++i) {
      const RelPath& path = held[i].live->op.path;
      auto hold = [&]() -> Status {
        if (RelPath above = path.parent();
            i == run * kRun || above != dir_path) {
          dir = TRY(parent_to_hold(above));
          dir_path = std::move(above);
        }
        if (!dir) return {};
        return hold_one(*held[i].live, dir.get(), held[i].guard);
      };
      TRY_CTX(hold(), quote_name(shown_path(path)));
    }
    return {};
  }));
  std::erase_if(held, [](const Held& one) { return one.guard.fd() < 0; });
  held_ = std::move(held);
  // The directories, too, are open by then.
  for (const Held& one : held_) TRY(parent(one.live->op.path));
  return give_way();
}

// The commit cannot stand any more, and who waits need not wait for its end:
// what has not left is let go at once, first of all what is waited for; what
// has left gets its name back.
Status Switcher::give_way() {
  if (!calls_ || !calls_->take()) return {};
  const LiveOp* wanted = nullptr;
  Status first;
  for (size_t i = held_.size(); i-- > 0;) {
    Held& one = held_[i];
    if (!one.guard.is_wanted()) continue;
    wanted = one.live;
    if (i < next_held_) {
      Status back = put_back(*one.live, one.guard);
      if (!back && back.error().code() != Code::kDrift) first = std::move(back);
    }
    one.guard = {};
  }
  if (wanted == nullptr) return {};
  release_from(next_held_);
  if (!first) return first;
  return saved(*wanted);
}

Status Switcher::move_held(const LiveOp& live, int dir,
                           const std::string& name) {
  if (live.op.kind == Kind::kTake)
    return disk_.rename(dir, name, stage(live), slot(live), RENAME_NOREPLACE);
  return disk_.rename(stage(live), slot(live), dir, name, RENAME_EXCHANGE);
}

Status Switcher::check_held() {
  std::vector<char> fine(held_.size());
  TRY(parallel_for(runs_of(held_.size()), 0, [&](size_t run) -> Status {
    size_t end = std::min(held_.size(), (run + 1) * kRun);
    for (size_t i = run * kRun; i < end; ++i) {
      Held& one = held_[i];
      auto out = TRY(disk_.statat(stage(*one.live), slot(*one.live)));
      fine[i] = is_as_held(one.guard, out);
    }
    return {};
  }));
  Status first;
  for (size_t i = 0; i < held_.size(); ++i) {
    const LiveOp& live = *held_[i].live;
    if (fine[i]) {
      if (held_[i].guard.holds()) sealed_.insert(live.op.item);
      continue;
    }
    Status back = put_back(live, held_[i].guard);
    if (first && !back) first = std::move(back);
  }
  release_held();
  return first;
}

// A directory that is gone by a later step comes back with the roll-back, and
// what was in it then, too.
Status Switcher::put_back(const LiveOp& live, const Guard& guard) {
  auto dir = parent(live.op.path);
  std::string name = name_in(live.op.path);
  if (!dir) return saved(live);
  Identity expected = identity_of(guard.stat());
  auto out = live.op.kind == Kind::kTake
                 ? TRY(taken_out(live, *dir, name, expected))
                 : TRY(exchanged(live, *dir, name, expected,
                                 *record_.now[live.op.item]));
  return settle_held(live, *dir, name, guard, out);
}

// Closing a file gives its lease back, which costs as much as taking it.
void Switcher::release_from(size_t first) {
  size_t count = held_.size() - first;
  (void)parallel_for(runs_of(count), 0, [&](size_t run) -> Status {
    size_t end = std::min(count, (run + 1) * kRun);
    for (size_t i = run * kRun; i < end; ++i) held_[first + i].guard = {};
    return {};
  });
  held_.resize(first);
}

void Switcher::release_held() {
  release_from(0);
  next_held_ = 0;
  calls_.reset();
}

}  // namespace stoplog::gate
