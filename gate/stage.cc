// SPDX-License-Identifier: Apache-2.0
#include "gate/stage.h"

#include <linux/fs.h>
#include <unistd.h>

#include <algorithm>

#include "base/escape.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/shown_path.h"
#include "fs/beneath.h"
#include "fs/real.h"

namespace stoplog::gate {
namespace {

std::string parent_text(const std::string& place) {
  size_t slash = place.rfind('/');
  return slash == std::string::npos ? std::string() : place.substr(0, slash);
}
std::string name_text(const std::string& place) {
  size_t slash = place.rfind('/');
  return slash == std::string::npos ? place : place.substr(slash + 1);
}
std::string where(const StagePlace& place) {
  if (place.in_state) return "cannot make the stage";
  return "cannot make the stage in " +
         (place.dir.is_root() ? "the workspace"
                              : quote_name(shown_path(place.dir)));
}
constexpr size_t kRun = 32;

}  // namespace

StageSet::StageSet(const Disk& disk, int root, int pending, std::string id,
                   bool in_state)
    : disk_(disk),
      root_(root),
      pending_(pending),
      id_(std::move(id)),
      in_state_(in_state) {}

Result<uint64_t> StageSet::mount_of(const RelPath& dir) {
  if (auto known = mounts_.find(dir); known != mounts_.end())
    return known->second;
  auto fd = disk_.open_dir(root_, dir);
  uint64_t mount = 0;
  if (fd) {
    mount = TRY(sys::fstat(fd->get())).mount_id;
  } else if (!dir.is_root() &&
             (fd.error().err() == ENOENT || fd.error().err() == ENOTDIR ||
              fd.error().err() == ELOOP)) {
    mount = TRY(mount_of(dir.parent()));
  } else {
    return std::unexpected(
        std::move(fd.error()).context(quote_name(shown_path(dir))));
  }
  mounts_.emplace(dir, mount);
  return mount;
}

Result<RelPath> StageSet::top_of(const RelPath& dir, uint64_t mount) {
  RelPath top = dir;
  // Down to a directory that exists, then up as long as the mount is the same.
  while (!top.is_root()) {
    auto fd = disk_.open_dir(root_, top);
    if (fd && TRY(mount_of(top.parent())) != mount) break;
    top = top.parent();
  }
  return top;
}

Result<uint32_t> StageSet::stage_for(const RelPath& path) {
  // Most paths lie in the directory of the one before.
  std::string_view dir = path.str();
  dir = dir.substr(0, dir.rfind('/') == dir.npos ? 0 : dir.rfind('/'));
  if (asked_ && asked_->first == dir) return asked_->second;
  uint64_t mount = TRY(mount_of(path.parent()));
  auto known = by_mount_.find(mount);
  uint32_t stage =
      known != by_mount_.end() ? known->second : TRY(add_stage(path, mount));
  asked_ = {std::string(dir), stage};
  return stage;
}

Result<uint32_t> StageSet::add_stage(const RelPath& path, uint64_t mount) {
  StagePlace place;
  sys::Stat state = TRY(sys::fstat(pending_));
  place.in_state = in_state_ && state.mount_id == mount;
  if (!place.in_state) place.dir = TRY(top_of(path.parent(), mount));
  uint32_t stage = static_cast<uint32_t>(places_.size());
  places_.push_back(std::move(place));
  by_mount_.emplace(mount, stage);
  return stage;
}

bool StageSet::is_in_state() const {
  return std::ranges::any_of(places_, &StagePlace::in_state);
}

std::vector<RelPath> StageSet::in_tree() const {
  std::vector<RelPath> dirs;
  for (const StagePlace& place : places_)
    if (!place.in_state) dirs.push_back(place.dir);
  return dirs;
}

Status StageSet::make() {
  dirs_.clear();
  for (uint32_t i = 0; i < places_.size(); ++i) TRY(make_one(i));
  return {};
}

Status StageSet::make_one(uint32_t stage) {
  StagePlace& place = places_[stage];
  Fd top;
  std::string name(kStageName);
  if (!place.in_state) {
    top = TRY(disk_.open_dir(root_, place.dir));
    name = std::string(kTreeStagePrefix) + id_;
  }
  int parent = place.in_state ? pending_ : top.get();
  TRY_CTX(disk_.mkdirat(parent, name, 0700), where(place));
  if (!place.in_state) {
    sys::Stat stat = TRY(sys::fstat(parent));
    place.ino = stat.ino;
    place.birth = stat.btime;
  }
  dirs_.push_back(TRY(disk_.openat(parent, name, O_RDONLY | O_DIRECTORY)));
  // A default ACL of the directory above would show in every file made here.
  (void)sys::fremovexattr(dirs_.back().get(), "system.posix_acl_default");
  (void)sys::fremovexattr(dirs_.back().get(), "system.posix_acl_access");
  TRY(sys::fchmod(dirs_.back().get(), 0700));
  return probe(dirs_.back().get());
}

Status StageSet::probe(int dir) const {
  for (const char* name : {"probe-a", "probe-b"})
    TRY(disk_.openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600));
  Status swapped =
      disk_.rename(dir, "probe-a", dir, "probe-b", RENAME_EXCHANGE);
  for (const char* name : {"probe-a", "probe-b"})
    TRY(disk_.unlinkat(dir, name));
  if (swapped) return {};
  if (swapped.error().err() != EINVAL && swapped.error().err() != ENOSYS &&
      swapped.error().err() != EOPNOTSUPP)
    return swapped;
  return fail(Code::kUnsupported,
              "the file system here ({}) cannot exchange two names, so a "
              "commit could not be all or nothing",
              disk_.kind_of(dir).name);
}

