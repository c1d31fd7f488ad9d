// SPDX-License-Identifier: Apache-2.0
#include "gate/switcher.h"

#include <linux/fs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/escape.h"
#include "gate/guard.h"

namespace stoplog::gate {
namespace {

using Kind = SwitchOp::Kind;
constexpr size_t kMaxParents = 256;
// Up to this size a file is always read again as it leaves. A larger one only
// when its times say that it may have changed since it was verified: reading
// gigabytes here would keep readers looking at a mixture.
constexpr uint64_t kReadAgain = 1u << 20;

std::string name_in(const RelPath& path) { return std::string(path.name()); }

// Nothing moved since it was verified, and the verification was not so soon
// after a change that the clock could hide another one behind it.
bool is_unmoved(const sys::Stat& seen, const sys::Stat& now) {
  auto same = [](const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
  };
  timespec clock = Clock::real().now();
  return seen.ino == now.ino && seen.dev == now.dev && seen.size == now.size &&
         same(seen.mtime, now.mtime) && same(seen.ctime, now.ctime) &&
         seen.ctime.tv_sec + 2 < clock.tv_sec;
}

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

Status Switcher::leave(const LiveOp& live, int dir, const std::string& name) {
  if (live.op.kind == Kind::kSwap)
    return disk_.rename(stage(live), slot(live), dir, name, RENAME_EXCHANGE);
  return disk_.rename(dir, name, stage(live), slot(live), RENAME_NOREPLACE);
}

Status Switcher::put_back(const LiveOp& live, int dir,
                          const std::string& name) {
  if (live.op.kind == Kind::kSwap)
    return disk_.rename(stage(live), slot(live), dir, name, RENAME_EXCHANGE);
  return disk_.rename(stage(live), slot(live), dir, name, RENAME_NOREPLACE);
}

// An edit can come in four ways. By a writer that has the file open: the guard
// is busy. Before the guard: the content differs. By a rename onto the name
// between the guard and our rename: another inode came out. By a writer that
// waits for the guard: it is wanted. In each the old file gets its name back
// before the guard ends, and the writer goes on with the right one.
Status Switcher::leave_guarded(const LiveOp& live, int dir,
                               const std::string& name) {
  const Item& item = this->item(live);
  auto drifted = [&](std::string_view what) {
    return fail(Code::kDrift, "the real tree is not what the draft saw: {} {}",
                quote_name(live.op.path.str()), what);
  };
  Guard guard = TRY(Guard::take(disk_, dir, name));
  if (guard.busy()) return drifted("is open for writing by another program");
  const sys::Stat& now = guard.stat();
  if (!S_ISREG(now.mode)) return drifted("is no file any more");
  if (now.size <= kReadAgain || !is_unmoved(*item.old_stat, now)) {
    Standing standing = TRY(disk_.look_open(guard.fd(), now));
    std::string what = difference(*item.old, standing.node);
    if (!what.empty()) return drifted(what);
  }
  TRY(leave(live, dir, name));
  auto out = TRY(disk_.statat(stage(live), slot(live)));
  bool other = !out || gate::identity_of(*out) != gate::identity_of(now) ||
               out->mode != now.mode || out->uid != now.uid ||
               out->gid != now.gid;
  if (other || guard.is_wanted()) {
    TRY(put_back(live, dir, name));
    // Saved twice, once before and once after our rename: the later one has
    // the name, the roll-back keeps and names the other.
    if (live.op.kind == Kind::kSwap &&
        TRY(identity_at(stage(live), slot(live))) != live.fresh_id)
      TRY(put_back(live, dir, name));
    return drifted("was saved by another program during the commit");
  }
  if (guard.holds()) sealed_.insert(live.op.item);
  return {};
}

Status Switcher::perform(const LiveOp& live) {
  const SwitchOp& op = live.op;
  int dir = TRY(parent(op.path));
  std::string name = name_in(op.path);
  switch (op.kind) {
    case Kind::kTake:
      if (item(live).old->is_file() && !op.moving)
        return leave_guarded(live, dir, name);
      TRY(leave(live, dir, name));
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
      if (item(live).old->is_file())
        TRY(leave_guarded(live, dir, name));
      else
        TRY(leave(live, dir, name));
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
  if (sealed_.contains(live.op.item)) return std::nullopt;
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
