// SPDX-License-Identifier: Apache-2.0
// The single steps of a switch, forward and back, each on one path:
//
//   hold()     before the first step: files that are to leave are held still
//              (gate/guard.h) and compared with their base, as many as may be
//              open at once
//   perform()  the step itself, in a live commit: one rename, and for a file
//              that could not be held before, all of what hold() does and
//              check_held() as well
//   give_way() between two steps: does a program wait to write to what is held?
//   check_held() after the last step: is what came out what was held?
//   came_out() and of the others: is what lies in the stage really the base?
//   revert()   takes a step back, whether or not it was done
//   advance()  finishes a step after a crash, whether or not it was done
//
// revert() and advance() act on a path only when it is exactly the old or
// exactly the new thing; anything else was made by somebody else, stays, and
// comes back as Left.
//
// Readers see a mixture from the first rename to the last: what can be done
// before or after is not done between them. Everything that was moved is looked
// at again. When it is not the one that was meant, somebody saved in between:
// it gets its name back, and the newest save keeps the name however many there
// are. It may have been without it for as long as the renames took. What was
// moved so stands in the stage under a second name as well ("12.0" for slot
// 12, an *aside*): a program that looked in that moment, and saves what it
// read, would overwrite it. gate/clearing.h keeps and names these.
//
// What was staged as a further name of a file of the real tree is that file: it
// is new when it is the same inode, whatever somebody wrote to it meanwhile by
// its other name, which has the file still when this one is taken away.
//
// Parents are found by openat2 beneath the root without following symlinks and
// compared with the identity seen before the commit; their fds are kept, so
// that steps back work in the same directory whatever its name has become.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/lease_calls.h"
#include "base/open_files.h"
#include "base/relpath.h"
#include "base/result.h"
#include "gate/disk.h"
#include "gate/guard.h"
#include "gate/record.h"
#include "gate/stage.h"
#include "gate/verify.h"

namespace stoplog::gate {

class Switcher {
 public:
  // All borrowed. `expected` has the identity of directories as verified;
  // empty in a recovery.
  Switcher(const Disk& disk, int root, const SwitchRecord& record,
           const StageSet& stages, std::map<RelPath, Identity> expected);

  Status hold();
  Status perform(const LiveOp& live);
  // Who waits for a file has it, under its name, when this returns; it is an
  // error then, for that file is not the base any more.
  Status give_way();
  // All that drifted have their names back, and the first of them is returned.
  Status check_held();
  // Who waits for one goes on with whatever has its name now.
  void release_held();
  // Why what came out is not the base; nullopt when it is.
  Result<std::optional<std::string>> came_out(const LiveOp& live);
  Result<std::optional<Left>> revert(const LiveOp& live);
  Result<std::optional<Left>> advance(const LiveOp& live);
  // Staged directories get the mode that shuts them to their owner, when all
  // else is done: before, they could be neither compared nor taken back.
  Status shut();
  // The reverse, before a roll-back or a recovery looks at anything.
  void open_up();
  // Names of files that were there before still are: else what changed.
  Result<std::vector<Drift>> broken_links();
  // In a recovery: what was staged stands in its place, or is as it was
  // approved. False when a disk lost what it had said was on it.
  Result<bool> is_stage_whole();
  // The directories worked in are still where they were: else a sentence.
  Result<std::optional<std::string>> moved_parent();

  // The directory that holds `path`; the fd is the switcher's.
  Result<int> parent(const RelPath& path);
  // Is it exactly the old thing of the item; the new one, with all that was
  // staged beneath it?
  Result<bool> is_old(const LiveOp& live, int dir, const std::string& name);
  Result<bool> is_fresh(const LiveOp& live, int dir, const std::string& name);
  // Is it a name of a file that has its own name in the real tree as well?
  Result<bool> is_shared(size_t item, int dir, const std::string& name);
  // Saves that were moved for a moment; they are held still until released.
  struct Aside {
    RelPath path;
    Guard guard;
    bool linked = false;  // it has its second name in the stage
  };
  const std::vector<Aside>& asides() const { return asides_; }
  // What perform() could not set, for a person.
  const std::vector<std::string>& warnings() const { return warnings_; }
  void release_asides() { asides_.clear(); }

 private:
  using MaybeLeft = Result<std::optional<Left>>;
  const Item& item(const LiveOp& live) const {
    return record_.items[live.op.item];
  }
  int stage(const LiveOp& live) const { return stages_.fd(live.stage); }
  static std::string slot(const LiveOp& live) {
    return std::to_string(live.op.slot);
  }
  void forget(const RelPath& path);

