// SPDX-License-Identifier: Apache-2.0
// GitRule for refs and HEAD: compare-and-swap, loose or packed.
#include "gate/git_rule.h"

#include <algorithm>

#include "base/dir.h"
#include "base/escape.h"
#include "diff/git_object.h"
#include "fs/beneath.h"
#include "gate/git_undo.h"

namespace stoplog::gate {
namespace {

std::optional<Node> node_at(const std::optional<Standing>& standing) {
  return standing ? std::optional(standing->node) : std::nullopt;
}

}  // namespace

Status GitRule::read_packed() {
  if (packed_) return {};
  auto packed = TRY(real_text(beneath("packed-refs"), diff::kPackedRefsLimit));
  packed_ = packed ? *packed : "";
  packed_refs_ = TRY(diff::parse_packed_refs(*packed_));
  return {};
}

// Where a ref points in the real repository: loose first, then packed.
Result<std::optional<std::string>> GitRule::current(const std::string& ref) {
  if (auto loose = TRY(real_text(beneath(ref), diff::kRefFile)))
    return TRY(diff::parse_ref(*loose));
  TRY(read_packed());
  auto found = packed_refs_.find(ref);
  if (found == packed_refs_.end()) return std::nullopt;
  return found->second;
}

// git knows no ref beneath another one: what keeps this one from being made,
// and does not go with this commit.
Result<std::optional<std::string>> GitRule::in_the_way(
    const std::string& name) {
  for (size_t at = name.find('/'); at != name.npos;
       at = name.find('/', at + 1)) {
    std::string prefix = name.substr(0, at);
    if (!dropped_.contains(prefix) && TRY(current(prefix))) return prefix;
  }
  TRY(read_packed());
  for (auto at = packed_refs_.lower_bound(name + "/");
       at != packed_refs_.end() && at->first.starts_with(name + "/"); ++at)
    if (!dropped_.contains(at->first)) return at->first;
  for (const RelPath& path : TRY(loose_beneath(name)).files)
    if (std::string other(relative(path)); !dropped_.contains(other))
      return other;
  return std::nullopt;
}

// What stands beneath a directory where a ref shall be: git removes those that
// are empty.
Result<GitRule::Loose> GitRule::loose_beneath(const std::string& name) const {
  Loose loose;
  std::vector<RelPath> todo{beneath(name)};
  while (!todo.empty()) {
    RelPath dir = std::move(todo.back());
    todo.pop_back();
    auto at = disk_.open_dir(root_, dir);
    if (!at) continue;  // no directory
    if (dir != beneath(name)) loose.dirs.push_back(dir);
    for (const std::string& entry : TRY(list_names(at->get(), "."))) {
      auto stat = TRY(disk_.statat(at->get(), entry));
      if (stat && S_ISDIR(stat->mode)) todo.push_back(dir / entry);
      if (stat && !S_ISDIR(stat->mode)) loose.files.push_back(dir / entry);
    }
  }
  return loose;
}

Status GitRule::prepare_refs(std::vector<Item>& items,
                             const std::set<RelPath>& unlocked) {
  // What goes makes room for what comes.
  std::vector<diff::RefMove> moves = row_.git->refs;
  std::ranges::stable_partition(
      moves, [](const diff::RefMove& move) { return !move.to; });
  bool packed_locked = !unlocked.contains(beneath("packed-refs.lock"));
  for (const diff::RefMove& move : moves) {
    RelPath path = beneath(move.name);
    RelPath lock = beneath(move.name + ".lock");
    if (path.is_root() || lock.is_root()) continue;
    if (unlocked.contains(lock) || (!move.to && !packed_locked)) {
      notes_.push_back(escape(move.name) +
                       " is locked by a running git and was left");
      continue;
    }
    auto now = TRY(current(move.name));
    if (now == move.to) continue;  // there already
    if (now != move.from) {
      notes_.push_back(
          fmt::format("{} moved in the real repository to {} and was left; "
                      "the draft has it at {}",
                      escape(move.name), escape(now.value_or("nothing")),
                      escape(move.to.value_or("nothing"))));
      continue;
    }
    TRY(prepare_ref(items, move));
  }
  return drop_packed(items);
}

Status GitRule::prepare_ref(std::vector<Item>& items,
                            const diff::RefMove& move) {
  RelPath path = beneath(move.name);
  auto old = TRY(real(path));
  if (!move.to) {
    if (old && old->node.is_file()) {
      Item item;
      item.path = path;
      item.old = old->node;
      items.push_back(std::move(item));
    }
    dropped_.insert(move.name);
    return {};
  }
  // What an agent wrote there need not be one.
  if (!diff::parse_ref(*move.to)) {
    notes_.push_back(escape(move.name) +
                     " is no ref in the draft and was left");
    return {};
  }
  auto other = TRY(in_the_way(move.name));
  if (other || (old && !old->node.is_file() && !old->node.is_dir())) {
    notes_.push_back(
        other ? fmt::format("{} cannot stand beside {} of the real repository "
                            "and was left",
                            escape(move.name), escape(*other))
              : escape(move.name) +
                    " is no file in the real repository and was left");
    return {};
  }
  if (old && old->node.is_dir())
    for (const RelPath& dir : TRY(loose_beneath(move.name)).dirs) {
      Item item;
      item.path = dir;
      if (auto now = TRY(real(dir))) item.old = now->node;
      if (item.old) items.push_back(std::move(item));
    }
  if (!old && move.from) packed_moved_ = true;
  Node node = old && old->node.is_file() ? old->node : plain_node();
  node.mtime = owner_.mtime;
  items.push_back(text_item(path, node_at(old), node, *move.to + "\n"));
  return {};
}

// A deleted ref must not come back from packed-refs.
Status GitRule::drop_packed(std::vector<Item>& items) {
  if (dropped_.empty() && !packed_moved_) return {};
  TRY(read_packed());
  RelPath path = beneath("packed-refs");
  auto old = TRY(real(path));
  auto kept = without_refs(*packed_, dropped_);
  // An undo after git has packed anew must know what it said.
  if (!kept && packed_moved_ && old)
    items.push_back(text_item(path, old->node, old->node, *packed_));
  if (!kept) return {};
  items.push_back(text_item(path, node_at(old), old ? old->node : plain_node(),
                            std::move(*kept)));
  return {};
}

}  // namespace stoplog::gate
