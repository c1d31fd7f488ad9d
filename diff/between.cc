// SPDX-License-Identifier: Apache-2.0
#include "diff/between.h"

#include <algorithm>
#include <map>
#include <set>

#include "diff/normalize.h"

namespace stoplog::diff {
namespace {

using fs::NodeState;
using fs::RawChange;

// One moment: what was touched, and where each moved node of the base was.
class Moment {
 public:
  static Result<Moment> at(const fs::View& view) {
    Moment moment(view);
    for (RawChange& change : TRY(normalize(view, TRY(view.changes())))) {
      moment.paths_.insert(change.path);
      if (change.from) {
        moment.paths_.insert(*change.from);
        moment.moved_.emplace(*change.from, change.path);
        moment.inverse_.add(*change.from, change.path);
      } else if (change.before) {
        // Deleted here, or something else stands at its path.
        if (!change.after || change.before->type != change.after->type)
          moment.gone_.insert(change.path);
      }
      if (!change.from && !change.before) moment.made_.insert(change.path);
      moment.commands_[change.path] = change.command;
    }
    return moment;
  }

  const std::set<RelPath>& paths() const { return paths_; }
  uint32_t command(const RelPath& path) const {
    auto it = commands_.find(path);
    return it == commands_.end() ? 0 : it->second;
  }

  // Where a node of the real tree was at this moment; nullopt: nowhere.
  std::optional<RelPath> place_of(const RelPath& origin) const {
    if (auto it = moved_.find(origin); it != moved_.end()) return it->second;
    if (gone_.contains(origin)) return std::nullopt;
    RelPath place = origin;
    if (auto along = inverse_.origin(origin)) place = *along;
    if (made_.contains(place)) return std::nullopt;  // something else is there
    return place;
  }
  Result<std::optional<NodeState>> state(const RelPath& path) const {
    return view_.draft_state(path);
  }

 private:
  explicit Moment(const fs::View& view) : view_(view) {}

  const fs::View& view_;
  std::set<RelPath> paths_;           // touched, and moved away from
  std::map<RelPath, RelPath> moved_;  // real path to path then
  MovedDirectories inverse_;          // the same, for what lies beneath
  std::set<RelPath> gone_, made_;
  std::map<RelPath, uint32_t> commands_;
};

class Between : public fs::View {
 public:
  Between(std::shared_ptr<const fs::View> from,
          std::shared_ptr<const fs::View> to)
      : from_(std::move(from)), to_(std::move(to)) {}

  Result<std::vector<RawChange>> changes() const override {
    Moment first = TRY(Moment::at(*from_));
    Moment second = TRY(Moment::at(*to_));
    std::map<RelPath, RawChange> found;
    std::set<RelPath> left;
    std::set<RelPath> paths = first.paths();
    paths.insert(second.paths().begin(), second.paths().end());
    TRY(find_moves(first, second, paths, found, left));
    for (const RelPath& path : paths) {
      if (found.contains(path)) continue;
      RawChange change;
      change.path = path;
      if (!left.contains(path)) change.before = TRY(first.state(path));
      change.after = TRY(second.state(path));
      if (!change.before && !change.after) continue;
      change.command = std::max(first.command(path), second.command(path));
      found.emplace(path, std::move(change));
    }
    std::vector<RawChange> list;
    for (auto& [path, change] : found) list.push_back(std::move(change));
    return list;
  }
  Result<std::optional<NodeState>> draft_state(
      const RelPath& path) const override {
    return to_->draft_state(path);
  }
  Result<std::vector<fs::DirEntry>> draft_list(
      const RelPath& path) const override {
    return to_->draft_list(path);
  }
  Result<std::optional<NodeState>> real_state(
      const RelPath& path) const override {
    return from_->draft_state(path);
  }
  Result<std::vector<fs::DirEntry>> real_list(
      const RelPath& path) const override {
    return from_->draft_list(path);
  }

 private:
  // What is not at the same place in both moments. Where either had it is
  // looked at, too: it may have moved along with a directory in one of them
  // and be deleted in the other.
  Status find_moves(const Moment& first, const Moment& second,
                    std::set<RelPath>& paths,
                    std::map<RelPath, RawChange>& found,
                    std::set<RelPath>& left) const {
    std::set<RelPath> origins = paths;
    for (const RelPath& origin : origins) {
      auto was = first.place_of(origin);
      auto is = second.place_of(origin);
      if (was) paths.insert(*was);
      if (is) paths.insert(*is);
      if (!was || !is || *was == *is) continue;
      RawChange change;
      change.path = *is;
      change.from = *was;
      change.before = TRY(first.state(*was));
      change.after = TRY(second.state(*is));
      change.command = second.command(*is);
      if (!change.before || !change.after ||
          change.before->type != change.after->type)
        continue;
      left.insert(*was);
      found.insert_or_assign(*is, std::move(change));
    }
    return {};
  }

  std::shared_ptr<const fs::View> from_, to_;
};

}  // namespace

std::unique_ptr<fs::View> view_between(std::shared_ptr<const fs::View> from,
                                       std::shared_ptr<const fs::View> to) {
  return std::make_unique<Between>(std::move(from), std::move(to));
}

}  // namespace stoplog::diff