  // slot <-> name. What came out, when that is `expected`; else the name has
  // what it had, or a later save. `in`: what is in the slot, when that is
  // known.
  using CameOut = Result<std::optional<sys::Stat>>;
  CameOut exchange(const LiveOp& live, int dir, const std::string& name,
                   Identity expected, std::optional<sys::Stat> in = {});
  CameOut exchanged(const LiveOp& live, int dir, const std::string& name,
                    Identity expected, const sys::Stat& in);
  Status exchange_back(const LiveOp& live, int dir, const std::string& name,
                       sys::Stat in, sys::Stat out);
  // name -> slot, the same.
  CameOut take_out(const LiveOp& live, int dir, const std::string& name,
                   Identity expected);
  CameOut taken_out(const LiveOp& live, int dir, const std::string& name,
                    Identity expected);
  // from -> name, the same.
  CameOut move_over(const LiveOp& live, int dir, const std::string& name,
                    Identity expected);
  // The one of these three that the op is; and back.
  CameOut step(const LiveOp& live, int dir, const std::string& name,
               Identity expected);
  Status step_back(const LiveOp& live, int dir, const std::string& name);
  Status set_aside(const LiveOp& live, int dir, const std::string& name);
  // Of a regular file, held still while it leaves.
  Status leave_guarded(const LiveOp& live, int dir, const std::string& name);
  // It is the base, as far as the guard's stat or its content tells.
  Status compare_held(const LiveOp& live, const Guard& guard) const;
  // It came out; does anybody want it back?
  Status settle_held(const LiveOp& live, int dir, const std::string& name,
                     const Guard& guard, const std::optional<sys::Stat>& out);
  bool can_hold(const LiveOp& live) const;
  static bool is_as_held(const Guard& guard,
                         const std::optional<sys::Stat>& out);
  static std::unexpected<Error> drifted(const LiveOp& live,
                                        std::string_view what);
  static std::unexpected<Error> saved(const LiveOp& live);
  Result<Fd> parent_to_hold(const RelPath& dir) const;
  Status hold_one(const LiveOp& live, int dir, Guard& guard) const;
  Status move_held(const LiveOp& live, int dir, const std::string& name);
  Status put_back(const LiveOp& live, const Guard& guard);
  void release_from(size_t first);
  Status leave(const LiveOp& live, int dir, const std::string& name);
  Status change_in_place(const LiveOp& live, int dir, const std::string& name);
  bool is_made_shut(size_t index) const;
  Status change_bits(size_t index, mode_t from, mode_t to);
  Status set_node(int dir, const std::string& name, const Node& node);
  Status make_directory(const LiveOp& live);
  Result<bool> is_staged_tree(size_t item, int dir, const std::string& name);
  Result<bool> is_staged_alone(size_t item, int dir, const std::string& name);
  using Members = std::map<std::string, size_t>;  // items by name
  const Members& members_of(const std::string& place);
  Result<Identity> identity_at(int dir, const std::string& name);
  Result<Identity> identity_at(const RelPath& path);
  Result<bool> was_edited(const LiveOp& live);
  Result<bool> was_made(const LiveOp& live);
  Result<bool> was_put(size_t index);

  MaybeLeft return_save(const LiveOp& live, int dir, const std::string& name);
  MaybeLeft revert_take(const LiveOp& live);
  MaybeLeft revert_swap(const LiveOp& live);
  MaybeLeft revert_put(const LiveOp& live);
  MaybeLeft revert_move(const LiveOp& live);
  MaybeLeft change_attributes(const LiveOp& live, const Node& from,
                              const Node& to);
  MaybeLeft advance_take(const LiveOp& live);
  MaybeLeft advance_swap(const LiveOp& live);
  MaybeLeft advance_put(const LiveOp& live);
  MaybeLeft advance_move(const LiveOp& live);
  MaybeLeft left(const LiveOp& live, std::string why) const;

  const Disk& disk_;
  int root_;
  const SwitchRecord& record_;
  const StageSet& stages_;
  std::map<RelPath, Identity> expected_;
  struct Parent {
    Fd fd;
    std::list<RelPath>::iterator used;
  };
  std::map<RelPath, Parent> parents_;
  std::list<RelPath> recent_;  // most recently used first
  // The last step of perform(); null in a recovery, where any may be made.
  const LiveOp* begun_ = nullptr;
  // Files that are held ahead, in the order of the steps; the ones before
  // next_held_ have left.
  struct Held {
    const LiveOp* live = nullptr;
    Guard guard;
  };
  std::optional<OpenFiles> leave_;   // outlives held_
  std::optional<LeaseCalls> calls_;  // as long as anything is held
  pid_t process_ = 0;
  std::vector<Held> held_;
  size_t next_held_ = 0;
  size_t max_parents_;
  // Items whose old file left under a guard: nobody can write to it any more.
  std::set<size_t> sealed_;
  std::vector<Aside> asides_;
  std::vector<std::string> warnings_;
  // What is within each staged directory, when that was asked for first.
  std::optional<std::map<std::string, Members>> members_;
  // Items staged as links of files in the real tree, and whose file it is.
  std::map<size_t, size_t> shares_;
};

}  // namespace stoplog::gate