Status StageSet::open(const std::vector<StagePlace>& places,
                      Unreadable unreadable) {
  places_ = places;
  dirs_.clear();
  for (const StagePlace& place : places_) {
    Fd top;
    std::string name(kStageName);
    if (!place.in_state) {
      auto opened = disk_.open_dir(root_, place.dir);
      if (!opened) {
        dirs_.emplace_back();
        continue;
      }
      top = std::move(*opened);
      name = std::string(kTreeStagePrefix) + id_;
    }
    auto dir = disk_.openat(place.in_state ? pending_ : top.get(), name,
                            O_RDONLY | O_DIRECTORY);
    if (!dir && dir.error().err() != ENOENT && unreadable == Unreadable::kFails)
      return std::unexpected(dir.error());
    dirs_.push_back(dir ? std::move(*dir) : Fd());
  }
  return {};
}

// Where a mount point has nothing mounted on it, or something else, the stage
// is not lost: it is elsewhere.
Result<Fd> StageSet::find_top(const StagePlace& place) {
  std::string hint = fmt::format(
      "mount it at {} again; if it is gone for good, `stoplog undo --give-up` "
      "takes back the rest",
      quote_name(shown_path(place.dir)));
  auto waits = [&](const char* why) {
    std::string text = fmt::format(
        "a commit was interrupted, and what it was about to do is on a file "
        "system that {}",
        why);
    return std::unexpected(
        Error(Code::kUnsupported, std::move(text)).with_hint(hint));
  };
  auto top = disk_.open_dir(root_, place.dir);
  if (!top && fs::is_absence(top.error())) return waits("is not there");
  if (!top)
    return std::unexpected(std::move(top.error())
                               .context("an interrupted commit waits for " +
                                        quote_name(shown_path(place.dir)))
                               .with_hint(hint));
  if (place.dir.is_root()) return std::move(*top);
  sys::Stat stat = TRY(sys::fstat(top->get()));
  if (stat.mount_id == TRY(mount_of(place.dir.parent())))
    return waits("is not there");
  if (place.ino != 0 &&
      (stat.ino != place.ino || !fs::same_time(stat.btime, place.birth)))
    return waits("is not the one that is there now");
  return std::move(*top);
}

