// SPDX-License-Identifier: Apache-2.0
#include "snapshot/frame_packer.h"

#include <algorithm>

namespace stoplog::snapshot {

FramePacker::Context FramePacker::new_context() {
  return {ZSTD_createCCtx(), ZSTD_freeCCtx};
}

FramePacker::FramePacker(int level, unsigned threads, ByteSink sink)
    : level_(level),
      threads_(threads),
      sink_(std::move(sink)),
      own_(new_context()) {}

FramePacker::~FramePacker() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wanted_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void FramePacker::compress(ZSTD_CCtx* context, Job& job) const {
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level_);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  job.out.resize(ZSTD_compressBound(job.in.size()));
  size_t made = ZSTD_compress2(context, job.out.data(), job.out.size(),
                               job.in.data(), job.in.size());
  job.error = ZSTD_isError(made) != 0 ? made : 0;
  job.out.resize(job.error != 0 ? 0 : made);
}

void FramePacker::work() {
  Context context = new_context();
  std::unique_lock lock(mutex_);
  for (;;) {
    auto next = jobs_.end();
    wanted_.wait(lock, [&] {
      next = std::ranges::find_if(jobs_, [](auto& j) { return !j->taken; });
      return stop_ || next != jobs_.end();
    });
    if (stop_) return;
    Job& job = **next;
    job.taken = true;
    lock.unlock();
    compress(context.get(), job);
    lock.lock();
    job.done = true;
    finished_.notify_one();
  }
}

// Hands out finished frames, in order, until only `keep` jobs are left.
Status FramePacker::give_out(size_t keep) {
  std::unique_lock lock(mutex_);
  while (!jobs_.empty() && (jobs_.size() > keep || jobs_.front()->done)) {
    finished_.wait(lock, [&] { return jobs_.front()->done; });
    std::unique_ptr<Job> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    if (job->error != 0)
      return fail(Code::kInternal, "zstd: {}", ZSTD_getErrorName(job->error));
    TRY(sink_(job->out));
    lock.lock();
    spare_.push_back(std::move(job));
  }
  return {};
}

Status FramePacker::submit() {
  {
    std::lock_guard lock(mutex_);
    std::unique_ptr<Job> job;
    if (spare_.empty()) {
      job = std::make_unique<Job>();
    } else {
      job = std::move(spare_.back());
      spare_.pop_back();
    }
    job->taken = job->done = false;
    std::swap(job->in, piece_);
    jobs_.push_back(std::move(job));
  }
  piece_.clear();
  wanted_.notify_one();
  while (workers_.size() < threads_) workers_.emplace_back([this] { work(); });
  return give_out(size_t{2} * threads_);
}

Status FramePacker::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    // Only when more comes: the last piece is end()'s.
    if (piece_.size() == kPiece) {
      if (threads_ > 0)
        TRY(submit());
      else
        TRY(end());
    }
    if (piece_.capacity() < kPiece) piece_.reserve(kPiece);
    auto part = bytes.first(std::min(bytes.size(), kPiece - piece_.size()));
    piece_.insert(piece_.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
  }
  return {};
}

Status FramePacker::end() {
  Job last;
  std::swap(last.in, piece_);
  compress(own_.get(), last);
  std::swap(last.in, piece_);
  piece_.clear();
  TRY(give_out(0));
  if (last.error != 0)
    return fail(Code::kInternal, "zstd: {}", ZSTD_getErrorName(last.error));
  return sink_(last.out);
}

}  // namespace stoplog::snapshot
