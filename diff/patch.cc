// SPDX-License-Identifier: Apache-2.0
#include "diff/patch.h"

#include <deque>

#include "base/escape.h"
#include "diff/file_patch.h"
#include "diff/git_meta.h"
#include "diff/ordered_writer.h"
#include "diff/select.h"

namespace stoplog::diff {
namespace {

constexpr size_t kProgressEvery = 256;

class PatchWriter {
 public:
  PatchWriter(const fs::View& view, const ChangeSet& set,
              const PatchOptions& options, const Sink& sink)
      : view_(view),
        set_(set),
        options_(options),
        sink_(sink),
        writer_(options.threads, sink) {}

  Result<PatchReport> run() {
    size_t done = 0;
    for (const Change& change : set_.changes) {
      if (wanted(change)) TRY(take(change));
      if (++done % kProgressEvery == 0 && options_.progress &&
          !options_.progress(done, set_.changes.size()))
        break;
    }
    TRY(writer_.flush());
    // In order of the files, however many threads found them.
    for (auto& left_out : left_out_)
      report_.not_in_patch.insert(report_.not_in_patch.end(),
                                  std::make_move_iterator(left_out.begin()),
                                  std::make_move_iterator(left_out.end()));
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
      name_unsayable(change, left_out_.emplace_back());
      TRY(writer_.flush());
      return for_each_moved(view_, set_, change, [&](const Moved& moved) {
        report_.files++;
        return write_pure_rename(moved, sink_);
      });
    }
    report_.files++;
    std::vector<std::string>& left_out = left_out_.emplace_back();
    return writer_.add(size_to_read(change), [&](const Sink& sink) -> Status {
      FilePatchOptions options{.context = options_.context,
                               .max_literal = options_.max_literal};
      TRY_CTX(write_file_patch(change, options, left_out, sink),
              fmt::format("cannot make a patch of '{}'", change.path.str()));
      return {};
    });
  }

  const fs::View& view_;
  const ChangeSet& set_;
  const PatchOptions& options_;
  const Sink& sink_;
  OrderedWriter writer_;
  std::deque<std::vector<std::string>> left_out_;  // a file each; stays put
  PatchReport report_;
};

}  // namespace

Result<PatchReport> write_patch(const fs::View& view, const ChangeSet& set,
                                const PatchOptions& options, const Sink& sink) {
  return PatchWriter(view, set, options, sink).run();
}

}  // namespace stoplog::diff