Status StageSet::restore() {
  Status all;
  for (uint32_t i = 0; i < places_.size(); ++i) {
    if (dirs_[i]) continue;
    Status one = restore_one(i);
    if (all && !one) all = std::move(one);
  }
  return all;
}

Status StageSet::restore_one(uint32_t stage) {
  const StagePlace& place = places_[stage];
  std::string name(kStageName);
  Fd top;
  if (!place.in_state) {
    top = TRY(find_top(place));
    name = std::string(kTreeStagePrefix) + id_;
  }
  int parent = place.in_state ? pending_ : top.get();
  TRY_CTX(disk_.mkdirat(parent, name, 0700), where(place));
  dirs_[stage] = TRY(disk_.openat(parent, name, O_RDONLY | O_DIRECTORY));
  return {};
}

void StageSet::abandon(uint32_t stage) {
  abandoned_.insert(stage);
  dirs_[stage].reset();
}

Status StageSet::sync() const {
  for (uint32_t i = 0; i < dirs_.size(); ++i)
    if (!is_abandoned(i)) TRY(disk_.syncfs(dirs_[i].get()));
  return {};
}

Status StageSet::remove() {
  last_ = {};
  dirs_.clear();
  for (uint32_t i = 0; i < places_.size(); ++i) {
    const StagePlace& place = places_[i];
    if (is_abandoned(i)) continue;
    if (place.in_state) {
      TRY(disk_.remove_tree(pending_, std::string(kStageName)));
      continue;
    }
    auto top = disk_.open_dir(root_, place.dir);
    if (!top && fs::is_absence(top.error())) continue;
    if (!top) return std::unexpected(std::move(top.error()));
    std::string name = std::string(kTreeStagePrefix) + id_;
    Fd dir = TRY(sys::openat(top->get(), ".", O_RDONLY | O_DIRECTORY));
    // Never made where nothing may be written, and nothing removed either.
    if (TRY(disk_.statat(dir.get(), name)))
      TRY(disk_.remove_tree(dir.get(), name));
    // Another disk than the state's: nobody looks for it once the intent is
    // gone.
    TRY(disk_.step("fsync"));
    TRY(sys::fsync(dir.get()));
  }
  return {};
}

Result<int> StageSet::parent_of(LastDir& last, int stage,
                                const std::string& place) const {
  std::string parent = parent_text(place);
  if (parent.empty()) return stage;
  if (last.stage == stage && last.place == parent) return last.fd.get();
  // A tree deeper than PATH_MAX is walked down one name at a time.
  bool below = last.stage == stage && parent_text(parent) == last.place &&
               !last.place.empty();
  if (below) {
    TRY(disk_.step("openat"));
    last.fd = TRY(
        sys::openat(last.fd.get(), name_text(parent), O_RDONLY | O_DIRECTORY));
  } else {
    TRY(disk_.step("openat2"));
    last.fd = TRY(fs::open_deep(stage, parent, O_RDONLY | O_DIRECTORY));
  }
  last.stage = stage;
  last.place = std::move(parent);
  return last.fd.get();
}

void StageSet::note_missed(const Item& item,
                           const std::vector<std::string>& missed,
                           SwitchRecord& record) {
  for (const std::string& what : missed)
    record.warnings.push_back(quote_name(shown_path(item.path)) + ": " + what +
                              " could not be set");
}

Result<StageSet::Made> StageSet::make_file(int dir, const std::string& name,
                                           const Item& item) const {
  // Nobody else can reach the stage: it may have its own mode at once.
  Fd fd = TRY(disk_.openat(dir, name, O_RDWR | O_CREAT | O_EXCL,
                           item.fresh->mode & 0777));
  Sha256Digest digest = TRY(disk_.write_content(fd.get(), *item.content));
  if (digest != *item.fresh->sha256)
    return fail(Code::kDrift, "{} is not what was approved",
                quote_name(shown_path(item.path)));
  Made made;
  made.stat =
      TRY(disk_.set_new_attributes(fd.get(), *item.fresh, &made.missed));
  return made;
}

