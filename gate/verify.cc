// SPDX-License-Identifier: Apache-2.0
#include "gate/verify.h"

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/dir.h"
#include "base/escape.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/shown_path.h"
#include "fs/beneath.h"
#include "gate/fs_kind.h"
#include "gate/name_in.h"

namespace stoplog::gate {
namespace {

constexpr size_t kRun = 32;

class Verifier {
 public:
  Verifier(const Disk& disk, int root, std::vector<Item>& items)
      : disk_(disk), root_(root), items_(items) {}

  Result<Verified> run() {
    for (const Item& item : items_) {
      if (item.old && (!item.fresh || item.from || turns_over(item)))
        leaving_.insert(item.base_path());
      if (item.fresh && item.fresh->is_dir()) made_.insert(item.path);
    }
    TRY(look_at_all());
    for (size_t i = 0; i < items_.size(); ++i)
      TRY_CTX(verify(i), quote_name(shown_path(items_[i].path)));
    return std::move(verified_);
  }

 private:
  static bool turns_over(const Item& item) {
    return item.old->type != item.fresh->type;
  }

  void drift(size_t item, const RelPath& path, std::string what) {
    verified_.drifts.push_back({path, item, std::move(what)});
  }

  // Reading and hashing is what takes the time: items that follow each other
  // lie in the same directories, and are one thread's.
  Status look_at_all() {
    standing_.resize(items_.size());
    size_t runs = (items_.size() + kRun - 1) / kRun;
    std::vector<std::map<RelPath, Identity>> parents(runs);
    TRY(parallel_for(runs, 0, [&](size_t run) -> Status {
      TRY(check_interrupt());
      Fd dir;
      RelPath dir_path;
      size_t end = std::min(items_.size(), (run + 1) * kRun);
      for (size_t i = run * kRun; i < end; ++i) {
        if (!items_[i].old) continue;
        const RelPath& path = items_[i].base_path();
        RelPath parent = path.parent();
        if (!dir || parent != dir_path) {
          auto opened = disk_.open_dir(root_, parent);
          if (!opened && fs::is_absence(opened.error())) continue;
          if (!opened)
            return std::unexpected(std::move(opened.error())
                                       .context(quote_name(shown_path(path))));
          dir = std::move(*opened);
          dir_path = std::move(parent);
          parents[run].emplace(dir_path,
                               gate::identity_of(TRY(sys::fstat(dir.get()))));
        }
        standing_[i] = TRY_CTX(disk_.look(dir.get(), name_in(path), true),
                               quote_name(shown_path(path)));
      }
      return {};
    }));
    for (auto& some : parents)
      for (auto& [path, identity] : some)
        if (auto [known, is_new] = verified_.parents.emplace(path, identity);
            !is_new && known->second != identity)
          return fail(Code::kDrift,
                      "the real tree is not what the draft saw: {} was "
                      "replaced just now",
                      quote_name(shown_path(path)));
    return {};
  }

  // -1 when the directory does not exist (any more).
  Result<int> open_parent(const RelPath& path) {
    RelPath dir = path.parent();
    if (dir_ && dir == dir_path_) return dir_.get();
    auto opened = disk_.open_dir(root_, dir);
    if (!opened && fs::is_absence(opened.error())) return -1;
    if (!opened) return std::unexpected(opened.error());
    dir_ = std::move(*opened);
    dir_path_ = dir;
    verified_.parents.emplace(dir,
                              gate::identity_of(TRY(sys::fstat(dir_.get()))));
    return dir_.get();
  }

  Status verify(size_t i) {
    Item& item = items_[i];
    if (item.old) TRY(verify_old(i, item));
    if (item.fresh && (!item.old || item.from)) TRY(verify_free(i, item.path));
    return {};
  }

  Status verify_old(size_t i, Item& item) {
    const RelPath& path = item.base_path();
    std::optional<Standing> now = std::move(standing_[i]);
    if (!now) {
      drift(i, path, "is gone");
      return {};
    }
    // What a directory has inside is checked by its own items; its times and
    // size follow from that.
    std::string what = difference(*item.old, now->node);
    if (!what.empty()) {
      const timespec& when = what.find("content") != std::string::npos
                                 ? now->stat.mtime
                                 : now->stat.ctime;
      drift(i, path, what + ", since " + local_time(when));
      return {};
    }
    item.old_stat = now->stat;
    item.old->mtime = now->stat.mtime;
    bool goes = !item.fresh || (!item.from && turns_over(item));
    if (item.old->is_dir() && goes) TRY(verify_empty(i, path));
    return {};
  }

