// SPDX-License-Identifier: Apache-2.0
#include "gate/commit_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/escape.h"
#include "base/shown_path.h"

namespace stoplog::gate {
namespace {

using Kind = SwitchOp::Kind;

// What becomes of an item, before the order is known.
enum class Fate { kNothing, kRemove, kCreate, kSwap, kAttr, kMove, kRecreate };

Fate fate_of(const Item& item) {
  if (!item.old && !item.fresh) return Fate::kNothing;
  if (!item.fresh) return Fate::kRemove;
  if (!item.old) return Fate::kCreate;
  bool same = same_content(*item.old, *item.fresh);
  if (item.from) return same ? Fate::kMove : Fate::kRecreate;
  if (same) {
    if (same_attributes(*item.old, *item.fresh)) return Fate::kNothing;
    // The owner of a symlink can be set in place, but not undone atomically
    // together with its attributes: a new link is simpler.
    bool in_place = item.fresh->type != fs::Type::kSymlink && !item.detach;
    return in_place || item.fresh->is_dir() ? Fate::kAttr : Fate::kSwap;
  }
  // A directory that leaves is removed with rmdir, which checks in the kernel
  // that nothing appeared in it.
  return item.old->is_dir() ? Fate::kRecreate : Fate::kSwap;
}

// One thing is removed and another is moved to its place: as an undo does with
// what was moved away and made anew.
bool makes_way(const Item& gone, const Item& comes) {
  return !gone.fresh && !gone.from && comes.fresh && comes.from;
}

class Builder {
 public:
  explicit Builder(std::vector<Item> items) {
    plan_.items = std::move(items);
    // Mostly they come in order.
    if (!std::ranges::is_sorted(plan_.items, {}, &Item::path))
      std::ranges::sort(plan_.items, {}, &Item::path);
    slots_.resize(plan_.items.size());
  }

  Result<CommitPlan> build() {
    TRY(sort_out());
    leave_before_parents();
    leave();
    TRY(stage());
    TRY(come());
    for (; !last_.empty(); last_.pop_back()) add(std::move(last_.back()));
    return std::move(plan_);
  }

 private:
  using Paths = std::set<RelPath>;

  Status sort_out() {
    fates_.reserve(plan_.items.size());
    for (size_t i = 0; i < plan_.items.size(); ++i) {
      const Item& item = plan_.items[i];
      if (i > 0 && plan_.items[i - 1].path == item.path &&
          !makes_way(plan_.items[i - 1], item) &&
          !makes_way(item, plan_.items[i - 1]))
        return fail(Code::kInternal, "two changes of {}",
                    quote_name(shown_path(item.path)));
      Fate fate = fate_of(item);
      fates_.push_back(fate);
      bool leaves = fate == Fate::kRemove || fate == Fate::kRecreate ||
                    fate == Fate::kMove;
      if (leaves && !leaving_.insert(item.base_path()).second)
        return fail(Code::kInternal, "{} leaves twice",
                    quote_name(shown_path(item.base_path())));
      if (fate == Fate::kCreate || fate == Fate::kRecreate ||
          fate == Fate::kMove)
        coming_.insert(item.path);
      // What stands at a path that turns into a directory leaves it too.
      if (fate == Fate::kSwap && item.fresh->is_dir())
        coming_.insert(item.path);
    }
    return {};
  }

  // What is changed beneath a directory that leaves is not that directory's any
  // more: it leaves by itself, and comes to the one that takes the place.
  void leave_before_parents() {
    for (size_t i = 0; i < plan_.items.size(); ++i) {
      const Item& item = plan_.items[i];
      if (!item.old || !item.fresh || item.from ||
          fates_[i] == Fate::kRecreate || !any_above(leaving_, item.path))
        continue;
      fates_[i] = Fate::kRecreate;
      leaving_.insert(item.path);
      coming_.insert(item.path);
    }
  }

  static bool any_above(const Paths& paths, const RelPath& path) {
    for (RelPath p = path; !paths.empty() && !p.is_root();) {
      p = p.parent();
      if (!p.is_root() && paths.contains(p)) return true;
    }
    return false;
  }
  static bool any_within(const Paths& paths, const RelPath& path) {
    auto at = paths.lower_bound(path);
    return at != paths.end() && at->is_within(path);
  }

