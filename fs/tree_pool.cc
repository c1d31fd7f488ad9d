// SPDX-License-Identifier: Apache-2.0
// Slow work, in a thread of its own and never in a request's: pinning large
// files, giving dead ranges back, checkpoints. Seals are in tree_seal.cc.
#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "base/sys_node.h"
#include "fs/tree_impl.h"

#include <unistd.h>

namespace stoplog::fs {
namespace {

constexpr uint64_t kPage = 4096;
// Bytes of journal, as kCheckpointAt. A checkpoint is written under the lock:
// while a command runs it is worth that when much is read instead; between
// commands nobody waits, as long as what it writes is little (5,000 commands of
// three files each: 1.4 MB).
constexpr uint64_t kCheckpointIdle = 1u << 20;
constexpr uint64_t kMostIdle = 8u << 20;
constexpr auto kSealPause = std::chrono::seconds(1);

}  // namespace

void Tree::Impl::start_pool() {
  if (!options_.background || read_only_ || pool_.joinable()) return;
  pool_ = std::thread([this] {
    using Clock = std::chrono::steady_clock;
    // Commands may end in quick succession, and sealing syncs what they wrote:
    // once for several.
    Clock::time_point seal_at = Clock::now();
    bool is_put_off = false;
    std::unique_lock lock(pool_mutex_);
    while (!pool_stop_) {
      if (!pool_work_) {
        if (!is_put_off)
          pool_wake_.wait(lock);
        else if (pool_wake_.wait_until(lock, seal_at) ==
                 std::cv_status::timeout)
          pool_work_ = true;
        continue;
      }
      pool_work_ = false;
      lock.unlock();
      is_put_off = Clock::now() < seal_at;
      if (auto done =
              work(is_put_off ? Seal::kLater : Seal::kNow, PinRoom::kQuota);
          !done)
        log::warn("background work: {}", done.error().text());
      if (!is_put_off) seal_at = Clock::now() + kSealPause;
      lock.lock();
    }
  });
  wake_pool();
}

void Tree::Impl::stop_pool() {
  {
    std::lock_guard lock(pool_mutex_);
    pool_stop_ = true;
  }
  pool_wake_.notify_all();
  if (pool_.joinable()) pool_.join();
}

void Tree::Impl::wake_pool() {
  {
    std::lock_guard lock(pool_mutex_);
    pool_work_ = true;
  }
  pool_wake_.notify_one();
}

// The lower bytes are no longer those that the draft stands on: there is
// nothing left to copy, and nothing that a commit could still take away. Who
// reads the file is told.
bool is_past_pinning(const Error& error) {
  return error.code() == Code::kDrift || error.err() == ENOENT ||
         error.err() == ENOTDIR || error.err() == ELOOP;
}

// Copies take long, and a rollback or a request that needs room does not wait
// for them.
Status Tree::Impl::pin_all(PinRoom room) {
  std::lock_guard one(pin_mutex_);
  TRY(writable());
  std::vector<Serial> files;
  {
    std::shared_lock lock(mutex_);
    files.assign(unpinned_.begin(), unpinned_.end());
  }
  Status result;
  for (Serial serial : files)
    if (auto done = pin(serial, PinWhat::kLower, room);
        !done && !is_past_pinning(done.error()))
      result = std::move(done);
  return result;
}

Status Tree::Impl::work(Seal when, PinRoom room) {
  Status result = pin_all(room);
  std::lock_guard one(work_mutex_);
  TRY(writable());
  TRY(keep_young_journal());
  {
    std::unique_lock lock(mutex_);
    std::shared_ptr<void> freed = state_.take_let_go();
    lock.unlock();  // first: it may be large
  }
  if (when == Seal::kNow) TRY(seal());
  TRY(reclaim(false));
  TRY(gc_if_due());
  TRY(checkpoint_if_due());
  return result;
}

// A new draft's; whoever opened it did not wait for that.
Status Tree::Impl::keep_young_journal() {
  std::shared_lock lock(mutex_);
  std::shared_ptr<Journal> journal = journal_;
  lock.unlock();
  if (journal->is_kept()) return {};
  return sync();
}

Status Tree::settle() {
  TRY(impl_->writable());
  TRY(impl_->take_strays());
  TRY(impl_->work(Impl::Seal::kNow, Impl::PinRoom::kAny));
  std::lock_guard one(impl_->work_mutex_);
  return impl_->reclaim(true);
}

bool Tree::make_room() {
  Impl& t = *impl_;
  if (t.read_only_) return false;
  uint64_t before = t.reclaims_;
  std::lock_guard one(t.work_mutex_);
  {
    std::unique_lock lock(t.mutex_);
    t.drop_pending();
  }
  (void)t.reclaim(true);
  return t.reclaims_ != before;
}

// Copies a large lower file into a segment of its own: shared by reflink where
// the file system can, else byte by byte, holes left out.
Status Tree::Impl::fill_pin(int from, const sys::Stat& st,
                            const Segments::Whole& to) {
  if (sys::clone_file(from, to.fd->get())) return {};
  std::vector<std::byte> block(1u << 20);
  for (uint64_t at = 0; at < st.size;) {
    auto data = sys::seek(from, at, SEEK_DATA);
    if (!data && data.error().err() == ENXIO) break;
    if (data) at = *data;
    uint64_t most = block.size();
    if (auto hole = sys::seek(from, at, SEEK_HOLE); hole && *hole > at)
      most = std::min(most, *hole - at);
    size_t n = TRY(sys::pread_full(from, std::span(block).first(most), at));
    if (n == 0) break;
    TRY(sys::pwrite_full(to.fd->get(), std::span(block).first(n), at));
    at += n;
  }
  return {};
}

Status Tree::Impl::pin(Serial serial, PinWhat what, PinRoom room) {
  auto has_reason = [what](const FileBody& body) {
    return body.map.has_lower() || (what == PinWhat::kBase && !body.has_base);
  };
  std::string path;
  sys::Stat st;
  std::shared_ptr<FileBody> body;
  {
    std::shared_lock lock(mutex_);
    const Held* node = state_.find(serial);
    bool wanted = node != nullptr && node->body && has_reason(*node->body);
    auto origin = wanted ? state_.origin_of(*node) : std::nullopt;
    if (!origin) {
      lock.unlock();
      std::unique_lock change(mutex_);
      unpinned_.erase(serial);
      return {};
    }
    path = *origin;
    body = node->body;
    st = body->lower;
    // One byte written to each large file of the workspace would fill the disk.
    // Such a file goes on standing on the real one, as `unpinned` tells.
    const uint64_t copied = body->map.allocated() - body->map.segment_bytes();
    if (room == PinRoom::kQuota && !has_room(copied, false)) return {};
  }
  Fd fd =
      TRY_CTX(open_deep_quiet(base_->get(), path, O_RDONLY | O_NONBLOCK), path);
  auto unchanged = [&]() -> Result<bool> {
    sys::Stat now = TRY(sys::fstat(fd.get()));
    return identity_of(now) == identity_of(st) &&
           fingerprint_of(now) == fingerprint_of(st);
  };
  Segments::Claim claim;  // a gc beside this leaves it alone
  Segments::Whole whole = TRY(segments_->create_whole(st.size, claim));
  Status filled;
  if (TRY(unchanged())) filled = fill_pin(fd.get(), st, whole);
  if (!filled || !TRY(unchanged())) {
    (void)segments_->remove(whole.segment);
    TRY(std::move(filled));
    return fail(Code::kDrift, "{} was modified in the real tree", path);
  }
  segments_->note_written(whole.segment);
  // The record may reach the disk by itself, and then the copy stands for bytes
  // that were there for good.
  TRY(segments_->sync());
  std::unique_lock io(body->io);
  std::unique_lock lock(mutex_);
  const Held* node = state_.find(serial);
  // A rollback may have given it other lower ranges, which are yet to be done.
  if (node == nullptr || node->body != body || !has_reason(*body)) {
    lock.unlock();
    return segments_->remove(whole.segment);
  }
  TRY(append({PinRecord{
      .serial = serial, .segment = whole.segment, .at = 0, .hash = {}}}));
  claim.recorded();
  unpinned_.erase(serial);
  return {};
}

// Gives back to the disk what died before any mark saw it. The journal must be
// durable first: else, after a power loss, an older record could still point
// to a range that is gone. Less than a page is left for gc, which knows what
// lies beside it.
Status Tree::Impl::reclaim(bool all) {
  std::vector<SegmentRange> ranges;
  {
    std::unique_lock lock(mutex_);
    if (dead_.empty() ||
        (!all && dead_bytes_ < kReclaimAt && dead_.size() < kReclaimRanges))
      return {};
    ranges = std::exchange(dead_, {});
    dead_bytes_ = 0;
  }
  TRY(sync());
  std::ranges::sort(ranges, [](const SegmentRange& a, const SegmentRange& b) {
    return std::tie(a.segment, a.at) < std::tie(b.segment, b.at);
  });
  for (size_t i = 0; i < ranges.size();) {
    SegmentRange run = ranges[i++];
    auto with_gap = [&] {
      return segments_->end_of_gap(run.segment, run.at + run.length) - run.at;
    };
    run.length = with_gap();
    while (i < ranges.size() && ranges[i].segment == run.segment &&
           ranges[i].at <= run.at + run.length) {
      run.length =
          std::max(run.length, ranges[i].at + ranges[i].length - run.at);
      run.length = with_gap();
      ++i;
    }
    uint64_t begin = (run.at + kPage - 1) / kPage * kPage;
    uint64_t end = (run.at + run.length) / kPage * kPage;
    if (!segments_->is_mutable(run.segment)) continue;
    crumbs_ += run.length - (begin < end ? end - begin : 0);
    if (begin >= end) continue;
    auto done = segments_->punch({run.segment, begin, end - begin});
    if (!done && done.error().err() != EOPNOTSUPP) return done;
  }
  ++reclaims_;
  return {};
}

// When most of the journal is about what no longer is, a new generation: who
// opens the draft reads all of the last one.
bool Tree::Impl::is_checkpoint_due() const {
  std::shared_lock lock(mutex_);
  uint64_t needed = state_.nodes().size() * 400 +
                    state_.deleted().size() * 250 + state_.marks().size() * 40;
  for (const auto& [segment, seals] : state_.seal_table())
    needed += seals.size() * 64;
  needed += state_.beside().bytes + state_.beside().ranges * 40;
  const uint64_t bytes = journal_->bytes() + older_bytes_;
  auto is_due = [&] {
    if (running_.empty() && bytes >= kCheckpointIdle && needed <= kMostIdle)
      return bytes / 3 >= needed / 2;
    return bytes >= kCheckpointAt && bytes / 3 >= needed;
  };
  if (!is_due()) return false;
  // The ranges of a file that was written here and there are the most of it.
  for (const auto& [serial, node] : state_.nodes())
    if (node->body) needed += node->body->map.all().size() * 40;
  return is_due();
}

Status Tree::Impl::checkpoint_if_due() {
  return is_checkpoint_due() ? checkpoint() : Status();
}

std::vector<RelPath> Tree::unpinned() const {
  std::shared_lock lock(impl_->mutex_);
  std::vector<RelPath> list;
  for (Serial serial : impl_->unpinned_)
    if (const Held* node = impl_->state_.find(serial))
      if (auto path = impl_->state_.path_of(*node))
        if (auto parsed = RelPath::parse(*path)) list.push_back(*parsed);
  std::ranges::sort(list);
  return list;
}

}  // namespace stoplog::fs
