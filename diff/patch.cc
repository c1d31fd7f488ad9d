// SPDX-License-Identifier: Apache-2.0
#include "diff/patch.h"

#include <algorithm>

#include "base/escape.h"
#include "diff/file_patch.h"
#include "diff/git_meta.h"
#include "diff/parallel.h"
#include "diff/select.h"

namespace stoplog::diff {
namespace {

// Files of up to kSmall are made in parallel, kBatch at a time, and written in
// order; larger ones stream straight to the sink, one by one.
constexpr uint64_t kSmall = 1 << 20;
constexpr size_t kBatch = 256;

class PatchWriter {
 public:
  PatchWriter(const fs::View& view, const ChangeSet& set,
              const PatchOptions& options, const Sink& sink)
      : view_(view), set_(set), options_(options), sink_(sink) {}

  Result<PatchReport> run() {
    size_t done = 0;
    for (const Change& change : set_.changes) {
      if (wanted(change)) TRY(take(change));
      if (++done % kBatch == 0 && options_.progress)
        options_.progress(done, set_.changes.size());
    }
    TRY(flush());
    return std::move(report_);
  }

 private:
  bool wanted(const Change& change) const {
    return (options_.ignored || !change.ignored) &&
           (options_.git || !is_inside_git(change)) &&
           is_selected(change, options_.paths);
  }

  Status take(const Change& change) {
    if (change.git) {
      for (const Change& part : change.git->parts) TRY(take(part));
      return {};
    }
    if (change.is_moved_directory()) {
      TRY(flush());
      return for_each_moved(view_, set_, change, [&](const Moved& moved) {
        report_.files++;
        return write_pure_rename(moved, sink_);
      });
    }
    report_.files++;
    if (file_size(change) > kSmall) {
      TRY(flush());
      return write_one(change, report_.not_in_patch, sink_);
    }
    batch_.push_back(&change);
    return batch_.size() == kBatch ? flush() : Status{};
  }

  Status write_one(const Change& change, std::vector<std::string>& left_out,
                   const Sink& sink) const {
    FilePatchOptions options{.context = options_.context,
                             .max_literal = options_.max_literal};
    TRY_CTX(write_file_patch(change, options, left_out, sink),
            fmt::format("cannot make a patch of '{}'", change.path.str()));
    return {};
  }

  Status flush() {
    struct Made {
      std::string text;
      std::vector<std::string> left_out;
    };
    std::vector<Made> made(batch_.size());
    TRY(parallel_for(batch_.size(), options_.threads, [&](size_t i) {
      return write_one(*batch_[i], made[i].left_out,
                       [&](std::string_view s) { made[i].text += s; });
    }));
    batch_.clear();
    for (Made& one : made) {
      if (!one.text.empty()) sink_(one.text);
      for (std::string& why : one.left_out)
        report_.not_in_patch.push_back(std::move(why));
    }
    return {};
  }

  static uint64_t file_size(const Change& change) {
    return std::max(change.before ? change.before->size : 0,
                    change.after ? change.after->size : 0);
  }

  const fs::View& view_;
  const ChangeSet& set_;
  const PatchOptions& options_;
  const Sink& sink_;
  std::vector<const Change*> batch_;
  PatchReport report_;
};

}  // namespace

Result<PatchReport> write_patch(const fs::View& view, const ChangeSet& set,
                                const PatchOptions& options, const Sink& sink) {
  return PatchWriter(view, set, options, sink).run();
}

}  // namespace stoplog::diff
