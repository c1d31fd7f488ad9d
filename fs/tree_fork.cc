// SPDX-License-Identifier: Apache-2.0
// A second draft that begins at a mark of this one.
#include <algorithm>

#include "base/sys_node.h"
#include "base/sys_process.h"
#include "fs/layout.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

// Those up to the one that holds `at`, which ends there for the fork.
Result<OlderRecord> link_generations(int from_dir, int to_dir, Position at) {
  auto made = sys::mkdirat(to_dir, layout::kJournalDir, layout::kDirMode);
  if (!made && made.error().err() != EEXIST)
    return std::unexpected(std::move(made).error().context("journal"));
  Fd from =
      TRY(sys::openat(from_dir, layout::kJournalDir, O_RDONLY | O_DIRECTORY));
  Fd to = TRY(sys::openat(to_dir, layout::kJournalDir, O_RDONLY | O_DIRECTORY));
  Generations generations = TRY(Generations::list(from_dir));
  TRY(generations.all());  // none of them is damaged
  const OlderRecord all = TRY(generations.older(at, {}));
  OlderRecord older;
  for (OlderRecord::Part part : all.parts) {
    if (part.first > at) break;
    std::string name = layout::generation_name(part.generation);
    auto linked = sys::linkat(from.get(), name, to.get(), name);
    // A checkpoint drops what no mark needs.
    if (!linked && linked.error().err() == ENOENT) continue;
    if (!linked)
      return std::unexpected(std::move(linked).error().context("journal"));
    part.last = std::min(part.last, at);
    older.parts.push_back(part);
  }
  return older;
}

}  // namespace

// With the draft's own journal: generations up to the mark are shared by hard
// links, as the segments are, and a new one goes on from it.
Status Tree::fork_into(int to_dir, Position at) {
  Impl& t = *impl_;
  TRY(t.writable());
  std::lock_guard one(t.work_mutex_);
  TRY(t.check_mark(at));
  OpenRecord open;
  TRY(sys::getrandom(std::as_writable_bytes(std::span(&open.draft, 1))));
  open.cookie_seed = t.cookie_seed_;
  FromRecord from;
  bool whole = false;
  {
    std::shared_lock lock(t.mutex_);
    whole = t.commits_since(at) > 0 || !t.goes_on_from(at);
    from = t.state_.from(at);
  }
  if (whole) return t.fork_whole(to_dir, open, at);
  from.depth = TRY(t.depth_of(at));
  from.keeps_command = true;
  from.table.position = at;
  std::erase_if(from.table.marks,
                [at](const Mark& mark) { return mark.position > at; });
  TRY(t.sync());
  {
    std::unique_lock no_write(t.epoch_);
    TRY(t.segments_->sync());
    TRY(t.segments_->link_into(to_dir));
  }
  {
    std::shared_lock lock(t.mutex_);
    std::shared_ptr<Journal> journal = t.journal_;
    lock.unlock();
    TRY(journal->sync());
  }
  OlderRecord older = TRY(link_generations(t.draft_dir_.get(), to_dir, at));
  if (older.parts.empty()) return fail_errno(ENOENT, "journal");
  open.generation = older.parts.back().generation + 1;
  auto journal = TRY(Journal::create(to_dir, open, at, older));
  std::vector<Record> records{std::move(from), DeviceRecord{t.base_stat_.dev}};
  TRY(journal->append(records, 0));
  return journal->publish();
}

Status Tree::Impl::fork_whole(int to_dir, const OpenRecord& open, Position at) {
  State state = TRY(state_at(at));
  TRY(restore_replaced(state, at));
  TRY(sync());
  {
    std::unique_lock no_write(epoch_);
    TRY(segments_->sync());
    TRY(segments_->link_into(to_dir));
  }
  auto journal = TRY(Journal::create(to_dir, open, at));
  TRY(write_state(*journal, state));
  return journal->publish();
}

}  // namespace stoplog::fs
