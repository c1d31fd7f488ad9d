// SPDX-License-Identifier: Apache-2.0
// Opening, closing, and the small questions.
#include "fs/tree.h"

#include "base/sys_fuse.h"
#include "base/sys_node.h"
#include "base/sys_process.h"
#include "fs/layout.h"
#include "fs/tree_impl.h"
#include "fs/watch.h"

namespace stoplog::fs {
namespace {

Result<uint64_t> random_number() {
  uint64_t number = 0;
  TRY(sys::getrandom(std::as_writable_bytes(std::span(&number, 1))));
  return number;
}

// What a crash in mid-checkpoint left.
Status remove_unfinished(int draft_dir) {
  auto dir =
      sys::openat(draft_dir, layout::kJournalDir, O_RDONLY | O_DIRECTORY);
  if (!dir) return {};
  std::vector<std::string> names;
  TRY(sys::list_dir(dir->get(),
                    [&](std::string_view name, unsigned char, uint64_t) {
                      if (name.ends_with(layout::kNewSuffix))
                        names.emplace_back(name);
                    }));
  for (const std::string& name : names) TRY(sys::unlinkat(dir->get(), name));
  return {};
}

}  // namespace

Tree::Impl::Impl(const TreeOptions& options)
    : options_(options), quota_(options.quota) {
  observer_ = options.observer;
  slots_.resize(2);  // 0 is no slot, 1 the root
  slots_[kRootId].used = true;
  slots_[kRootId].serial = kRootSerial;
  slots_[kRootId].type = S_IFDIR;
  slots_[kRootId].lookups = 1;
  by_serial_[kRootSerial] = kRootId;
}

Tree::Impl::~Impl() = default;

Status Tree::Impl::open() {
  draft_dir_ = TRY(sys::dup(options_.draft_dir));
  base_ = TRY(share_root(options_.base));
  base_stat_ = TRY(sys::fstat(base_->get()));
  auto magic = sys::fs_magic(base_->get());
  base_is_local_ = magic && reports_changes(*magic);
  if (options_.rules != nullptr && !options_.rules->empty())
    ruled_links_ = std::make_unique<RuledLinks>(base_->get(), *options_.rules);
  slots_[kRootId].ino = base_stat_.ino;
  TRY(remove_unfinished(draft_dir_.get()));
  segments_ = TRY(Segments::open(draft_dir_.get(), true));
  auto replayed = replay(draft_dir_.get());
  if (!replayed && replayed.error().err() == ENOENT) {
    OpenRecord open{.draft = TRY(random_number()),
                    .generation = 1,
                    .cookie_seed = TRY(random_number())};
    journal_ = TRY(Journal::create(draft_dir_.get(), open, 0));
    // One is there: it was begun, and the machine stopped before it was kept.
    if (!TRY(list_generations(draft_dir_.get())).empty())
      notes_.push_back(
          "the draft's journal had not reached the disk when the machine "
          "stopped: it is empty");
    TRY(journal_->begin());
    cookie_seed_ = open.cookie_seed;
    watch_dead();
    state_.remember();
    return append({DeviceRecord{base_stat_.dev}});
  }
  if (!replayed) return std::unexpected(std::move(replayed).error());
  if (!replayed->damaged)
    (void)TRY(Generations::list(draft_dir_.get())).tell_newest();
  state_ = std::move(replayed->state);
  watch_dead();
  notes_ = std::move(replayed->notes);
  read_only_ = replayed->damaged;
  cookie_seed_ = replayed->head.open.cookie_seed;
  TRY(segments_->go_on(state_.next_segment(), state_.segment_end()));
  damaged_open_ = replayed->head.open;
  older_bytes_ = replayed->bytes - replayed->end.end;
  damaged_end_ = std::max(replayed->end.sequence, state_.position());
  if (!read_only_)
    journal_ =
        TRY(Journal::resume(draft_dir_.get(), replayed->head, replayed->end));
  if (read_only_)
    state_.move_to_device(base_stat_.dev);
  else if (state_.device() != base_stat_.dev || state_.has_part_of_base_map())
    TRY(append({DeviceRecord{base_stat_.dev}}));
  for (const auto& [serial, node] : state_.nodes()) {
    if (!node->body) continue;
    if (node->body->map.has_lower()) unpinned_.insert(serial);
    unsealed_.insert(serial);
  }
  state_.remember();
  return {};
}

// Ranges that die in the epoch that they were written in are seen by no mark.
void Tree::Impl::watch_dead() {
  state_.on_dead([this](const Extent& e) {
    if (e.epoch == 0 || e.epoch != state_.epoch()) return;
    dead_.push_back({e.segment, e.at, e.length});
    dead_bytes_ += e.length;
    if (dead_bytes_ >= kReclaimAt || dead_.size() >= kReclaimRanges)
      wake_pool();
  });
}

Tree::Tree(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tree::~Tree() {
  impl_->stop_pool();
  if (impl_->options_.background && !impl_->read_only_)
    (void)impl_->work(Impl::Seal::kNow, Impl::PinRoom::kQuota);
}

Result<std::unique_ptr<Tree>> Tree::open(const TreeOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  TRY(impl->open());
  return std::unique_ptr<Tree>(new Tree(std::move(impl)));
}

void Tree::start() { impl_->start_pool(); }

void Tree::end_waits() {
  if (impl_->ruled_links_) impl_->ruled_links_->end();
}

std::vector<std::string> Tree::recovery_notes() const { return impl_->notes_; }

bool Tree::read_only() const { return impl_->read_only_; }

void Tree::set_observer(Observer* observer) { impl_->observer_ = observer; }

void Tree::set_quota(const Quota& quota) {
  std::unique_lock lock(impl_->mutex_);
  impl_->quota_ = quota;
}

Stats Tree::stats() const {
  std::shared_lock lock(impl_->mutex_);
  const Impl& t = *impl_;
  Stats stats;
  stats.live_nodes = t.slots_.size() - t.free_.size() - 1;
  stats.touched_nodes = t.state_.nodes().size() - 1;
  stats.held_bytes = t.state_.live_bytes();
  stats.beside_bytes = t.used_bytes() - t.state_.live_bytes();
  stats.journal_bytes = t.journal_ ? t.journal_->bytes() : 0;
  // Slot, entries in by_name_ and by_inode_ (node and bucket), long names.
  stats.node_memory = stats.live_nodes * (sizeof(Live) + 96) + t.name_memory_;
  stats.open_fds =
      t.dir_fds_.size() + t.file_fds_.size() + t.segments_->open_fds();
  stats.unpinned_files = t.unpinned_.size();
  stats.denials = t.denials_;
  stats.dead_bytes = t.dead_bytes_;
  stats.read_bytes = t.read_bytes_;
  stats.written_bytes = t.written_bytes_;
  stats.refused_bytes = t.refused_bytes_;
  stats.refused_nodes = t.refused_nodes_;
  return stats;
}

Status Tree::fsync() { return impl_->sync(); }

Status Tree::Impl::sync() {
  if (read_only_) return {};
  // Data first: a record must not become durable before what it speaks of.
  TRY(segments_->sync());
  std::shared_lock lock(mutex_);
  std::shared_ptr<Journal> journal = journal_;
  lock.unlock();
  return journal->sync();
}

Result<struct statvfs> Tree::statfs() {
  Impl& t = *impl_;
  struct statvfs st = TRY(sys::fstatvfs(t.draft_dir_.get()));
  std::shared_lock lock(t.mutex_);
  if (t.quota_.bytes != UINT64_MAX && st.f_frsize > 0) {
    uint64_t used = t.used_bytes() / st.f_frsize;
    st.f_blocks = t.quota_.bytes / st.f_frsize;
    uint64_t left = st.f_blocks > used ? st.f_blocks - used : 0;
    st.f_bfree = std::min<uint64_t>(st.f_bfree, left);
    st.f_bavail = std::min<uint64_t>(st.f_bavail, left);
  }
  if (t.quota_.inodes != UINT64_MAX) {
    uint64_t used = t.state_.nodes().size() + t.state_.beside().names;
    st.f_files = t.quota_.inodes;
    uint64_t left = st.f_files > used ? st.f_files - used : 0;
    st.f_ffree = st.f_favail = left;
  }
  st.f_namemax = 255;
  return st;
}

}  // namespace stoplog::fs
