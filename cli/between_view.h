// SPDX-License-Identifier: Apache-2.0
// Two moments of one draft as one view: `before` is the tree of the first,
// `after` that of the second. For `diff --from --to` and for what one command
// changed. The two views are owned.
#pragma once

#include <memory>
#include <vector>

#include "fs/view.h"

namespace stoplog::cli {

class BetweenView final : public fs::View {
 public:
  BetweenView(std::unique_ptr<fs::View> from, std::unique_ptr<fs::View> to)
      : from_(std::move(from)), to_(std::move(to)) {}
  Result<std::vector<fs::RawChange>> changes() const override;
  Result<std::optional<fs::NodeState>> draft_state(
      const RelPath& path) const override {
    return to_->draft_state(path);
  }
  Result<std::vector<fs::DirEntry>> draft_list(
      const RelPath& path) const override {
    return to_->draft_list(path);
  }
  Result<std::optional<fs::NodeState>> real_state(
      const RelPath& path) const override {
    return from_->draft_state(path);
  }
  Result<std::vector<fs::DirEntry>> real_list(
      const RelPath& path) const override {
    return from_->draft_list(path);
  }

 private:
  std::unique_ptr<fs::View> from_, to_;
};

}  // namespace stoplog::cli
