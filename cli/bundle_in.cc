// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/escape.h"
#include "base/interrupt.h"
#include "base/sys_file.h"
#include "base/units.h"
#include "cli/bundle_flow.h"
#include "cli/progress.h"
#include "cli/who.h"
#include "cli/words.h"
#include "draft/ledger.h"
#include "snapshot/bundle.h"

namespace stoplog::cli {
namespace {

using snapshot::BundleReader;
using snapshot::Section;

constexpr uint64_t kMaxManifest = 1u << 20;
constexpr uint64_t kMaxTable = uint64_t{1} << 30;
constexpr size_t kNamed = 20;  // differing paths in one message

std::unexpected<Error> damaged(std::string_view what) {
  return fail(Code::kCorrupt, "the bundle is damaged: {}", what);
}

Result<const Section*> need(const BundleReader& in, std::string_view name) {
  const Section* section = in.find(name);
  if (section == nullptr)
    return damaged(fmt::format("it has no section '{}'", name));
  return section;
}

// What it says of itself is checked before anything is made: names, and how
// much it will take.
Result<uint64_t> check_sections(const BundleReader& in,
                                const draft::Policy& policy) {
  uint64_t total = 0;
  const auto& limit = policy.limits.disk.value;
  for (const Section& s : in.sections()) {
    if (!snapshot::is_section_name(s.name))
      return damaged(fmt::format("an unknown section '{}'", escape(s.name)));
    if (limit && (s.size > *limit || total > *limit - s.size))
      return std::unexpected(
          Error(Code::kRefused,
                fmt::format("the bundle holds more than a draft may: the "
                            "limit is {}",
                            print_size(*limit)))
              .with_hint("`disk` of [limits] in the policy sets it"));
    total += s.size;
  }
  return total;
}

Status refuse(const snapshot::Compared& compared, const std::string& root) {
  std::string text = fmt::format(
      "'{}' is not the tree that the draft was made over: {}", escape(root),
      plural(compared.differences.size(), "path") + " differ");
  if (compared.differences.size() == 1) text += "s";
  for (size_t i = 0; i < std::min(kNamed, compared.differences.size()); ++i)
    text += fmt::format("\n  {} {}", escape(compared.differences[i].path.str()),
                        compared.differences[i].what);
  if (compared.differences.size() > kNamed)
    text +=
        fmt::format("\n  and {} more", compared.differences.size() - kNamed);
  return std::unexpected(Error(Code::kDrift, text));
}

class Import {
 public:
  Import(Context& context, int fd) : context_(context), fd_(fd) {}
  Result<BundleRead> run(std::optional<std::string> name);

 private:
  Status open();
  Status compare();
  Status fill(int dir, draft::Draft& d);
  Status fill_ledger(int dir, draft::Draft& d);
  Status fill_home(int dir);