  // One rename from place to place, without a moment in the stage, when
  // nothing else happens above the old place, at or beneath it, or above the
  // new one.
  bool is_direct(const Item& item) const {
    return !any_above(leaving_, *item.from) &&
           !any_above(coming_, *item.from) &&
           !any_within(coming_, *item.from) && !any_above(coming_, item.path);
  }

  void leave() {
    std::map<RelPath, size_t, std::greater<>> order;
    for (size_t i = 0; i < plan_.items.size(); ++i) {
      const Item& item = plan_.items[i];
      bool leaves = fates_[i] == Fate::kRemove ||
                    fates_[i] == Fate::kRecreate ||
                    (fates_[i] == Fate::kMove && !is_direct(item));
      if (leaves) order.emplace(item.base_path(), i);
    }
    for (const auto& [path, i] : order) {
      bool moving = fates_[i] == Fate::kMove;
      if (plan_.items[i].old->is_dir() && !moving) {
        add({.kind = Kind::kRmdir, .item = i, .path = path});
        continue;
      }
      uint32_t slot = plan_.slots++;
      if (moving) slots_[i] = slot;
      add({.kind = Kind::kTake,
           .item = i,
           .path = path,
           .from = {},
           .slot = slot,
           .moving = moving});
    }
  }

  bool is_staged(size_t i) const {
    return fates_[i] == Fate::kCreate || fates_[i] == Fate::kRecreate ||
           fates_[i] == Fate::kSwap;
  }

  static const RelPath& group_of(const Item& item) {
    return item.link_to ? *item.link_to : item.path;
  }

  // The names of one file, by group: what keeps its inode in the real tree, and
  // what is staged.
  struct Names {
    std::vector<size_t> real;    // items
    std::vector<size_t> staged;  // stage ops
  };

  void find_links() {
    for (const Item& item : plan_.items)
      if (item.link_to) links_.try_emplace(*item.link_to);
    if (links_.empty()) return;
    for (size_t i = 0; i < plan_.items.size(); ++i) {
      const Item& item = plan_.items[i];
      bool keeps = fates_[i] == Fate::kNothing || fates_[i] == Fate::kMove ||
                   fates_[i] == Fate::kAttr;
      if (!keeps || !item.old || !item.fresh || item.fresh->is_dir()) continue;
      auto names = links_.find(group_of(item));
      if (names != links_.end()) names->second.real.push_back(i);
    }
  }

  // Another name of what is there, or of what was staged before. Only of one
  // that is the same in all: a mode that was not approved makes it another
  // file.
  void link(StageOp& op) {
    const Node& fresh = *plan_.items[op.item].fresh;
    if (links_.empty() || fresh.is_dir()) return;
    auto names = links_.find(group_of(plan_.items[op.item]));
    if (names == links_.end()) return;
    auto alike = [&](const Node& node) {
      return same_content(node, fresh) && same_attributes(node, fresh);
    };
    for (size_t i : names->second.real)
      if (!op.link_real && alike(*plan_.items[i].fresh)) op.link_real = i;
    for (size_t i : names->second.staged)
      if (!op.link_real && !op.link_of && alike(node_at(i))) op.link_of = i;
    names->second.staged.push_back(plan_.stage.size());
  }

  Status stage() {
    find_links();
    std::map<RelPath, size_t> made;  // directories: path -> stage op
    for (size_t i = 0; i < plan_.items.size(); ++i) {
      if (!is_staged(i)) continue;
      const Item& item = plan_.items[i];
      StageOp op{.item = i, .place = {}, .link_of = {}};
      auto parent = made.empty() ? made.end() : made.find(item.path.parent());
      bool in_tree = parent != made.end() && !item.path.is_root() &&
                     !item.path.parent().is_root();
      if (in_tree && fates_[i] != Fate::kSwap) {
        op.place = plan_.stage[parent->second].place + "/" +
                   std::string(item.path.name());
      } else {
        slots_[i] = plan_.slots++;
        op.place = std::to_string(*slots_[i]);
      }
      link(op);
      if (item.fresh->is_file() && !item.content && !op.link_of &&
          !op.link_real)
        return fail(Code::kInternal, "no content for {}",
                    quote_name(shown_path(item.path)));
      if (item.fresh->is_dir()) made.emplace(item.path, plan_.stage.size());
      plan_.stage.push_back(std::move(op));
    }
    return {};
  }

  const Node& node_at(size_t stage_op) const {
    return *plan_.items[plan_.stage[stage_op].item].fresh;
  }

