// SPDX-License-Identifier: Apache-2.0
#include "gate/preimages.h"

#include <algorithm>
#include <mutex>

#include "base/escape.h"
#include "base/parallel.h"
#include "base/shown_path.h"
#include "gate/guard.h"
#include "snapshot/content_digest.h"
#include "snapshot/object_codec.h"

namespace stoplog::gate {
namespace {

using Kind = SwitchOp::Kind;
using Encoded = snapshot::PackWriter::Encoded;

constexpr uint64_t kSmall = 1u << 20;
// What is in memory at once, before compression.
constexpr uint64_t kBatchBytes = 16u << 20;
constexpr size_t kRun = 32;

// Making one costs more than compressing a small file.
class Encoders {
 public:
  std::unique_ptr<snapshot::ObjectEncoder> take() {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<snapshot::ObjectEncoder>();
    auto encoder = std::move(free_.back());
    free_.pop_back();
    return encoder;
  }
  void give(std::unique_ptr<snapshot::ObjectEncoder> encoder) {
    std::lock_guard lock(mutex_);
    free_.push_back(std::move(encoder));
  }

 private:
  std::mutex mutex_;  // guards free_
  std::vector<std::unique_ptr<snapshot::ObjectEncoder>> free_;
};

class Packer {
 public:
  Packer(const Disk& disk, const SwitchRecord& record, const StageSet& stages,
         snapshot::PackWriter pack)
      : disk_(disk), record_(record), stages_(stages), pack_(std::move(pack)) {}

  Status add(const LiveOp& live) {
    uint64_t size = record_.items[live.op.item].old->size;
    if (size > kSmall) {
      TRY(flush());
      return with_content(
          live, [&](const fs::Content& content) { return pack_.add(content); });
    }
    batch_.push_back(&live);
    bytes_ += size;
    return bytes_ < kBatchBytes ? Status() : flush();
  }

  Status finish() {
    TRY(flush());
    TRY(disk_.step("pack"));
    TRY(pack_.finish(Sync::kNo));
    return {};
  }

 private:
  // A program may have found the file before it left, and opened it since.
  template <typename Add>
  Status with_content(const LiveOp& live, const Add& add) const {
    Guard guard = TRY(Guard::take(disk_, stages_.fd(live.stage),
                                  std::to_string(live.op.slot)));
    Sha256Digest digest =
        TRY(add(snapshot::OpenContent(guard.fd(), guard.stat())));
    if (digest == *record_.items[live.op.item].old->sha256 && !guard.busy() &&
        !guard.is_wanted())
      return {};
    return fail(Code::kDrift,
                "the real tree is not what the draft saw: {} was saved by "
                "another program during the commit",
                quote_name(shown_path(live.op.path)));
  }

  Status encode(snapshot::ObjectEncoder& encoder, size_t i) {
    Encoded& object = encoded_[i];
    return with_content(*batch_[i], [&](const fs::Content& content) {
      object.size = content.size();
      auto id = encoder.encode(content, [&](auto bytes) -> Status {
        object.bytes.insert(object.bytes.end(), bytes.begin(), bytes.end());
        return {};
      });
      if (id) object.id = *id;
      return id;
    });
  }

  Status flush() {
    encoded_.assign(batch_.size(), {});
    size_t runs = (batch_.size() + kRun - 1) / kRun;
    TRY(parallel_for(runs, 0, [&](size_t run) -> Status {
      auto encoder = encoders_.take();
      size_t end = std::min(batch_.size(), (run + 1) * kRun);
      for (size_t i = run * kRun; i < end; ++i) TRY(encode(*encoder, i));
      encoders_.give(std::move(encoder));
      return {};
    }));
    for (const Encoded& object : encoded_) TRY(pack_.add(object));
    batch_.clear();
    bytes_ = 0;
    return {};
  }

  const Disk& disk_;
  const SwitchRecord& record_;
  const StageSet& stages_;
  snapshot::PackWriter pack_;
  Encoders encoders_;
  std::vector<const LiveOp*> batch_;
  uint64_t bytes_ = 0;
  std::vector<Encoded> encoded_;  // parallel to batch_
};

}  // namespace

bool holds_old(const LiveOp& live) {
  return (live.op.kind == Kind::kTake && !live.op.moving) ||
         live.op.kind == Kind::kSwap;
}

namespace {

bool has_preimage(const SwitchRecord& record, const LiveOp& live) {
  return holds_old(live) && record.items[live.op.item].old->is_file();
}

}  // namespace

Result<LostPreimages> find_lost(const Ground& ground, const Disk& disk,
                                const SwitchRecord& record,
                                const StageSet& stages,
                                std::set<RelPath>& untouched) {
  LostPreimages lost;
  std::set<RelPath> standing;
  for (const Item& item : record.items)
    if (item.fresh) standing.insert(item.path);
  std::set<RelPath> gone;
  for (const LiveOp& live : record.ops) {
    if (!has_preimage(record, live) || untouched.contains(live.op.path))
      continue;
    if (TRY(disk.statat(stages.fd(live.stage), std::to_string(live.op.slot))))
      continue;
    lost.slots.insert(live.op.slot);
    const Item& item = record.items[live.op.item];
    // The one that died may have packed it.
    if (TRY(ground.objects->has(*item.old->sha256))) continue;
    lost.left.push_back({live.op.path,
                         "is as it was approved, and undo cannot give back "
                         "what it was: that is not in the stage any more",
                         std::nullopt});
    if (!standing.contains(live.op.path)) gone.insert(live.op.path);
  }
  // Without what was removed, an undo gives back the others.
  untouched.merge(gone);
  return lost;
}

Status pack_preimages(const Ground& ground, const Disk& disk,
                      const SwitchRecord& record, const StageSet& stages,
                      const std::set<RelPath>& untouched,
                      const std::set<uint32_t>& lost) {
  TRY(disk.step("pack"));
  Packer packer(disk, record, stages, TRY(ground.objects->new_pack()));
  for (const LiveOp& live : record.ops)
    if (has_preimage(record, live) && !untouched.contains(live.op.path) &&
        !lost.contains(live.op.slot))
      TRY(packer.add(live));
  return packer.finish();
}

}  // namespace stoplog::gate
