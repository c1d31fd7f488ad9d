// SPDX-License-Identifier: Apache-2.0
// The timeline: marks, rollback, the new base after a commit, checkpoints.
#include "base/clock.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {

Result<Mark> Tree::mark(MarkKind kind, uint32_t command,
                        std::string_view name) {
  Impl& t = *impl_;
  // Writes in place that began before this mark end before it.
  std::unique_lock no_write(t.epoch_);
  std::unique_lock lock(t.mutex_);
  Mark mark{.id = t.state_.next_mark(),
            .kind = kind,
            .position = 0,
            .command = command,
            .time = Clock::real().now(),
            .name = std::string(name)};
  TRY(t.append({MarkRecord{mark}}));
  return t.state_.marks().back();
}

std::vector<Mark> Tree::marks() const {
  std::shared_lock lock(impl_->mutex_);
  return impl_->state_.marks();
}

Position Tree::position() const {
  std::shared_lock lock(impl_->mutex_);
  return impl_->journal_ ? impl_->journal_->position()
                         : impl_->state_.position();
}

}  // namespace stoplog::fs