// Most of a commit: files of their own, in directories that are made by now, on
// several threads. Those that follow each other lie in the same directory.
Status StageSet::make_files(const CommitPlan& plan, SwitchRecord& record) {
  std::vector<const StageOp*> files;
  for (const StageOp& op : plan.stage)
    if (plan.items[op.item].fresh->is_file() && !op.link_of && !op.link_real)
      files.push_back(&op);
  std::vector<Made> made(files.size());
  size_t runs = (files.size() + kRun - 1) / kRun;
  TRY(parallel_for(runs, 0, [&](size_t run) -> Status {
    TRY(check_interrupt());
    LastDir last;
    size_t end = std::min(files.size(), (run + 1) * kRun);
    for (size_t i = run * kRun; i < end; ++i) {
      const StageOp& op = *files[i];
      const Item& item = plan.items[op.item];
      auto make = [&]() -> Result<Made> {
        int dir = TRY(parent_of(last, fd(stage_of_[op.item]), op.place));
        return make_file(dir, name_text(op.place), item);
      };
      made[i] = TRY_CTX(make(), quote_name(shown_path(item.path)));
    }
    return {};
  }));
  for (size_t i = 0; i < files.size(); ++i) {
    note_missed(plan.items[files[i]->item], made[i].missed, record);
    record.now[files[i]->item] = made[i].stat;
  }
  return {};
}

// Files of others (fs.protected_hardlinks), too many names, another mount. On
// one mount the stage may have to stand elsewhere, which the caller tries.
Result<bool> StageSet::link_failed(const CommitPlan& plan, const StageOp& op,
                                   Error error, SwitchRecord& record) {
  const Item& item = plan.items[op.item];
  const Item& other =
      plan.items[op.link_real ? *op.link_real : plan.stage[*op.link_of].item];
  bool elsewhere = error.err() == EXDEV;
  if (elsewhere && in_state_ &&
      TRY(mount_of(item.path.parent())) ==
          TRY(mount_of(other.base_path().parent())))
    return std::unexpected(std::move(error));
  if (!elsewhere && error.err() != EPERM && error.err() != EMLINK)
    return std::unexpected(std::move(error));
  if (item.fresh->is_file() && !item.content)
    return std::unexpected(std::move(error));
  record.warnings.push_back(fmt::format(
      "{} could not be made a link of {} and is a file of its own: {}",
      quote_name(shown_path(item.path)), quote_name(shown_path(other.path)),
      error.text()));
  return false;
}

// Of a file that stands in the real tree: exactly the one that was verified, as
// it was, and nothing of it is touched but the number of its names.
Result<bool> StageSet::make_link(const CommitPlan& plan, const StageOp& op,
                                 int stage, int dir, SwitchRecord& record) {
  std::string name = name_text(op.place);
  if (!op.link_real) {
    const StageOp& leader = plan.stage[*op.link_of];
    if (stage_of_[leader.item] != stage_of_[op.item])
      return link_failed(plan, op, Error(EXDEV), record);
    Fd from = TRY(
        fs::open_deep(stage, parent_text(leader.place), O_PATH | O_DIRECTORY));
    Status linked =
        disk_.linkat(from.get(), name_text(leader.place), dir, name);
    if (!linked) return link_failed(plan, op, linked.error(), record);
    record.now[op.item] = TRY(disk_.statat(dir, name));
    return true;
  }
  const Item& real = plan.items[*op.link_real];
  Fd from = TRY(disk_.open_dir(root_, real.base_path().parent()));
  Status linked =
      disk_.linkat(from.get(), std::string(real.base_path().name()), dir, name);
  bool gone = !linked && linked.error().err() == ENOENT;
  if (!linked && !gone) return link_failed(plan, op, linked.error(), record);
  std::optional<Standing> standing;
  if (!gone) standing = TRY(disk_.look(dir, name, true));
  if (!standing || identity_of(standing->stat) != identity_of(*real.old_stat) ||
      !difference(*real.old, standing->node).empty())
    return fail(Code::kDrift,
                "the real tree is not what the draft saw: {} was saved by "
                "another program during the commit",
                quote_name(shown_path(real.base_path())));
  record.now[op.item] = standing->stat;
  return true;
}

