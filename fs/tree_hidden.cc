// SPDX-License-Identifier: Apache-2.0
// A base that the draft hides: deleted first, and then another file made in its
// place, as some programs save.
#include "base/sys_node.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {

// A small deleted file whose name is about to be given to another one; nullopt
// when there is none, or when it was taken before.
std::optional<Deleted> Tree::Impl::hidden_at(NodeId parent,
                                             const std::string& name,
                                             std::string& path) const {
  std::shared_lock lock(mutex_);
  const Live* dir = get(parent);
  const Held* held = dir ? state_.find(dir->serial) : nullptr;
  if (held == nullptr || State::child(*held, name).value_or(0) != 0)
    return std::nullopt;
  // In a directory that was removed and made anew it is the same path.
  auto origin = held->base ? state_.origin_of(*held) : state_.path_of(*held);
  if (!origin) return std::nullopt;
  path = join_path(*origin, name);
  auto hidden = state_.deleted().find(path);
  if (hidden == state_.deleted().end()) return std::nullopt;
  const Deleted& d = hidden->second;
  if (!S_ISREG(d.base.mode) || d.base.size == 0 || d.content.segment != 0 ||
      d.base.size > options_.take_whole ||
      !has_room(hidden_bytes_ + d.base.size, true))
    return std::nullopt;
  return d;
}

// What the real tree has at a name that the draft deleted and now uses again is
// the base of a merge: taken as long as it is what was deleted. Deleting alone
// takes nothing, for `rm -rf` must not copy a tree. Best effort: without it a
// later edit of the real file is drift that cannot be merged.
Status Tree::Impl::take_hidden(NodeId parent, const std::string& name) {
  std::string path;
  auto hidden = hidden_at(parent, name, path);
  if (!hidden) return {};
  Fd fd = TRY(open_deep_quiet(base_->get(), path, O_RDONLY | O_NONBLOCK));
  auto is_same = [&]() -> Result<bool> {
    sys::Stat now = TRY(sys::fstat(fd.get()));
    return identity_of(now) == identity_of(hidden->base) &&
           fingerprint_of(now) == fingerprint_of(hidden->base);
  };
  std::vector<std::byte> bytes(hidden->base.size);
  if (!TRY(is_same()) ||
      TRY(sys::pread_full(fd.get(), bytes, 0)) != bytes.size() ||
      !TRY(is_same()))
    return {};
  Segments::Claim claim;
  SegmentRange range = TRY(segments_->allocate(bytes.size(), {}, &claim));
  TRY(segments_->write(range, bytes));
  std::unique_lock lock(mutex_);
  auto still = state_.deleted().find(path);
  if (still == state_.deleted().end() || still->second.content.segment != 0 ||
      !(identity_of(still->second.base) == identity_of(hidden->base)))
    return {};
  hidden_bytes_ += bytes.size();
  TRY(append({DeletedRecord{.path = path,
                            .base = hidden->base,
                            .target = {},
                            .command = still->second.command,
                            .when = still->second.when,
                            .segment = range.segment,
                            .at = range.at}}));
  claim.recorded();
  return {};
}

}  // namespace stoplog::fs
