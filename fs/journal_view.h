// SPDX-License-Identifier: Apache-2.0
// The DraftView over a replayed journal: inside of fs/draft_view.cc, which
// reads single paths, and fs/journal_changes.cc, which lists what changed. Not
// for others.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fs/deep_paths.h"
#include "fs/draft_view.h"
#include "fs/held_content.h"

namespace stoplog::fs {

// Of all paths that were told.
struct PathSum {
  uint64_t bytes = 0;
  uint64_t paths = 0;
};

class JournalView : public DraftView {
 public:
  // What was replayed, and what keeps it from being given back.
  struct Stand {
    Replayed replayed;
    Fd held;
  };
  JournalView(Stand stand, SharedRoot base, std::shared_ptr<Segments> segments,
              std::shared_ptr<LentObjects> lent)
      : shared_(std::make_shared<const Stand>(std::move(stand))),
        replayed_(shared_->replayed),
        state_(replayed_.state),
        base_(std::move(base)),
        segments_(std::move(segments)),
        seals_(std::make_shared<SealChecks>(
            std::shared_ptr<const State::SealTable>(shared_,
                                                    &state_.seal_table()))),
        lent_(std::move(lent)) {}

  Result<std::vector<RawChange>> changes() const override;
  Status each_change(
      const std::function<Status(RawChange)>& visit) const override;
  Result<bool> each_known(
      const std::function<Status(RawChange)>& visit) const override;
  Result<RawChange> look_at(const RelPath& path) const override;
  Result<std::optional<NodeState>> draft_state(
      const RelPath& path) const override;
  Result<std::vector<DirEntry>> draft_list(const RelPath& path) const override;
  Result<std::optional<NodeState>> real_state(
      const RelPath& path) const override {
    return real_state_at(base_, path);
  }
  Result<std::vector<DirEntry>> real_list(const RelPath& path) const override {
    return list_beneath(base_->get(), path);
  }
  Position position() const override { return replayed_.end.sequence; }
  const std::vector<Mark>& marks() const override { return state_.marks(); }
  const std::vector<std::string>& notes() const override {
    return replayed_.notes;
  }
  bool damaged() const override { return replayed_.damaged; }
  uint64_t held_bytes() const override { return state_.live_bytes(); }
  uint64_t held_nodes() const override { return state_.nodes().size() - 1; }
  uint32_t command_at(const RelPath& path) const override {
    auto place = resolve(path);
    bool touched = place && place->held != nullptr && place->held->is_touched();
    return touched ? place->held->command : 0;
  }
  std::vector<RelPath> unpinned() const override;

 private:
  using Found = std::map<RelPath, RawChange>;
  // Where a path of the draft leads: a held node, or a path of the base.
  struct Place {
    const Held* held = nullptr;
    std::optional<std::string> lower;
  };
  // What stands at a path of the base, as one look at it found. `blind`: no
  // look is to be taken, what the journal has will do.
  struct Seen {
    std::string path = {};
    std::optional<sys::Stat> now = {};
    bool blind = false;
  };
  // A path that changed, and why: a name of a node, or what was deleted there.
  struct Spot {
    RelPath path;
    const Held* node = nullptr;
    size_t link = 0;
    const Deleted* deleted = nullptr;
    uint64_t too_deep = 0;  // as in RawChange
  };
  // All of them by path; nullopt when something moved, so that one change
  // cannot be told without the others.
  Result<std::optional<std::vector<Spot>>> spots() const;
  // What stands at one path, for each.
  static std::vector<std::span<const Spot>> by_path(
      const std::vector<Spot>& spots);
  // `absent`: the base has no directory where the path would be.
  Result<RawChange> change_of(std::span<const Spot> spots, bool absent) const;
  Result<RawChange> merge(std::span<const Spot> spots, Seen& seen) const;
  Result<Place> resolve(const RelPath& path) const;
  Result<NodeState> base_state_of(const sys::Stat& st, const std::string& path,
                                  const std::string& target,
                                  const SegmentRange* content,
                                  Seen* seen = nullptr) const;
  // `before`, when set, is the state of the base where the node stands.
  Result<NodeState> held_state(const Held& node,
                               const NodeState* before = nullptr,
                               bool blind = false) const;
  Result<RawChange> change_at(const Held& node, size_t link,
                              const std::string& path,
                              Seen* seen = nullptr) const;
  Status follow_base(const Held& node, const std::string& origin,
                     RawChange& change, const Seen& seen) const;
  Status add_node(const Held& node, Found& found, DeepPaths& deep,
                  PathSum& sum) const;
  Status add_deleted(const std::string& path, const Deleted& deleted,
                     Found& found, Seen* seen = nullptr) const;
  // Base paths whose node has another path in the draft.
  using Left = std::set<std::string, std::less<>>;
  Status note_drift(RawChange& change, const Left& left,
                    const Seen& seen) const;
  bool detaches(const Held& node) const;

  // Shared with contents, which may outlive the view: they use the seals and
  // maps of it, which for 100,000 files would be 20 MB more.
  std::shared_ptr<const Stand> shared_;
  const Replayed& replayed_;
  const State& state_;
  SharedRoot base_;
  std::shared_ptr<Segments> segments_;
  std::shared_ptr<SealChecks> seals_;
  std::shared_ptr<LentObjects> lent_;  // null: no commit since
};

}  // namespace stoplog::fs