  // The items are in order of path, so parents come before children.
  Status come() {
    for (size_t i = 0; i < plan_.items.size(); ++i) {
      const Item& item = plan_.items[i];
      const std::optional<uint32_t>& slot = slots_[i];
      switch (fates_[i]) {
        case Fate::kNothing:
        case Fate::kRemove:
          break;
        case Fate::kSwap:
          add({.kind = Kind::kSwap,
               .item = i,
               .path = item.path,
               .from = {},
               .slot = *slot});
          break;
        case Fate::kCreate:
        case Fate::kRecreate:
          // No slot of its own: it comes with the tree above it.
          if (slot)
            add({.kind = Kind::kPut,
                 .item = i,
                 .path = item.path,
                 .from = {},
                 .slot = *slot});
          break;
        case Fate::kMove:
          if (slot)
            add({.kind = Kind::kPut,
                 .item = i,
                 .path = item.path,
                 .from = {},
                 .slot = *slot,
                 .moving = true});
          else
            add({.kind = Kind::kMove,
                 .item = i,
                 .path = item.path,
                 .from = *item.from,
                 .slot = plan_.slots++});
          if (!same_attributes(*item.old, *item.fresh)) attributes(i);
          break;
        case Fate::kAttr:
          attributes(i);
          break;
      }
    }
    return {};
  }

  // Two names of one inode get their attributes once.
  void attributes(size_t i) {
    const Item& item = plan_.items[i];
    if (item.link_to && item.old && attributed_.contains(*item.link_to)) return;
    attributed_.insert(item.path);
    SwitchOp op{.kind = Kind::kAttr, .item = i, .path = item.path};
    // Whoever is not root can do nothing in it from then on.
    bool shuts = item.fresh->is_dir() && (item.fresh->mode & 0700) != 0700;
    if (shuts)
      last_.push_back(std::move(op));
    else
      add(std::move(op));
  }

  void add(SwitchOp op) { plan_.ops.push_back(std::move(op)); }

  CommitPlan plan_;
  std::vector<SwitchOp> last_;  // parents before children
  std::vector<Fate> fates_;
  Paths leaving_, coming_, attributed_;
  std::vector<std::optional<uint32_t>> slots_;  // by item
  std::map<RelPath, Names> links_;
};

std::string describe(const Node& node) {
  std::string text =
      fmt::format("{} {:04o}", fs::name_of(node.type), node.mode);
  if (node.is_file()) text += fmt::format(", {} bytes", node.size);
  if (node.type == fs::Type::kSymlink) text += " -> " + escape(node.target);
  return text;
}

}  // namespace

Result<CommitPlan> build_plan(std::vector<Item> items) {
  return Builder(std::move(items)).build();
}

std::string_view name_of(SwitchOp::Kind kind) {
  switch (kind) {
    case Kind::kTake:
      return "take";
    case Kind::kRmdir:
      return "rmdir";
    case Kind::kPut:
      return "put";
    case Kind::kSwap:
      return "swap";
    case Kind::kMove:
      return "move";
    case Kind::kAttr:
      return "attr";
  }
  return "take";
}

std::string to_text(const CommitPlan& plan) {
  std::string text;
  for (const StageOp& op : plan.stage) {
    const Item& item = plan.items[op.item];
    std::string link;
    if (op.link_of)
      link = ", link of " + quote_name(plan.stage[*op.link_of].place);
    if (op.link_real)
      link = ", link of " +
             quote_name(shown_path(plan.items[*op.link_real].base_path()));
    text += fmt::format("stage {} {} ({}{})\n", quote_name(op.place),
                        quote_name(shown_path(item.path)),
                        describe(*item.fresh), link);
  }
  for (const SwitchOp& op : plan.ops) {
    text += fmt::format("{} ", name_of(op.kind));
    if (op.kind == Kind::kMove)
      text += quote_name(shown_path(op.from)) + " -> ";
    text += quote_name(shown_path(op.path));
    if (op.kind == Kind::kTake || op.kind == Kind::kPut ||
        op.kind == Kind::kSwap)
      text += fmt::format(" ({}{})", op.slot, op.moving ? ", moving" : "");
    if (op.kind == Kind::kAttr)
      text += fmt::format(" ({:04o})", plan.items[op.item].fresh->mode);
    text += "\n";
  }
  return text;
}

}  // namespace stoplog::gate