  Context& context_;
  int fd_;
  std::optional<BundleReader> in_;
  std::optional<Progress> progress_;
  uint64_t done_ = 0;
  Json manifest_;
  Fd root_;
  snapshot::BaseTable table_;
  snapshot::Compared compared_;
};

snapshot::Owners owners_of(const snapshot::BaseTable& table,
                           const sys::Stat& here) {
  return {.from_uid = table.owner,
          .to_uid = here.uid,
          .from_gid = table.group,
          .to_gid = here.gid};
}

Status Import::open() {
  in_ = TRY(BundleReader::open(fd_));
  uint64_t total = TRY(check_sections(*in_, TRY(load_policy(context_))));
  progress_.emplace(context_.out, "importing", total);
  manifest_ = TRY_CTX(
      Json::parse(TRY(in_->text(*TRY(need(*in_, "manifest")), kMaxManifest))),
      "the bundle is damaged: its manifest");
  if (!manifest_.is_object()) return damaged("its manifest");
  if (manifest_.integer("version") != 1)
    return fail(Code::kUnsupported,
                "the bundle is of version {}, made by another stoplog",
                manifest_.integer("version"));
  table_ = TRY(snapshot::decode_base(
      TRY(in_->text(*TRY(need(*in_, "base")), kMaxTable))));
  return {};
}

Status Import::compare() {
  const draft::Workspace& workspace = *TRY(context_.workspace());
  root_ = TRY(sys::openat(AT_FDCWD, workspace.path, O_RDONLY | O_DIRECTORY));
  snapshot::Progress looked = [&](uint64_t) { return progress_->at(0); };
  compared_ = TRY(snapshot::compare_base(table_, root_.get(), looked));
  if (!compared_.differences.empty()) return refuse(compared_, workspace.path);
  return {};
}

Status Import::fill_ledger(int dir, draft::Draft& d) {
  const Section& section = *TRY(need(*in_, "ledger"));
  const Json& ledger = manifest_["ledger"];
  d.ledger_count = ledger.integer("count");
  d.ledger_head = ledger.text("head");
  d.ledger_size = static_cast<int64_t>(section.size);
  d.commands = std::max<int64_t>(0, manifest_.integer("commands"));
  if (section.size == 0 && d.ledger_count == 0) return {};
  Fd fd = TRY(
      sys::openat(dir, draft::kLedgerFile, O_WRONLY | O_CREAT | O_EXCL, 0600));
  return in_->read(section, [&](std::span<const std::byte> bytes) -> Status {
    TRY(progress_->at(done_));
    return sys::write_full(fd.get(), bytes);
  });
}

Status Import::fill_home(int dir) {
  const Section* table = in_->find("home/base");
  if (table == nullptr) return {};
  auto make = [](int at, const char* name) -> Result<Fd> {
    TRY(sys::mkdirat(at, name, 0700));
    return sys::openat(at, name, O_RDONLY | O_DIRECTORY);
  };
  Fd home = TRY(make(dir, draft::kHomeDir));
  Fd lower = TRY(make(home.get(), draft::kHomeBase));
  snapshot::BaseTable base =
      TRY(snapshot::decode_base(TRY(in_->text(*table, kMaxTable))));
  // Nothing lies beneath a HOME: what it speaks of there is from nowhere.
  snapshot::Compared compared;
  snapshot::Progress progress = [&](uint64_t done) {
    return progress_->at(done_ + done);
  };
  return snapshot::import_tree(
      *in_, {.prefix = std::string(draft::kHomeDir) + "/",
             .draft_dir = home.get(),
             .compared = compared,
             .owners = owners_of(base, TRY(sys::fstat(lower.get()))),
             .progress = progress});
}

Status Import::fill(int dir, draft::Draft& d) {
  snapshot::Progress progress = [&](uint64_t done) {
    done_ = done;
    return progress_->at(done);
  };
  TRY(snapshot::import_tree(
      *in_, {.prefix = "",
             .draft_dir = dir,
             .compared = compared_,
             .owners = owners_of(table_, TRY(sys::fstat(root_.get()))),
             .progress = progress}));
  TRY(fill_home(dir));
  return fill_ledger(dir, d);
}

Result<BundleRead> Import::run(std::optional<std::string> name) {
  TRY(open());
  if (!name) name = manifest_.text("name");
  TRY(compare());
  const draft::Layout& layout = *TRY(context_.layout());
  const draft::Workspace& workspace = *TRY(context_.workspace());
  draft::Store store =
      TRY(draft::Store::open(layout, draft::Store::Create::kYes));
  std::optional<draft::Draft> other = TRY(store.overlapping(workspace));
  draft::WorkspaceCheck check{.force = false};
  if (other) check.other = other->workspace;
  TRY(draft::check_workspace(workspace, layout, check));
  Doorstep door = TRY(open_doorstep(context_));
  auto use = TRY(door.objects->use());
  BundleRead result;
  result.made_digest = manifest_.text("digest");
  result.draft = TRY(
      store.create({.workspace = workspace, .name = name, .forked_from = ""},
                   [&](int dir, const std::string&, draft::Draft& d) -> Status {
                     TRY(fill(dir, d));
                     return snapshot::import_objects(*in_, *door.objects, dir);
                   }));
  progress_.reset();
  return result;
}

}  // namespace

Result<BundleRead> read_bundle(Context& context, int fd,
                               std::optional<std::string> name) {
  Hold hold;  // until the record has it
  Import import(context, fd);
  BundleRead result = TRY(import.run(std::move(name)));
  auto finish = [&]() -> Status {
    draft::Ledger ledger =
        TRY(draft::Ledger::open(*TRY(context.layout()), result.draft.id));
    draft::Ledger::Verdict verdict = TRY(ledger.verify());
    if (!verdict.ok)
      return damaged(fmt::format("its record: {}", verdict.problem));
    Opened opened = TRY(open_draft(context, result.draft, {}));
    diff::DiffOptions options{
        .digest = true, .count_lines = false, .risks = false};
    options.stop = &interrupt_flag();
    result.digest = digest_text(
        TRY(changes_of(opened, TRY(load_policy(context)), std::move(options))));
    TRY(check_interrupt());
    TRY(ledger.append("import",
                      Json::object()
                          .set("name", result.draft.name)
                          .set("digest", result.digest)
                          .set("made_as", result.made_digest),
                      Sync::kYes));
    return {};
  };
  if (Status done = finish(); !done) {
    draft::Store& store = *TRY(context.store());
    (void)store.remove(result.draft.id);
    return std::unexpected(std::move(done).error());
  }
  return result;
}

}  // namespace stoplog::cli
