// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>

#include "base/escape.h"
#include "base/sys_file.h"
#include "cli/bundle_flow.h"
#include "cli/progress.h"
#include "cli/who.h"
#include "cli/words.h"
#include "draft/ledger.h"
#include "fs/draft_view.h"
#include "snapshot/bundle.h"

namespace stoplog::cli {
namespace {

constexpr size_t kBlock = 256u << 10;
constexpr auto kLook = std::chrono::milliseconds(50);
constexpr size_t kNamed = 10;  // paths in one message

// The last mark of HOME's tree, or its end where there is none.
Result<fs::Position> home_position(int dir) {
  std::vector<fs::Mark> marks = TRY(fs::list_marks(dir));
  return marks.empty() ? UINT64_MAX : marks.back().position;
}

Error damaged() {
  return Error(Code::kCorrupt,
               "the draft's journal is damaged; it cannot be exported");
}

struct Part {
  std::string prefix;
  Fd draft_dir, base;
  fs::Position until = 0;
  snapshot::BaseTable table{};
  fs::RangeSet needed{};
};

Result<std::vector<Part>> parts_of(const Opened& opened) {
  std::vector<Part> parts;
  parts.push_back({.prefix = "",
                   .draft_dir = TRY(sys::dup(opened.draft_dir.get())),
                   .base = TRY(sys::dup(opened.door.root.get())),
                   .until = opened.end});
  auto home = sys::openat(opened.draft_dir.get(), draft::kHomeDir,
                          O_RDONLY | O_DIRECTORY);
  if (!home && home.error().err() == ENOENT) return parts;
  Part part{.prefix = std::string(draft::kHomeDir) + "/",
            .draft_dir = TRY(std::move(home))};
  auto lower = sys::openat(part.draft_dir.get(), draft::kHomeBase,
                           O_RDONLY | O_DIRECTORY);
  if (!lower || TRY(fs::list_generations(part.draft_dir.get())).empty())
    return parts;
  part.base = std::move(*lower);
  part.until = TRY(home_position(part.draft_dir.get()));
  parts.push_back(std::move(part));
  return parts;
}

Json manifest_of(const draft::Draft& d, const std::string& digest) {
  Json j = Json::object();
  j.set("version", 1).set("stoplog", STOPLOG_VERSION);
  j.set("name", d.name).set("id", d.id).set("workspace", d.workspace);
  j.set("created", d.created).set("commands", d.commands);
  j.set("digest", digest);
  Json ledger = Json::object();
  ledger.set("count", d.ledger_count).set("head", d.ledger_head);
  ledger.set("size", d.ledger_size);
  j.set("ledger", std::move(ledger));
  return j;
}

// The part of the record that draft.json speaks of; what is appended
// meanwhile is not in the bundle.
Status add_ledger(snapshot::BundleWriter& out, const Opened& opened,
                  const draft::Draft& d) {
  auto fd = sys::openat(opened.draft_dir.get(), draft::kLedgerFile, O_RDONLY);
  if (!fd && fd.error().err() == ENOENT) return out.add("ledger", "");
  if (!fd) return std::unexpected(std::move(fd).error().context("ledger"));
  const auto size = static_cast<uint64_t>(std::max<int64_t>(0, d.ledger_size));
  TRY(out.begin("ledger", size));
  std::vector<std::byte> block(kBlock);
  for (uint64_t at = 0; at < size;) {
    auto part = std::span(block).first(
        static_cast<size_t>(std::min<uint64_t>(block.size(), size - at)));
    if (TRY(sys::pread_full(fd->get(), part, at)) != part.size())
      return fail(Code::kCorrupt, "the draft's record is shorter than it was");
    TRY(out.write(part));
    at += part.size();
  }
  return out.end();
}

// The change set's digest, found in a thread of its own, from the replay on: it
// reads what the bundle is made of meanwhile. Its store of objects is its own,
// too, for one is used by one thread.
class Comparing {
 public:
  struct Found {
    std::string digest;
    std::vector<std::string> notes;  // of the journal
  };
  Comparing(const Opened& opened, draft::Policy policy,
            snapshot::ObjectStore objects)
      : objects_(std::move(objects)),
        found_(std::async(std::launch::async,
                          [this, &opened, policy = std::move(policy)]() {
                            return run(opened, policy);
                          })) {}
  ~Comparing() { stop_ = true; }
  Comparing(const Comparing&) = delete;
  Comparing& operator=(const Comparing&) = delete;
  Result<Found> wait(Progress& progress, uint64_t done) {
    while (found_.wait_for(kLook) != std::future_status::ready)
      TRY(progress.at(done));
    return found_.get();
  }

