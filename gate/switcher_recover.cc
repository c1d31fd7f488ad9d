// SPDX-License-Identifier: Apache-2.0
// The careful steps: back, and forward after a crash. See gate/switcher.h.
#include <linux/fs.h>
#include <unistd.h>

#include "base/escape.h"
#include "gate/name_in.h"
#include "gate/switcher.h"

namespace stoplog::gate {
namespace {

using Kind = SwitchOp::Kind;

constexpr const char* kEdited = "was edited since, and stays as it is";
constexpr const char* kInTheWay = "has something else in its place now";
constexpr const char* kGone = "was removed since";
constexpr const char* kLost =
    "cannot be given back, for what it was is not in the stage any more";
constexpr const char* kOtherEdited =
    "was to be a link of a file that was edited since, and is left out";

}  // namespace

Switcher::MaybeLeft Switcher::revert(const LiveOp& live) {
  auto done = [&]() -> MaybeLeft {
    switch (live.op.kind) {
      case Kind::kTake:
        return revert_take(live);
      case Kind::kSwap:
        return revert_swap(live);
      case Kind::kPut:
        return revert_put(live);
      case Kind::kMove:
        return revert_move(live);
      case Kind::kAttr:
        // Set before it went back, by one that died then.
        if (item(live).from && !TRY(identity_at(live.op.path)).known())
          return std::nullopt;
        return change_attributes(live, *item(live).fresh, *item(live).old);
      case Kind::kRmdir:
        TRY(make_directory(live));
        return std::nullopt;
    }
    return std::nullopt;
  }();
  // A directory that is no longer there, or no longer ours to resolve, leaves
  // nothing to act on.
  if (!done && (done.error().err() == ENOENT || done.error().err() == ENOTDIR ||
                done.error().err() == ELOOP || done.error().err() == EXDEV ||
                done.error().err() == ESTALE))
    return left(live, "cannot be reached any more");
  return done;
}

Status Switcher::make_directory(const LiveOp& live) {
  int dir = TRY(parent(live.op.path));
  std::string name = name_in(live.op.path);
  auto there = TRY(disk_.statat(dir, name));
  // Made by us a moment ago, and then killed before it had its attributes.
  bool half_made = there && gate::identity_of(*there) != live.old_id &&
                   there->mode == (S_IFDIR | 0700);
  if (there && !half_made) return {};
  if (!there) TRY(disk_.mkdirat(dir, name, 0700));
  Fd fd = TRY(disk_.openat(dir, name, O_PATH));
  forget(live.op.path);
  return disk_.set_attributes(fd.get(), *item(live).old, nullptr, nullptr);
}

// What lies in the slot is somebody's, taken out by a step that died there.
Switcher::MaybeLeft Switcher::return_save(const LiveOp& live, int dir,
                                          const std::string& name) {
  TRY(set_aside(live, stage(live), slot(live)));
  Status back =
      disk_.rename(stage(live), slot(live), dir, name, RENAME_NOREPLACE);
  if (!back && back.error().err() == EEXIST) return left(live, kInTheWay);
  if (!back) return std::unexpected(back.error());
  return left(live, kEdited);
}

Switcher::MaybeLeft Switcher::revert_take(const LiveOp& live) {
  if (!TRY(disk_.statat(stage(live), slot(live)))) {
    // A step that was not made yet: whoever removed it meant to.
    bool begun = begun_ == nullptr || &live < begun_;
    if (!begun || TRY(identity_at(live.op.path)).known()) return std::nullopt;
    // Somebody emptied the stage.
    return left(live, kLost);
  }
  int dir = TRY(parent(live.op.path));
  if (!TRY(is_old(live, stage(live), slot(live))))
    return return_save(live, dir, name_in(live.op.path));
  Status back = disk_.rename(stage(live), slot(live), dir,
                             name_in(live.op.path), RENAME_NOREPLACE);
  if (!back && back.error().err() == EEXIST) return left(live, kInTheWay);
  if (!back) return std::unexpected(back.error());
  return std::nullopt;
}

Switcher::MaybeLeft Switcher::revert_swap(const LiveOp& live) {
  Identity in_stage = TRY(identity_at(stage(live), slot(live)));
  if (in_stage == live.fresh_id) return std::nullopt;
  int dir = TRY(parent(live.op.path));
  std::string name = name_in(live.op.path);
  if (!in_stage.known()) {
    // Somebody emptied the stage.
    if (TRY(identity_at(dir, name)) == live.fresh_id) return left(live, kLost);
    return std::nullopt;
  }
  if (!TRY(identity_at(dir, name)).known()) return left(live, kGone);
  // Held still, so that a save which begins now lands in the file that has the
  // name afterwards.
  Guard guard;
  bool shared = TRY(is_shared(live.op.item, dir, name));
  if (item(live).fresh->is_file() && !shared)
    guard = TRY(Guard::take(disk_, dir, name));
  if (guard.busy() || !TRY(is_fresh(live, dir, name)))
    return left(live, kEdited);
  bool save = !TRY(is_old(live, stage(live), slot(live)));
  if (save) TRY(set_aside(live, stage(live), slot(live)));
  if (!TRY(exchange(live, dir, name, live.fresh_id)))
    return left(live, kEdited);
  bool still = guard.holds() ? !guard.is_wanted()
                             : TRY(is_fresh(live, stage(live), slot(live)));
  if (still && save) return left(live, kEdited);
  if (still) return std::nullopt;
  // Written to between the look and the exchange: that file goes back.
  TRY(exchange(live, dir, name, in_stage));
  return left(live, kEdited);
}

Switcher::MaybeLeft Switcher::revert_put(const LiveOp& live) {
  Identity want = live.op.moving ? live.old_id : live.fresh_id;
  Identity in_stage = TRY(identity_at(stage(live), slot(live)));
  if (in_stage == want) return std::nullopt;
  int dir = TRY(parent(live.op.path));
  std::string name = name_in(live.op.path);
  if (in_stage.known()) return return_save(live, dir, name);
  Identity at = TRY(identity_at(dir, name));
  if (!at.known()) return std::nullopt;
  Guard guard;
  bool shared = TRY(is_shared(live.op.item, dir, name));
  if (!live.op.moving && item(live).fresh->is_file() && !shared)
    guard = TRY(Guard::take(disk_, dir, name));
  bool ours =
      live.op.moving ? at == live.old_id : TRY(is_fresh(live, dir, name));
  if (guard.busy()) ours = false;
  if (!ours) return left(live, kEdited);
  // Taken out into the stage a directory must be writable again.
  const Node& fresh = *item(live).fresh;
  if (!live.op.moving && fresh.is_dir() && (fresh.mode & 0700) != 0700) {
    Node open = fresh;
    open.mode |= 0700;
    TRY(set_node(dir, name, open));
  }
  bool good = TRY(take_out(live, dir, name, want)).has_value();
  forget(live.op.path);
  if (!good) return left(live, kEdited);
  if (live.op.moving) return std::nullopt;
  good = guard.holds() ? !guard.is_wanted()
                       : TRY(is_fresh(live, stage(live), slot(live)));
  if (good) return std::nullopt;
  return return_save(live, dir, name);
}

Switcher::MaybeLeft Switcher::revert_move(const LiveOp& live) {
  int dir = TRY(parent(live.op.path));
  std::string name = name_in(live.op.path);
  int from = TRY(parent(live.op.from));
  Identity at = TRY(identity_at(dir, name));
  bool edited = at != live.old_id;
  // A save that went along, or one since: without the old name it goes there.
  if (edited && (!at.known() || item(live).old->is_dir() ||
                 TRY(identity_at(from, name_in(live.op.from))).known()))
    return std::nullopt;
  Status back =
      disk_.rename(dir, name, from, name_in(live.op.from), RENAME_NOREPLACE);
  if (!back && back.error().err() == EEXIST) return left(live, kInTheWay);
  if (!back) return std::unexpected(back.error());
  forget(live.op.path);
  if (edited) return left(live, kEdited);
  return std::nullopt;
}

// Forward and back are the same: from one set of attributes to the other.
Switcher::MaybeLeft Switcher::change_attributes(const LiveOp& live,
                                                const Node& from,
                                                const Node& to) {
  int dir = TRY(parent(live.op.path));
  std::string name = name_in(live.op.path);
  auto standing = TRY(disk_.look(dir, name, false));
  if (!standing) return left(live, kGone);
  const Node& now = standing->node;
  if (same_attributes(now, to)) return std::nullopt;
  // Half-way, when killed between two of the calls, is ours too.
  bool ours = gate::identity_of(standing->stat) == live.old_id &&
              (now.mode == from.mode || now.mode == to.mode ||
               (now.mode & ~06000u) == (to.mode & ~06000u) ||
               (now.mode & ~06000u) == (from.mode & ~06000u)) &&
              (now.uid == from.uid || now.uid == to.uid) &&
              (now.gid == from.gid || now.gid == to.gid);
  if (!ours) return left(live, kEdited);
  TRY(set_node(dir, name, to));
  return std::nullopt;
}

// The step was made, as far as names can tell.
Result<bool> Switcher::was_made(const LiveOp& live) {
  if (live.op.kind == Kind::kSwap) {
    Identity there = TRY(identity_at(stage(live), slot(live)));
    if (there.known()) return there != live.fresh_id;
    // Somebody emptied the stage.
    return TRY(identity_at(live.op.path)) == live.fresh_id;
  }
  bool moves = live.op.moving || live.op.kind == Kind::kMove;
  if (live.op.kind != Kind::kPut && live.op.kind != Kind::kMove) return false;
  return TRY(identity_at(live.op.path)) ==
         (moves ? live.old_id : live.fresh_id);
}

// Nothing is in the slot of a new thing: it stands in its place, or did until
// somebody removed or replaced it. Else it is lost. Steps are made in order: a
// later one tells, in the same stage, since two disks lose power each by
// itself. Without that, what is not there at all counts as lost: to go back is
// all or nothing in either case.
Result<bool> Switcher::was_put(size_t index) {
  const LiveOp& live = record_.ops[index];
  Identity at = TRY(identity_at(live.op.path));
  if (at == live.fresh_id) return true;
  bool others = at.known();
  for (size_t i = 0; i < index && others; ++i) {
    const LiveOp& before = record_.ops[i];
    bool leaves =
        before.op.kind == Kind::kTake || before.op.kind == Kind::kRmdir;
    if (leaves && before.op.path == live.op.path && before.old_id == at)
      others = false;
  }
  if (others) return true;
  for (size_t i = record_.ops.size(); i-- > index + 1;)
    if (record_.ops[i].stage == live.stage && TRY(was_made(record_.ops[i])))
      return true;
  return false;
}

Result<bool> Switcher::is_stage_whole() {
  for (size_t i = 0; i < record_.ops.size(); ++i) {
    const LiveOp& live = record_.ops[i];
    bool staged = live.op.kind == Kind::kPut || live.op.kind == Kind::kSwap;
    if (!staged || live.op.moving) continue;
    Identity there = TRY(identity_at(stage(live), slot(live)));
    if (!there.known()) {
      bool swaps = live.op.kind == Kind::kSwap;
      if (!(swaps ? TRY(was_made(live)) : TRY(was_put(i)))) return false;
      continue;
    }
    if (there != live.fresh_id || shares_.contains(live.op.item)) continue;
    auto whole = is_staged_tree(live.op.item, stage(live), slot(live));
    // What its owner may not read cannot be looked at; what the disk cannot
    // read is lost, and going back does not need it.
    if (!whole && whole.error().err() == EACCES) continue;
    if (!whole || !*whole) return false;
  }
  return true;
}

Switcher::MaybeLeft Switcher::advance(const LiveOp& live) {
  auto done = [&]() -> MaybeLeft {
    switch (live.op.kind) {
      case Kind::kTake:
        return advance_take(live);
      case Kind::kSwap:
        return advance_swap(live);
      case Kind::kPut:
        return advance_put(live);
      case Kind::kMove:
        return advance_move(live);
      case Kind::kAttr:
        return change_attributes(live, *item(live).old, *item(live).fresh);
      case Kind::kRmdir: {
        int dir = TRY(parent(live.op.path));
        auto standing = TRY(disk_.statat(dir, name_in(live.op.path)));
        // Nothing there, or what the commit itself put there later.
        if (!standing || gate::identity_of(*standing) != live.old_id)
          return std::nullopt;
        Status gone = disk_.unlinkat(dir, name_in(live.op.path), AT_REMOVEDIR);
        forget(live.op.path);
        if (!gone &&
            (gone.error().err() == ENOTEMPTY || gone.error().err() == EEXIST))
          return left(live, "is not empty, and stays");
        if (!gone) return std::unexpected(gone.error());
        return std::nullopt;
      }
    }
    return std::nullopt;
  }();
  if (!done && (done.error().err() == ENOENT || done.error().err() == ENOTDIR ||
                done.error().err() == ELOOP || done.error().err() == EXDEV)) {
    // Done already when a directory above it has left as well.
    if (live.op.kind == Kind::kTake || live.op.kind == Kind::kRmdir)
      return std::nullopt;
    return left(live, "cannot be reached any more");
  }
  return done;
}

Switcher::MaybeLeft Switcher::advance_take(const LiveOp& live) {
  int dir = TRY(parent(live.op.path));
  std::string name = name_in(live.op.path);
  if (TRY(identity_at(stage(live), slot(live))).known()) {
    if (TRY(is_old(live, stage(live), slot(live)))) return std::nullopt;
    return return_save(live, dir, name);
  }
  Identity at = TRY(identity_at(dir, name));
  if (!at.known()) return std::nullopt;
  // On its way and arrived: the path may hold something new by now.
  if (live.op.moving && at != live.old_id) return std::nullopt;
  Guard guard;
  if (item(live).old->is_file() && !live.op.moving) {
    // Something of another type may stand there now.
    auto taken = Guard::take(disk_, dir, name);
    if (taken) guard = std::move(*taken);
  }
  if (guard.busy() || !TRY(is_old(live, dir, name))) {
    // A later step of this commit may have put its new thing here already.
    for (const LiveOp& other : record_.ops) {
      bool moves = other.op.moving || other.op.kind == Kind::kMove;
      if (other.op.path == live.op.path && other.op.kind != Kind::kTake &&
          (moves ? other.old_id : other.fresh_id) == at)
        return std::nullopt;
    }
    return left(live, kEdited);
  }
  bool good = TRY(take_out(live, dir, name, at)).has_value();
  forget(live.op.path);
  if (!good) return left(live, kEdited);
  if (!guard.is_wanted() && TRY(is_old(live, stage(live), slot(live))))
    return std::nullopt;
  return return_save(live, dir, name);
}

// What is to come is a file of the real tree, and is not what was approved.
Result<bool> Switcher::was_edited(const LiveOp& live) {
  if (live.op.moving || !shares_.contains(live.op.item)) return false;
  auto standing = TRY(disk_.look(stage(live), slot(live), true));
  return !standing || !same_content(*item(live).fresh, standing->node);
}

Switcher::MaybeLeft Switcher::advance_swap(const LiveOp& live) {
  int dir = TRY(parent(live.op.path));
  std::string name = name_in(live.op.path);
  Identity in_stage = TRY(identity_at(stage(live), slot(live)));
  if (!in_stage.known()) return std::nullopt;
  Identity at = TRY(identity_at(dir, name));
  if (in_stage != live.fresh_id) {
    // Swapped; an edit of the new file since then is not ours to judge.
    if (TRY(is_old(live, stage(live), slot(live)))) return std::nullopt;
    // A save came out, and nobody was left to put it back.
    if (!at.known()) return return_save(live, dir, name);
    TRY(set_aside(live, stage(live), slot(live)));
    if (TRY(is_fresh(live, dir, name)))
      TRY(exchange(live, dir, name, live.fresh_id));
    return left(live, kEdited);
  }
  if (!at.known()) return left(live, kGone);
  if (TRY(was_edited(live))) return left(live, kOtherEdited);
  Guard guard;
  if (item(live).old->is_file()) {
    // Something of another type may stand there now.
    auto taken = Guard::take(disk_, dir, name);
    if (taken) guard = std::move(*taken);
  }
  if (guard.busy() || !TRY(is_old(live, dir, name))) return left(live, kEdited);
  if (guard.holds()) at = gate::identity_of(guard.stat());
  if (!TRY(exchange(live, dir, name, at))) return left(live, kEdited);
  if (guard.is_wanted() || !TRY(is_old(live, stage(live), slot(live)))) {
    TRY(exchange(live, dir, name, live.fresh_id));
    return left(live, kEdited);
  }
  return std::nullopt;
}

Switcher::MaybeLeft Switcher::advance_put(const LiveOp& live) {
  Identity want = live.op.moving ? live.old_id : live.fresh_id;
  int dir = TRY(parent(live.op.path));
  std::string name = name_in(live.op.path);
  if (TRY(identity_at(stage(live), slot(live))) == want) {
    if (TRY(was_edited(live))) return left(live, kOtherEdited);
    Status put =
        disk_.rename(stage(live), slot(live), dir, name, RENAME_NOREPLACE);
    if (!put && put.error().err() == EEXIST) return left(live, kInTheWay);
    if (!put) return std::unexpected(put.error());
    forget(live.op.path);
  } else if (Identity at = TRY(identity_at(dir, name)); at != want) {
    return left(live, at.known() ? kEdited : kGone);
  }
  return std::nullopt;
}

Switcher::MaybeLeft Switcher::advance_move(const LiveOp& live) {
  int dir = TRY(parent(live.op.path));
  std::string name = name_in(live.op.path);
  if (TRY(identity_at(dir, name)) == live.old_id) return std::nullopt;
  int from = TRY(parent(live.op.from));
  Identity before = TRY(identity_at(from, name_in(live.op.from)));
  if (before != live.old_id) {
    bool any = before.known() || TRY(identity_at(dir, name)).known();
    return left(live, any ? kEdited : kGone);
  }
  dir = TRY(parent(live.op.path));
  Status moved =
      disk_.rename(from, name_in(live.op.from), dir, name, RENAME_NOREPLACE);
  if (!moved && moved.error().err() == EEXIST) return left(live, kInTheWay);
  if (!moved) return std::unexpected(moved.error());
  forget(live.op.from);
  return std::nullopt;
}

}  // namespace stoplog::gate