Status StageSet::make_node(const CommitPlan& plan, const StageOp& op, int stage,
                           SwitchRecord& record) {
  int dir = TRY(parent_of(last_, stage, op.place));
  if ((op.link_of || op.link_real) &&
      TRY(make_link(plan, op, stage, dir, record)))
    return {};
  return make_alone(op, plan.items[op.item], stage, dir, record);
}

Status StageSet::make_alone(const StageOp& op, const Item& item, int stage,
                            int dir, SwitchRecord& record) {
  const Node& node = *item.fresh;
  std::string name = name_text(op.place);
  switch (node.type) {
    case fs::Type::kFile: {
      Made made = TRY(make_file(dir, name, item));
      note_missed(item, made.missed, record);
      record.now[op.item] = made.stat;
      return {};
    }
    case fs::Type::kDir:
      // Its attributes are set when all is made beneath it.
      return disk_.mkdirat(dir, name, 0700);
    case fs::Type::kSymlink:
      TRY(disk_.symlinkat(node.target, dir, name));
      break;
    default:
      TRY(disk_.mknodat(dir, name, fs::mode_of(node.type) | 0600, node.rdev));
  }
  return finish_node(stage, op, item, record);
}

Status StageSet::finish_node(int stage, const StageOp& op, const Item& item,
                             SwitchRecord& record) {
  int dir = TRY(parent_of(last_, stage, op.place));
  Fd fd = TRY(disk_.openat(dir, name_text(op.place), O_PATH));
  Node node = *item.fresh;
  // Who is not root can neither move a directory that he may not write to nor
  // look into one that is shut; the switch sets the mode at its end.
  if (node.is_dir()) node.mode |= 0700;
  std::vector<std::string> missed;
  TRY(disk_.set_attributes(fd.get(), node, &item.fresh->mtime, &missed));
  note_missed(item, missed, record);
  record.now[op.item] = TRY(sys::fstat(fd.get()));
  return {};
}

Status StageSet::fill(const CommitPlan& plan,
                      const std::vector<uint32_t>& stage_of,
                      SwitchRecord& record) {
  for (const Fd& dir : dirs_)
    if (FsKind kind = disk_.kind_of(dir.get()); kind.network)
      record.warnings.push_back(fmt::format(
          "{} is a network file system: a save from another machine at the "
          "moment of the commit may not be seen",
          kind.name));
  stage_of_ = stage_of;
  record.now.assign(plan.items.size(), std::nullopt);
  record.places.assign(plan.items.size(), "");
  auto make = [&](const StageOp& op) -> Status {
    TRY_CTX(make_node(plan, op, fd(stage_of[op.item]), record),
            quote_name(shown_path(plan.items[op.item].path)));
    return {};
  };
  auto is_dir = [&](const StageOp& op) {
    return plan.items[op.item].fresh->is_dir();
  };
  for (const StageOp& op : plan.stage) record.places[op.item] = op.place;
  for (const StageOp& op : plan.stage)
    if (is_dir(op)) TRY(make(op));
  TRY(make_files(plan, record));
  // What is left: links, of files that stand by now, and what is no file.
  for (const StageOp& op : plan.stage)
    if (!is_dir(op) && !record.now[op.item]) TRY(make(op));
  for (auto op = plan.stage.rbegin(); op != plan.stage.rend(); ++op) {
    const Item& item = plan.items[op->item];
    if (!item.fresh->is_dir()) continue;
    TRY_CTX(finish_node(fd(stage_of[op->item]), *op, item, record),
            quote_name(shown_path(item.path)));
  }
  last_ = {};
  return {};
}

}  // namespace stoplog::gate
