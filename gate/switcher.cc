// SPDX-License-Identifier: Apache-2.0
#include "gate/switcher.h"

#include <linux/fs.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/escape.h"
#include "base/shown_path.h"
#include "fs/beneath.h"
#include "gate/guard.h"
#include "gate/name_in.h"

namespace stoplog::gate {
namespace {

using Kind = SwitchOp::Kind;
constexpr size_t kMaxParents = 256;
// Saves of one name that fall between our renames. One is rare.
constexpr int kMaxAsides = 64;
constexpr const char* kSaved = "was saved by another program during the commit";

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// A number may be given to somebody's new file as soon as ours is removed; the
// time of birth tells them apart.
bool is_same_file(const sys::Stat& a, const sys::Stat& b) {
  return identity_of(a) == identity_of(b) && same_time(a.btime, b.btime);
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
      expected_(std::move(expected)),
      max_parents_(kMaxParents) {
  std::map<std::pair<dev_t, uint64_t>, size_t> real;
  for (size_t i = 0; i < record_.items.size(); ++i) {
    const Item& item = record_.items[i];
    bool keeps = item.old_stat && item.fresh && !item.fresh->is_dir();
    if (keeps && record_.places[i].empty())
      real.emplace(std::pair(item.old_stat->dev, item.old_stat->ino), i);
  }
  for (size_t i = 0; i < record_.items.size() && !real.empty(); ++i) {
    const auto& now = record_.now[i];
    if (record_.places[i].empty() || !now || now->nlink < 2) continue;
    auto whose = real.find(std::pair(now->dev, now->ino));
    if (whose != real.end()) shares_.emplace(i, whose->second);
  }
}

Result<int> Switcher::parent(const RelPath& path) {
  RelPath dir = path.parent();
  if (auto known = parents_.find(dir); known != parents_.end()) {
    recent_.splice(recent_.begin(), recent_, known->second.used);
    return known->second.fd.get();
  }
  Fd fd = TRY_CTX(disk_.open_dir(root_, dir), quote_name(shown_path(dir)));
  auto expected = expected_.find(dir);
  if (expected != expected_.end() &&
      identity_of(TRY(sys::fstat(fd.get()))) != expected->second)
    return std::unexpected(Error(Code::kDrift,
                                 fmt::format("the directory {} was replaced",
                                             quote_name(shown_path(dir))),
                                 ESTALE));
  if (parents_.size() >= max_parents_) {
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

// A second name for what was moved to `name` and is not ours.
Status Switcher::set_aside(const LiveOp& live, int dir,
                           const std::string& name) {
  auto stat = TRY(disk_.statat(dir, name));
  if (!stat || !S_ISREG(stat->mode)) return {};
  Aside aside{live.op.path, {}, false};
  auto guard = Guard::take(disk_, dir, name, Guard::Wait::kNo);
  if (guard) aside.guard = std::move(*guard);
  for (int i = 0; i < kMaxAsides; ++i) {
    Status linked = disk_.linkat(dir, name, stage(live),
                                 fmt::format("{}.{}", live.op.slot, i));
    // Files of others may not be linked (fs.protected_hardlinks).
    aside.linked = linked.has_value();
    if (linked || linked.error().err() != EEXIST) break;
  }
  asides_.push_back(std::move(aside));
  return {};
}

Switcher::CameOut Switcher::exchange(const LiveOp& live, int dir,
                                     const std::string& name, Identity expected,
                                     std::optional<sys::Stat> in) {
  if (!in) in = TRY(disk_.statat(stage(live), slot(live)));
  if (!in) return fail_errno(ENOENT);
  // Without a time of birth it is kept open, so that its number is not given
  // to somebody's new file meanwhile.
  Fd alive;
  if (in->btime.tv_sec == 0)
    alive = TRY(disk_.openat(stage(live), slot(live), O_PATH));
  TRY(disk_.rename(stage(live), slot(live), dir, name, RENAME_EXCHANGE));
  return exchanged(live, dir, name, expected, *in);
}

Switcher::CameOut Switcher::exchanged(const LiveOp& live, int dir,
                                      const std::string& name,
                                      Identity expected, const sys::Stat& in) {
  auto out = TRY(disk_.statat(stage(live), slot(live)));
  if (out && identity_of(*out) == expected) return out;
  TRY(exchange_back(live, dir, name, in, out.value_or(sys::Stat{})));
  return std::nullopt;
}

// Each save that comes out is newer than the one before, and goes back in: it
// ends when what comes out is what was put in last.
Status Switcher::exchange_back(const LiveOp& live, int dir,
                               const std::string& name, sys::Stat in,
                               sys::Stat out) {
  for (int i = 0; i < kMaxAsides; ++i) {
    TRY(set_aside(live, stage(live), slot(live)));
    Status back =
        disk_.rename(stage(live), slot(live), dir, name, RENAME_EXCHANGE);
    if (!back && back.error().err() == ENOENT) {
      // Gone by now, as with editors that move a file away before they save.
      back = disk_.rename(stage(live), slot(live), dir, name, RENAME_NOREPLACE);
      if (back) return {};
      if (back.error().err() == EEXIST) continue;
    }
    if (!back) return back;
    sys::Stat came =
        TRY(disk_.statat(stage(live), slot(live))).value_or(sys::Stat{});
    if (is_same_file(came, in)) return {};
    in = out;
    out = came;
  }
  return {};
}

Switcher::CameOut Switcher::take_out(const LiveOp& live, int dir,
                                     const std::string& name,
                                     Identity expected) {
  TRY(disk_.rename(dir, name, stage(live), slot(live), RENAME_NOREPLACE));
  return taken_out(live, dir, name, expected);
}

Switcher::CameOut Switcher::taken_out(const LiveOp& live, int dir,
                                      const std::string& name,
                                      Identity expected) {
  auto out = TRY(disk_.statat(stage(live), slot(live)));
  if (out && identity_of(*out) == expected) return out;
  TRY(set_aside(live, stage(live), slot(live)));
  // Where there is a newer one by now, this one stays in the stage, and is
  // kept and named.
  Status back =
      disk_.rename(stage(live), slot(live), dir, name, RENAME_NOREPLACE);
  if (!back && back.error().err() != EEXIST)
    return std::unexpected(back.error());
  return std::nullopt;
}

// from -> name, the same once more.
Switcher::CameOut Switcher::move_over(const LiveOp& live, int dir,
                                      const std::string& name,
                                      Identity expected) {
  int from = TRY(parent(live.op.from));
  std::string before = name_in(live.op.from);
  TRY(disk_.rename(from, before, dir, name, RENAME_NOREPLACE));
  if (item(live).old->is_dir()) forget(live.op.from);
  auto out = TRY(disk_.statat(dir, name));
  if (out && identity_of(*out) == expected) return out;
  TRY(set_aside(live, dir, name));
  Status back = disk_.rename(dir, name, from, before, RENAME_NOREPLACE);
  if (!back && back.error().err() != EEXIST)
    return std::unexpected(back.error());
  return std::nullopt;
}

Switcher::CameOut Switcher::step(const LiveOp& live, int dir,
                                 const std::string& name, Identity expected) {
  switch (live.op.kind) {
    case Kind::kSwap:
      return exchange(live, dir, name, expected, record_.now[live.op.item]);
    case Kind::kMove:
      return move_over(live, dir, name, expected);
    default:
      return take_out(live, dir, name, expected);
  }
}

std::unexpected<Error> Switcher::drifted(const LiveOp& live,
                                         std::string_view what) {
  return fail(Code::kDrift, "the real tree is not what the draft saw: {} {}",
              quote_name(shown_path(live.op.path)), what);
}

std::unexpected<Error> Switcher::saved(const LiveOp& live) {
  return drifted(live, kSaved);
}

Status Switcher::leave(const LiveOp& live, int dir, const std::string& name) {
  if (TRY(step(live, dir, name, live.old_id))) return {};
  return saved(live);
}

// The old file gets its name back.
Status Switcher::step_back(const LiveOp& live, int dir,
                           const std::string& name) {
  Status back;
  switch (live.op.kind) {
    case Kind::kSwap:
      TRY(exchange(live, dir, name, live.fresh_id));
      break;
    case Kind::kMove:
      back = disk_.rename(dir, name, TRY(parent(live.op.from)),
                          name_in(live.op.from), RENAME_NOREPLACE);
      break;
    default:
      back = disk_.rename(stage(live), slot(live), dir, name, RENAME_NOREPLACE);
  }
  if (!back && back.error().err() != EEXIST) return back;
  return {};
}

Status Switcher::change_in_place(const LiveOp& live, int dir,
                                 const std::string& name) {
  Fd fd = TRY(disk_.openat(dir, name, O_PATH));
  if (gate::identity_of(TRY(sys::fstat(fd.get()))) != live.old_id)
    return saved(live);
  std::vector<std::string> missed;
  TRY(disk_.set_attributes(fd.get(), *item(live).fresh, nullptr, &missed));
  for (const std::string& what : missed)
    warnings_.push_back(quote_name(shown_path(live.op.path)) + ": " + what +
                        " could not be set");
  return {};
}

Status Switcher::perform(const LiveOp& live) {
  begun_ = &live;
  TRY(give_way());
  const SwitchOp& op = live.op;
  int dir = TRY(parent(op.path));
  std::string name = name_in(op.path);
  if (next_held_ < held_.size() && held_[next_held_].live == &live) {
    ++next_held_;
    return move_held(live, dir, name);
  }
  switch (op.kind) {
    case Kind::kTake:
      if (item(live).old->is_file()) return leave_guarded(live, dir, name);
      TRY(leave(live, dir, name));
      if (item(live).old->is_dir()) forget(op.path);
      return {};
    case Kind::kRmdir:
      TRY(disk_.unlinkat(dir, name, AT_REMOVEDIR));
      forget(op.path);
      return {};
    case Kind::kPut:
      return disk_.rename(stage(live), slot(live), dir, name, RENAME_NOREPLACE);
    case Kind::kSwap:
      if (item(live).old->is_file()) return leave_guarded(live, dir, name);
      return leave(live, dir, name);
    case Kind::kMove:
      if (item(live).old->is_file()) return leave_guarded(live, dir, name);
      return leave(live, dir, name);
    case Kind::kAttr:
      return change_in_place(live, dir, name);
  }
  return {};
}

Result<std::optional<std::string>> Switcher::came_out(const LiveOp& live) {
  const SwitchOp& op = live.op;
  int dir = stage(live);
  std::string name = slot(live);
  if (op.kind == Kind::kAttr) {
    if (TRY(identity_at(TRY(parent(op.path)), name_in(op.path))) == live.old_id)
      return std::nullopt;
    return kSaved;
  }
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

Result<Identity> Switcher::identity_at(const RelPath& path) {
  auto dir = disk_.open_dir(root_, path.parent());
  if (!dir && is_absent(dir.error())) return Identity{};
  if (!dir) return std::unexpected(dir.error());
  return identity_at(dir->get(), name_in(path));
}

Result<bool> Switcher::is_shared(size_t index, int dir,
                                 const std::string& name) {
  auto whose = shares_.find(index);
  if (whose == shares_.end()) return false;
  Identity here = TRY(identity_at(dir, name));
  const Item& real = record_.items[whose->second];
  if (!here.known()) return false;
  // Moved by this commit, or not yet.
  return TRY(identity_at(real.path)) == here ||
         TRY(identity_at(real.base_path())) == here;
}

Result<std::vector<Drift>> Switcher::broken_links() {
  std::vector<Drift> drifts;
  for (const auto& [index, whose] : shares_) {
    const Item& item = record_.items[index];
    const Item& real = record_.items[whose];
    int dir = TRY(parent(item.path));
    auto standing = TRY(disk_.look(dir, name_in(item.path), true));
    bool same = standing && same_content(*item.fresh, standing->node) &&
                TRY(identity_at(real.path)) == identity_of(standing->stat);
    if (!same) drifts.push_back({real.path, whose, kSaved});
  }
  return drifts;
}

Result<std::optional<std::string>> Switcher::moved_parent() {
  for (const auto& [path, identity] : expected_) {
    auto dir = disk_.open_dir(root_, path);
    if (!dir && !is_absent(dir.error())) return std::unexpected(dir.error());
    if (!dir || gate::identity_of(TRY(sys::fstat(dir->get()))) != identity)
      return fmt::format("the directory {} was moved or replaced",
                         quote_name(shown_path(path)));
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

Result<bool> Switcher::is_staged_alone(size_t index, int dir,
                                       const std::string& name) {
  if (TRY(is_shared(index, dir, name))) return true;
  const Node& want = *record_.items[index].fresh;
  auto standing = TRY(disk_.look(dir, name, true));
  if (!standing || !same_content(want, standing->node)) return false;
  return want.is_dir() || want.mode == standing->node.mode ||
         want.type == fs::Type::kSymlink;
}

// By the place in which they were staged.
const Switcher::Members& Switcher::members_of(const std::string& place) {
  static const Members kNone;
  if (!members_) {
    members_.emplace();
    for (size_t i = 0; i < record_.places.size(); ++i)
      if (size_t slash = record_.places[i].rfind('/');
          slash != std::string::npos)
        (*members_)[record_.places[i].substr(0, slash)].emplace(
            record_.places[i].substr(slash + 1), i);
  }
  auto found = members_->find(place);
  return found == members_->end() ? kNone : found->second;
}

// A tree may be deeper than there may be files open: each directory is opened
// from the top.
Result<bool> Switcher::is_staged_tree(size_t index, int dir,
                                      const std::string& name) {
  if (!TRY(is_staged_alone(index, dir, name))) return false;
  std::vector<std::pair<size_t, std::string>> todo;
  if (record_.items[index].fresh->is_dir()) todo.emplace_back(index, name);
  while (!todo.empty()) {
    auto [at, way] = std::move(todo.back());
    todo.pop_back();
    TRY(disk_.step("openat2"));
    Fd inside = TRY(fs::open_deep(dir, way, O_RDONLY | O_DIRECTORY));
    auto names = TRY(list_names(inside.get(), "."));
    const Members& members = members_of(record_.places[at]);
    if (names.size() != members.size()) return false;
    for (const std::string& entry : names) {
      auto member = members.find(entry);
      if (member == members.end() ||
          !TRY(is_staged_alone(member->second, inside.get(), entry)))
        return false;
      if (record_.items[member->second].fresh->is_dir())
        todo.emplace_back(member->second, way + "/" + entry);
    }
  }
  return true;
}

}  // namespace stoplog::gate
