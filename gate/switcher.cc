// SPDX-License-Identifier: Apache-2.0
#include "gate/switcher.h"

#include <linux/fs.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/dir.h"
#include "base/escape.h"

namespace stoplog::gate {
namespace {

using Kind = SwitchOp::Kind;
constexpr size_t kMaxParents = 256;
// How long a program may take to finish a save that began before the switch.
constexpr auto kWriterPause = std::chrono::milliseconds(10);
constexpr int kWriterPauses = 30;

std::string name_in(const RelPath& path) { return std::string(path.name()); }

bool is_absent(const Error& error) {
  return error.err() == ENOENT || error.err() == ENOTDIR ||
         error.err() == ELOOP || error.err() == EXDEV;
}

}  // namespace

Switcher::Switcher(const Disk& disk, int root, const SwitchRecord& record,
                   const StageSet& stages, std::map<RelPath, Identity> expected)
    : disk_(disk),
      root_(root),
      record_(record),
      stages_(stages),
      expected_(std::move(expected)) {}

Result<int> Switcher::parent(const RelPath& path) {
  RelPath dir = path.parent();
  if (auto known = parents_.find(dir); known != parents_.end()) {
    recent_.splice(recent_.begin(), recent_, known->second.used);
    return known->second.fd.get();
  }
  Fd fd = TRY_CTX(disk_.open_dir(root_, dir), quote_name(dir.str()));
  auto expected = expected_.find(dir);
  if (expected != expected_.end() &&
      identity_of(TRY(sys::fstat(fd.get()))) != expected->second)
    return fail(Code::kDrift, "the directory {} was replaced",
                quote_name(dir.str()));
  if (parents_.size() >= kMaxParents) {
    parents_.erase(recent_.back());
    recent_.pop_back();
  }
  recent_.push_front(dir);
  int borrowed = fd.get();
  parents_.emplace(dir, Parent{std::move(fd), recent_.begin()});
  return borrowed;
}

// A step changed what `path` means: directories at and beneath it are another.
void Switcher::forget(const RelPath& path) {
  for (auto at = parents_.lower_bound(path);
       at != parents_.end() && at->first.is_within(path);) {
    recent_.erase(at->second.used);
    at = parents_.erase(at);
  }
  for (auto at = expected_.lower_bound(path);
       at != expected_.end() && at->first.is_within(path);)
    at = expected_.erase(at);
}

Switcher::MaybeLeft Switcher::left(const LiveOp& live, std::string why) const {
  return Left{live.op.path, std::move(why), std::nullopt};
}

Result<Identity> Switcher::identity_at(int dir, const std::string& name) {
  auto stat = TRY(disk_.statat(dir, name));
  return stat ? gate::identity_of(*stat) : Identity{};
}

Status Switcher::set_node(int dir, const std::string& name, const Node& node) {
  Fd fd = TRY(disk_.openat(dir, name, O_PATH));
  return disk_.set_attributes(fd.get(), node, nullptr, nullptr);
}

// A staged directory was kept writable until it stands in its place.
Status Switcher::set_final_mode(const LiveOp& live, int dir,
                                const std::string& name) {
  const Node& fresh = *item(live).fresh;
  if (live.op.moving || !fresh.is_dir() || (fresh.mode & 0700) == 0700)
    return {};
  return set_node(dir, name, fresh);
}

Status Switcher::perform(const LiveOp& live) {
  const SwitchOp& op = live.op;
  int dir = TRY(parent(op.path));
  std::string name = name_in(op.path);
  switch (op.kind) {
    case Kind::kTake:
      TRY(disk_.rename(dir, name, stage(live), slot(live), RENAME_NOREPLACE));
      if (item(live).old->is_dir()) forget(op.path);
      return {};
    case Kind::kRmdir:
      TRY(disk_.unlinkat(dir, name, AT_REMOVEDIR));
      forget(op.path);
      return {};
    case Kind::kPut:
      TRY(disk_.rename(stage(live), slot(live), dir, name, RENAME_NOREPLACE));
      return set_final_mode(live, dir, name);
    case Kind::kSwap:
      TRY(disk_.rename(stage(live), slot(live), dir, name, RENAME_EXCHANGE));
      return set_final_mode(live, dir, name);
    case Kind::kMove: {
      int from = TRY(parent(op.from));
      dir = TRY(parent(op.path));
      TRY(disk_.rename(from, name_in(op.from), dir, name, RENAME_NOREPLACE));
      if (item(live).old->is_dir()) forget(op.from);
      return {};
    }
    case Kind::kAttr:
      return set_node(dir, name, *item(live).fresh);
  }
  return {};
}

Result<std::optional<std::string>> Switcher::came_out(const LiveOp& live) {
  const SwitchOp& op = live.op;
  int dir = stage(live);
  std::string name = slot(live);
  if (op.kind == Kind::kMove) {
    dir = TRY(parent(op.path));
    name = name_in(op.path);
  } else if (op.kind != Kind::kTake && op.kind != Kind::kSwap) {
    return std::nullopt;
  }
  const Node& old = *item(live).old;
  bool moves = op.kind == Kind::kMove || op.moving;
  if (moves && old.is_dir()) {
    if (op.moving) return std::nullopt;  // it is at its place by now
    if (TRY(identity_at(dir, name)) == live.old_id) return std::nullopt;
    return "was replaced";
  }
  if (op.moving) {
    dir = TRY(parent(item(live).path));
    name = name_in(item(live).path);
  }
  if (old.is_file() && !moves) {
    // A program that opened the file before the switch may still write to it.
    for (int i = 0; TRY(disk_.has_writer(dir, name)); ++i) {
      if (i == kWriterPauses) return "is open for writing by another program";
      std::this_thread::sleep_for(kWriterPause);
    }
  }
  auto standing = TRY(disk_.look(dir, name, true));
  if (!standing) return "vanished";
  Node now = standing->node;
  if (moves) {
    // Its new attributes may have been set already.
    if (same_content(old, now)) return std::nullopt;
    return "has other content now";
  }
  std::string what = difference(old, now);
  if (what.empty()) return std::nullopt;
  return what;
}

Result<std::optional<std::string>> Switcher::moved_parent() {
  for (const auto& [path, identity] : expected_) {
    auto dir = disk_.open_dir(root_, path);
    if (!dir && !is_absent(dir.error())) return std::unexpected(dir.error());
    if (!dir || gate::identity_of(TRY(sys::fstat(dir->get()))) != identity)
      return fmt::format("the directory {} was moved or replaced",
                         quote_name(path.str()));
  }
  return std::nullopt;
}

Result<bool> Switcher::is_old(const LiveOp& live, int dir,
                              const std::string& name) {
  auto standing = TRY(disk_.look(dir, name, true));
  if (!standing) return false;
  const Node& old = *item(live).old;
  bool moves = live.op.moving || live.op.kind == Kind::kMove;
  if (moves && old.is_dir())
    return gate::identity_of(standing->stat) == live.old_id;
  if (moves) return same_content(old, standing->node);
  return difference(old, standing->node).empty();
}

Result<bool> Switcher::is_fresh(const LiveOp& live, int dir,
                                const std::string& name) {
  if (TRY(identity_at(dir, name)) != live.fresh_id) return false;
  return is_staged_tree(live.op.item, dir, name);
}

Result<bool> Switcher::is_staged_tree(size_t index, int dir,
                                      const std::string& name) {
  const Node& want = *record_.items[index].fresh;
  auto standing = TRY(disk_.look(dir, name, true));
  if (!standing || !same_content(want, standing->node)) return false;
  if (!want.is_dir())
    return want.mode == standing->node.mode || want.type == fs::Type::kSymlink;
  std::map<std::string, size_t> members;
  std::string prefix = record_.places[index] + "/";
  for (size_t i = 0; i < record_.places.size(); ++i) {
    const std::string& place = record_.places[i];
    if (place.starts_with(prefix) &&
        place.find('/', prefix.size()) == std::string::npos)
      members.emplace(place.substr(prefix.size()), i);
  }
  Fd inside = TRY(disk_.openat(dir, name, O_RDONLY | O_DIRECTORY));
  auto names = TRY(list_names(inside.get(), "."));
  if (names.size() != members.size()) return false;
  for (const std::string& entry : names) {
    auto member = members.find(entry);
    if (member == members.end() ||
        !TRY(is_staged_tree(member->second, inside.get(), entry)))
      return false;
  }
  return true;
}

}  // namespace stoplog::gate
