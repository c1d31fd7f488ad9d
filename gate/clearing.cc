// SPDX-License-Identifier: Apache-2.0
#include "gate/clearing.h"

#include <linux/fs.h>

#include <map>

#include "base/dir.h"
#include "base/escape.h"
#include "gate/guard.h"
#include "snapshot/content_digest.h"

namespace stoplog::gate {
namespace {

using Kind = SwitchOp::Kind;
constexpr size_t kMaxName = 255;

bool has_slot(const LiveOp& live) {
  return live.op.kind == Kind::kTake || live.op.kind == Kind::kPut ||
         live.op.kind == Kind::kSwap;
}

bool same(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

Result<Sha256Digest> Clearing::keep(int fd) {
  TRY(disk_.step("keep"));
  auto content = TRY(snapshot::file_content(TRY(sys::dup(fd))));
  return ground_.objects->put(*content);
}

// Ours to remove: the new thing as it was staged, or the old one as it was.
Result<bool> Clearing::is_ours(const LiveOp& live, const sys::Stat& stat,
                               int stage, const std::string& slot) {
  if (live.op.moving) return false;
  const auto& staged = record_.now[live.op.item];
  // Never was anywhere else: a rename sets the time of change.
  if (live.fresh_id.known() && gate::identity_of(stat) == live.fresh_id) {
    if (staged && same(staged->ctime, stat.ctime) && staged->size == stat.size)
      return true;
    return switcher_.is_fresh(live, stage, slot);
  }
  if (live.op.kind == Kind::kPut) return false;
  return switcher_.is_old(live, stage, slot);
}

// Beside the name that it had; at the top when that directory is gone, or takes
// nothing.
Result<std::string> Clearing::put_beside(const LiveOp& live, int stage,
                                         const std::string& slot) {
  RelPath parent = live.op.path.parent();
  auto opened = disk_.open_dir(ground_.root, parent);
  if (!opened) {
    parent = RelPath();
    opened = disk_.open_dir(ground_.root, parent);
  }
  Fd dir = TRY(std::move(opened));
  std::string suffix = ".kept-" + record_.meta.id.substr(0, 8);
  for (int i = 0;; ++i) {
    std::string tail = suffix + (i > 0 ? fmt::format("-{}", i) : "");
    std::string name(live.op.path.name());
    name.resize(std::min(name.size(), kMaxName - tail.size()));
    name += tail;
    Status moved = disk_.rename(stage, slot, dir.get(), name, RENAME_NOREPLACE);
    if (moved) return quote_name((parent / name).str());
    if (moved.error().err() != EEXIST && !parent.is_root()) {
      parent = RelPath();
      dir = TRY(disk_.open_dir(ground_.root, parent));
      continue;
    }
    if (moved.error().err() != EEXIST || i == 100)
      return std::unexpected(
          std::move(moved.error()).context("cannot keep " + quote_name(name)));
  }
}

Status Clearing::settle(const LiveOp& live, std::optional<Left> left) {
  int stage = stages_.fd(live.stage);
  std::string slot = std::to_string(live.op.slot);
  std::optional<sys::Stat> stat;
  if (has_slot(live) && stage >= 0) stat = TRY(disk_.statat(stage, slot));
  if (!stat) {
    if (left) all_.push_back(std::move(*left));
    return {};
  }
  // Its file has its other name.
  if (TRY(switcher_.is_shared(live.op.item, stage, slot)) && !live.op.moving) {
    if (left) all_.push_back(std::move(*left));
    return {};
  }
  Guard guard;
  bool is_file = S_ISREG(stat->mode) && !live.op.moving;
  // Waits for whoever writes to it.
  if (is_file) guard = TRY(Guard::take(disk_, stage, slot));
  bool ours = !guard.busy() && TRY(is_ours(live, *stat, stage, slot));
  if (ours && !left) return {};
  if (!left)
    left = Left{live.op.path,
                live.op.moving ? "could not be put in its place"
                               : "was written to during the commit",
                std::nullopt};
  if (is_file && !guard.busy())
    left->kept = TRY(keep(guard.fd()));
  else if (!ours)
    left->why +=
        "; what was there is now " + TRY(put_beside(live, stage, slot));
  all_.push_back(std::move(*left));
  return {};
}

Status Clearing::settle_asides() {
  constexpr const char* kSaved =
      "was saved during the commit, which put another file there for a moment; "
      "that save is kept besides";
  auto add = [&](const RelPath& path, int fd) -> Status {
    asides_.push_back({path, kSaved, TRY(keep(fd))});
    return {};
  };
  for (const Switcher::Aside& aside : switcher_.asides())
    if (!aside.linked && aside.guard.fd() >= 0)
      TRY(add(aside.path, aside.guard.fd()));
  std::map<std::string, const LiveOp*> by_slot;
  for (const LiveOp& live : record_.ops)
    if (has_slot(live) || live.op.kind == Kind::kMove)
      by_slot.emplace(std::to_string(live.op.slot), &live);
  for (uint32_t i = 0; i < record_.stages.size(); ++i) {
    if (stages_.fd(i) < 0) continue;
    for (const std::string& name : TRY(list_names(stages_.fd(i), "."))) {
      size_t dot = name.find('.');
      if (dot == std::string::npos) continue;
      auto live = by_slot.find(name.substr(0, dot));
      if (live == by_slot.end()) continue;
      Fd fd = TRY(disk_.openat(stages_.fd(i), name, O_RDONLY | O_NONBLOCK));
      TRY(add(live->second->op.path, fd.get()));
    }
  }
  switcher_.release_asides();
  return {};
}

Status Clearing::settle_all(std::vector<std::optional<Left>> lefts) {
  for (size_t i = 0; i < record_.ops.size(); ++i)
    TRY(settle(record_.ops[i], std::move(lefts[i])));
  return settle_asides();
}

std::vector<Left> Clearing::all() const {
  std::vector<Left> all = all_;
  all.insert(all.end(), asides_.begin(), asides_.end());
  return all;
}

}  // namespace stoplog::gate
