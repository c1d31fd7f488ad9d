// SPDX-License-Identifier: Apache-2.0
// From what is wanted to what is done, as data: build_plan() is pure, its
// result is printed by --dry-run, compared in tests and executed by
// gate/transaction.h.
//
//   CommitPlan plan = TRY(build_plan(std::move(items)));
//   std::string text = to_text(plan);
//
// A plan has two halves. The *stage* makes every new thing in a directory of
// our own: a new directory with all that is new beneath it is one tree there.
// The *switch* is a list of single renames that works in any order of crashes:
// first what leaves its place in the base, children before parents, then what
// comes to its place, parents before children. No path ever depends on a later
// step, so there are no cycles, whatever was renamed onto what.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/relpath.h"
#include "base/result.h"
#include "fs/view.h"
#include "gate/node.h"

namespace stoplog::gate {

// One change that is wanted in the real tree.
struct Item {
  RelPath path;
  // Moved from here in the base. Nothing of the base stands at `path` then.
  std::optional<RelPath> from;
  std::optional<Node> old;    // in the base, at `from` or `path`
  std::optional<Node> fresh;  // afterwards, at `path`
  // The bytes of `fresh`, where it is a file that must be written.
  std::shared_ptr<const fs::Content> content;
  // The path that all names of one file have here; another item's, or none's.
  // An item whose path is none's link_to is one of its own.
  std::optional<RelPath> link_to;
  // A new inode even where only attributes differ: other names of the old one
  // lie outside of what was approved.
  bool detach = false;
  // Less than the draft has: its content or mode there stays held.
  bool rest_held = false;
  // Filled when verified: the real thing's stat.
  std::optional<sys::Stat> old_stat;

  const RelPath& base_path() const { return from ? *from : path; }
  // Nothing happens to it: it is there for others to be links of.
  bool stays() const {
    return old && fresh && !from && !fresh->is_dir() && !detach &&
           same_content(*old, *fresh) && same_attributes(*old, *fresh);
  }
  // The old file leaves the tree for good: its content is kept for undo.
  bool has_preimage() const {
    return old && old->is_file() &&
           (!fresh || detach || !same_content(*old, *fresh));
  }
};

struct StageOp {
  size_t item = 0;
  std::string place;  // "12", or "12/sub/name" within a new tree
  // Index of the stage op whose file this is another name of.
  std::optional<size_t> link_of;
  // Index of the item whose file this is another name of, as it stands in the
  // real tree.
  std::optional<size_t> link_real{};
};

struct SwitchOp {
  enum class Kind : uint8_t {
    kTake,   // path -> slot: removed, or on its way elsewhere
    kRmdir,  // path, which must be empty by then
    kPut,    // slot -> path, where nothing may be
    kSwap,   // slot <-> path
    kMove,   // from -> path, where nothing may be
    kAttr,   // attributes of path, in place
  };
  Kind kind = Kind::kTake;
  size_t item = 0;
  RelPath path{};  // where it acts; for kMove the new path
  RelPath from{};  // kMove
  // Name in the stage; for kTake and kMove a free one.
  uint32_t slot = 0;
  // kTake and kPut: the two halves of a move. The thing keeps its inode, and
  // nothing is staged for it.
  bool moving = false;
  bool operator==(const SwitchOp&) const = default;
};

struct CommitPlan {
  std::vector<Item> items;
  std::vector<StageOp> stage;
  std::vector<SwitchOp> ops;
  uint32_t slots = 0;
};

// Code::kInternal when items contradict each other.
Result<CommitPlan> build_plan(std::vector<Item> items);

// One line a step, names quoted: "swap  src/main.c  (file 100644, 1234 bytes)".
std::string to_text(const CommitPlan& plan);
std::string_view name_of(SwitchOp::Kind kind);

}  // namespace stoplog::gate