 private:
  Result<Found> run(const Opened& opened, const draft::Policy& policy) {
    auto view = TRY_CTX(fs::open_view({.draft_dir = opened.draft_dir.get(),
                                       .base = opened.door.root.get(),
                                       .at = opened.end,
                                       .objects =
                                           [this](const Sha256Digest& id) {
                                             return objects_.content(id);
                                           }}),
                        "cannot read the draft's journal");
    if (view->damaged()) return std::unexpected(damaged());
    diff::DiffOptions options{
        .digest = true, .count_lines = false, .risks = false};
    options.progress = [](size_t, size_t) { return true; };  // not its line
    options.stop = &stop_;
    Found found;
    found.digest =
        digest_text(TRY(changes_in(*view, opened, policy, std::move(options))));
    found.notes = view->notes();
    return found;
  }
  snapshot::ObjectStore objects_;
  std::atomic<bool> stop_ = false;
  std::future<Result<Found>> found_;  // the last: waits for its end
};

std::string drift_note(const std::vector<std::string>& paths) {
  std::string out = fmt::format(
      "{} changed in the real tree since the draft touched them; the bundle "
      "is for a tree where they did not:",
      plural(paths.size(), "path"));
  for (size_t i = 0; i < std::min(paths.size(), kNamed); ++i)
    out += " " + escape(paths[i]);
  return paths.size() > kNamed ? out + " ..." : out;
}

}  // namespace

Result<BundleWritten> write_bundle(Context& context, const Opened& opened,
                                   int fd) {
  if (opened.view) return std::unexpected(damaged());  // only then there is one
  BundleWritten result;
  Fd objects_dir = TRY(sys::openat(AT_FDCWD, TRY(context.layout())->objects(),
                                   O_RDONLY | O_DIRECTORY));
  Comparing comparing(opened, TRY(load_policy(context)),
                      TRY(snapshot::ObjectStore::open(objects_dir.get())));
  std::vector<Part> parts = TRY(parts_of(opened));
  uint64_t total = 0;
  {
    Progress progress(context.out, "looking", 0);
    for (Part& part : parts) {
      fs::NeededRanges needed;
      part.table =
          TRY(snapshot::gather_base(part.draft_dir.get(), part.base.get(),
                                    part.until, progress.sink(), &needed));
      part.needed = needed.take();
      total += part.needed.bytes();
    }
    TRY(progress.at(0));
  }
  draft::Draft d = TRY(draft::read_draft_settled(opened.draft_dir.get()));
  snapshot::BundleWriter out = TRY(snapshot::BundleWriter::create(fd, 2));
  TRY(add_ledger(out, opened, d));
  Progress progress(context.out, "exporting", total);
  uint64_t before = 0;
  for (const Part& part : parts) {
    // What lies beneath HOME is not in the bundle, and need not be the same.
    if (!part.table.drifted.empty() && part.prefix.empty())
      result.notes.push_back(drift_note(part.table.drifted));
    TRY(out.add(part.prefix + "base", encode(part.table)));
    snapshot::Progress written = [&](uint64_t done) {
      return progress.at(before + done);
    };
    TRY(snapshot::export_tree(out, {.prefix = part.prefix,
                                    .draft_dir = part.draft_dir.get(),
                                    .until = part.until,
                                    .needed = part.needed,
                                    .progress = written}));
    before += part.needed.bytes();
  }
  auto objects = TRY(snapshot::export_objects(
      out, *opened.door.objects, opened.draft_dir.get(), opened.end));
  if (objects.missing > 0)
    result.notes.push_back(fmt::format(
        "{} that commits replaced {} no longer stored: marks before those "
        "commits cannot be restored from the bundle",
        plural(objects.missing, "content"),
        objects.missing == 1 ? "is" : "are"));
  Comparing::Found found = TRY(comparing.wait(progress, total));
  result.digest = std::move(found.digest);
  result.notes.insert(result.notes.begin(), found.notes.begin(),
                      found.notes.end());
  TRY(out.add("manifest", manifest_of(d, result.digest).dump()));
  TRY(out.finish());
  result.bytes = out.written();
  return result;
}

}  // namespace stoplog::cli