  // Everything in a directory that goes must go with it.
  Status verify_empty(size_t i, const RelPath& path) {
    int dir = TRY(open_parent(path));
    if (dir < 0) {
      drift(i, path, "is gone");
      return {};
    }
    for (const std::string& name : TRY(list_names(dir, name_in(path)))) {
      RelPath inside = path / name;
      if (!leaving_.contains(inside)) {
        drift(i, path,
              "cannot go: it has " + quote_name(shown_path(inside)) +
                  ", which was not approved for deletion");
        return {};
      }
    }
    return {};
  }

  Status verify_free(size_t i, const RelPath& path) {
    // What stands there now goes first, by itself or with a directory above.
    for (RelPath p = path; !leaving_.empty() && !p.is_root(); p = p.parent())
      if (leaving_.contains(p)) return {};
    int dir = TRY(open_parent(path));
    if (dir < 0) {
      if (!is_made(path.parent()))
        drift(i, path.parent(), "is gone, or is no directory now");
      return {};
    }
    std::string name(path.name());
    TRY(verify_case(i, dir, path));
    auto stat = TRY(disk_.statat(dir, name));
    if (!stat) return {};
    // Found by that name, and not listed by it: another one, but for case.
    for (const std::string& other : TRY(list_names(dir, ".")))
      if (equal_but_for_case(other, name)) {
        auto twin = TRY(disk_.statat(dir, other));
        if (!twin || twin->ino != stat->ino || twin->nlink > 1) continue;
        drift(i, path,
              "cannot stand beside " + quote_name(other) +
                  ": the file system does not tell names apart by case");
        return {};
      }
    drift(i, path,
          "appeared, at " +
              local_time(stat->btime.tv_sec != 0 ? stat->btime : stat->ctime));
    return {};
  }

  // Two new names that are one on this file system. The items are in order of
  // path, and those of one directory are looked at one after the other.
  Status verify_case(size_t i, int dir, const RelPath& path) {
    if (path.parent() != case_dir_ || !case_known_) {
      case_dir_ = path.parent();
      case_known_ = true;
      folds_case_ = disk_.kind_of(dir).folds_case;
      new_names_.clear();
    }
    if (!folds_case_) return {};
    std::string name(path.name());
    for (const std::string& other : new_names_)
      if (equal_but_for_case(other, name))
        drift(i, path,
              "cannot stand beside " + quote_name(other) +
                  ": the file system does not tell names apart by case");
    new_names_.push_back(std::move(name));
    return {};
  }

  // The directory comes with this commit: made, or within one that moves here.
  bool is_made(const RelPath& dir) const {
    for (RelPath p = dir; !p.is_root(); p = p.parent())
      if (made_.contains(p)) return true;
    return false;
  }

  const Disk& disk_;
  int root_;
  std::vector<Item>& items_;
  std::set<RelPath> leaving_, made_;
  std::vector<std::optional<Standing>> standing_;  // by item, what it was
  Verified verified_;
  Fd dir_;
  RelPath dir_path_;
  RelPath case_dir_;
  bool case_known_ = false, folds_case_ = false;
  std::vector<std::string> new_names_;
};

}  // namespace

Result<Verified> verify_base(const Disk& disk, int root,
                             std::vector<Item>& items) {
  return Verifier(disk, root, items).run();
}

Error drift_error(const std::vector<Drift>& drifts) {
  std::string text = "the real tree is not what the draft saw: ";
  constexpr size_t kShown = 20;
  for (size_t i = 0; i < drifts.size() && i < kShown; ++i) {
    if (i > 0) text += "; ";
    text += quote_name(shown_path(drifts[i].path)) + " " + drifts[i].what;
  }
  if (drifts.size() > kShown)
    text += fmt::format("; and {} more", drifts.size() - kShown);
  return Error(Code::kDrift, std::move(text));
}

}  // namespace stoplog::gate
