// SPDX-License-Identifier: Apache-2.0
#include "draft/store.h"

#include <linux/fs.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "base/dir.h"
#include "base/interrupt.h"
#include "base/strings.h"
#include "base/sys_file.h"
#include "base/temp_file.h"
#include "draft/draft_file.h"
#include "draft/names.h"
#include "draft/sweep.h"

namespace stoplog::draft {
namespace {

constexpr int64_t kVersion = 1;
const std::string kUnfinished = "new-";  // a draft that is being made

bool is_valid_id(std::string_view id) {
  return id.size() == kIdLength && id.find_first_not_of(kIdDigits) == id.npos;
}

Result<Fd> open_draft_dir(const Layout& layout, std::string_view id) {
  if (!is_valid_id(id)) return fail(Code::kInvalid, "bad draft id '{}'", id);
  return TRY_CTX(
      sys::openat(AT_FDCWD, layout.draft(id), O_RDONLY | O_DIRECTORY),
      fmt::format("cannot open draft {}", id));
}

// Names in the drafts directory; none when there is no such directory yet.
Result<std::vector<std::string>> draft_entries(const Layout& layout) {
  auto dir = sys::openat(AT_FDCWD, layout.drafts(), O_RDONLY | O_DIRECTORY);
  if (!dir && is_nothing(dir.error())) return std::vector<std::string>{};
  if (!dir)
    return std::unexpected(
        std::move(dir)
            .error()
            .context(
                fmt::format("cannot list the drafts in '{}'", layout.drafts()))
            .with_hint(kStateHint));
  return list_names(dir->get(), ".");
}

int64_t now_ns() {
  timespec now = Clock::real().now();
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

std::string_view name_of(DraftState state) {
  switch (state) {
    case DraftState::kOpen:
      return "open";
    case DraftState::kCommitted:
      return "committed";
    case DraftState::kDiscarded:
      return "discarded";
  }
  return "open";
}

bool is_valid_draft_name(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= 64 && name[0] != '.' &&
         name[0] != '-' && name.find_first_not_of(kAllowed) == name.npos;
}

Result<Draft> Draft::from_json(const Json& json) {
  if (!json.is_object() || json.integer("version") < 1)
    return fail(Code::kCorrupt, "not a draft.json");
  if (json.integer("version") > kVersion)
    return fail(Code::kUnsupported,
                "draft.json is of version {}, made by a newer stoplog",
                json.integer("version"));
  Draft d;
  d.raw = json;
  d.id = json.text("id");
  d.name = json.text("name");
  d.workspace = json.text("workspace");
  d.workspace_born_ns = json.integer("workspace_born_ns");
  d.workspace_ino = static_cast<uint64_t>(json.integer("workspace_ino"));
  for (DraftState s : {DraftState::kCommitted, DraftState::kDiscarded})
    if (json.text("state") == name_of(s)) d.state = s;
  d.created = json.text("created");
  d.selected_ns = json.integer("selected_ns");
  d.forked_from = json.text("forked_from");
  d.commands = json.integer("commands");
  d.ledger_count = json["ledger"].integer("count");
  d.ledger_head = json["ledger"].text("head");
  d.ledger_size = json["ledger"].integer("size");
  d.ledger_synced = json["ledger"].integer("synced");
  d.ledger_boot = json["ledger"].text("boot");
  if (!is_valid_id(d.id) || !d.workspace.starts_with('/') ||
      !is_valid_draft_name(d.name))
    return fail(Code::kCorrupt, "draft.json lacks its id, name or workspace");
  return d;
}

bool Draft::stands_over(const Workspace& directory) const {
  bool same_birth = workspace_born_ns == 0 || directory.born_ns == 0 ||
                    workspace_born_ns == directory.born_ns;
  return workspace == directory.path && workspace_ino == directory.ino &&
         same_birth;
}

Json Draft::to_json() const {
  Json json = raw;
  json.set("version", kVersion).set("id", id).set("name", name);
  json.set("workspace", workspace).set("workspace_ino", workspace_ino);
  json.set("workspace_born_ns", workspace_born_ns).set("state", name_of(state));
  json.set("created", created).set("selected_ns", selected_ns);
  json.set("forked_from", forked_from).set("commands", commands);
  Json ledger = Json::object();
  ledger.set("count", ledger_count).set("head", ledger_head);
  ledger.set("size", ledger_size).set("synced", ledger_synced);
  ledger.set("boot", ledger_boot);
  json.set("ledger", std::move(ledger));
  return json;
}

Result<DraftLock> DraftLock::take(const Layout& layout, std::string_view id,
                                  LockMode mode,
                                  std::chrono::milliseconds wait) {
  Fd dir = TRY(open_draft_dir(layout, id));
  Fd fd = TRY(sys::openat(dir.get(), kLockFile, O_RDWR | O_CREAT, 0600));
  int operation = mode == LockMode::kShared ? LOCK_SH : LOCK_EX;
  Status locked = sys::flock_within(fd.get(), operation, wait);
  if (!locked)
    return fail_errno(locked.error().err(), "cannot lock draft {}", id);
  return DraftLock(std::move(fd));
}

Result<DraftTurn> DraftTurn::take(const Layout& layout, std::string_view id,
                                  std::chrono::milliseconds wait) {
  Fd dir = TRY(open_draft_dir(layout, id));
  Fd fd = TRY(sys::openat(dir.get(), kTurnLockFile, O_RDWR | O_CREAT, 0600));
  Status locked = sys::flock_within(fd.get(), LOCK_EX, wait);
  if (locked) return DraftTurn(std::move(fd));
  if (locked.error().err() != EWOULDBLOCK)
    return std::unexpected(std::move(locked.error()));
  return std::unexpected(
      Error(Code::kRolledBack,
            "a commit, undo, rollback or discard of this draft is at work",
            EWOULDBLOCK)
          .with_hint("try again when it is done"));
}

Result<bool> DraftLock::is_held(const Layout& layout, std::string_view id) {
  auto lock = take(layout, id, LockMode::kShared, std::chrono::milliseconds(0));
  if (lock) return false;
  if (lock.error().err() == EWOULDBLOCK) return true;
  return std::unexpected(std::move(lock).error());
}

Result<Store> Store::open(Layout layout, Create create) {
  if (create == Create::kYes) {
    TRY(make_state_dir(layout.state));
    TRY(make_state_dir(layout.drafts()));
  }
  return Store(std::move(layout));
}

Result<Fd> Store::state_lock() const {
  Fd fd = TRY_CTX(sys::openat(AT_FDCWD, layout_.state + "/" + kLockFile,
                              O_RDWR | O_CREAT, 0600),
                  "cannot open the state directory's lock");
  TRY(sys::flock(fd.get(), LOCK_EX));
  return fd;
}

Result<std::string> Store::free_name(const Workspace& workspace) const {
  std::vector<Draft> others = TRY(list(workspace));
  auto taken = [&](const std::string& name) {
    return std::ranges::any_of(others,
                               [&](const Draft& d) { return d.name == name; });
  };
  for (int attempt = 0;; ++attempt) {
    std::string name = TRY(friendly_name());
    if (attempt > 20) name += "-" + std::to_string(attempt);
    if (!taken(name)) return name;
  }
}

// With the state's lock held.
Result<std::string> Store::choose_name(const NewDraft& request) const {
  if (!request.name) return free_name(request.workspace);
  for (const Draft& other : TRY(list(request.workspace)))
    if (other.name == *request.name)
      return fail(Code::kUsage,
                  "cannot make draft '{}': there is one of that name",
                  *request.name);
  return *request.name;
}

Result<std::optional<Draft>> Store::wanted(const NewDraft& request) const {
  if (!request.name) return current(request.workspace);
  for (Draft& other : TRY(list(request.workspace)))
    if (other.name == *request.name) return std::move(other);
  return std::nullopt;
}

Result<Draft> Store::create(const NewDraft& request) {
  return create(request, {});
}

Result<Draft> Store::create(const NewDraft& request, const Fill& fill) {
  if (request.name && !is_valid_draft_name(*request.name))
    return std::unexpected(
        Error(Code::kUsage,
              fmt::format("cannot name a draft '{}'", *request.name))
            .with_hint("letters, digits, '.', '_' and '-', 64 at most"));
  Fd lock = TRY(state_lock());
  if (request.or_existing)
    if (auto existing = TRY(wanted(request))) return std::move(*existing);
  Draft d;
  d.name = TRY(choose_name(request));
  d.id = TRY(random_id());
  d.workspace = request.workspace.path;
  d.workspace_ino = request.workspace.ino;
  d.workspace_born_ns = request.workspace.born_ns;
  d.created = rfc3339(Clock::real().now());
  d.forked_from = request.forked_from;
  if (request.forked_from.empty()) d.selected_ns = now_ns();
  const std::string path = layout_.drafts() + "/" + kUnfinished + d.id;
  Hold hold;
  TRY_CTX(sys::mkdirat(AT_FDCWD, path, 0700), "cannot make the draft");
  Fd dir = TRY(sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
  // Held while it is being made: who finds it free may remove it.
  Fd own = TRY(sys::openat(dir.get(), kLockFile, O_RDWR | O_CREAT, 0600));
  TRY(sys::flock(own.get(), LOCK_EX));
  auto made = [&]() -> Status {
    TRY(sys::mkdirat(dir.get(), kSegmentsDir, 0700));
    if (fill) {
      lock.reset();
      TRY(fill(dir.get(), path, d));
      TRY(check_interrupt());
      lock = TRY(state_lock());
      // Another one may have taken the name meanwhile.
      d.name = TRY(choose_name(
          {.workspace = request.workspace, .name = d.name, .forked_from = ""}));
    }
    TRY(write_draft(dir.get(), d, Sync::kNo));
    TRY(keep_synced(dir.get()));
    return sys::renameat2(AT_FDCWD, path, AT_FDCWD, layout_.draft(d.id),
                          RENAME_NOREPLACE);
  }();
  if (!made) {
    Fd drafts =
        TRY(sys::openat(AT_FDCWD, layout_.drafts(), O_RDONLY | O_DIRECTORY));
    (void)remove_tree(drafts.get(), kUnfinished + d.id);
    return std::unexpected(std::move(made).error());
  }
  return d;
}

Result<uint64_t> Store::clear_unfinished() {
  uint64_t removed = 0;
  auto drafts = sys::openat(AT_FDCWD, layout_.drafts(), O_RDONLY | O_DIRECTORY);
  if (!drafts && drafts.error().err() == ENOENT) return removed;
  Fd dir = TRY(std::move(drafts));
  Fd lock = TRY(state_lock());
  for (const std::string& name : TRY(list_names(dir.get(), "."))) {
    if (!name.starts_with(kUnfinished)) continue;
    auto own =
        sys::openat(AT_FDCWD, layout_.drafts() + "/" + name + "/" + kLockFile,
                    O_RDWR | O_CREAT, 0600);
    if (own && !sys::flock(own->get(), LOCK_EX | LOCK_NB)) continue;
    TRY(remove_tree(dir.get(), name));
    ++removed;
  }
  return removed;
}

Result<uint64_t> Store::count_unfinished() const {
  uint64_t count = 0;
  for (const std::string& name : TRY(draft_entries(layout_))) {
    if (!name.starts_with(kUnfinished)) continue;
    auto own = sys::openat(
        AT_FDCWD, layout_.drafts() + "/" + name + "/" + kLockFile, O_RDWR);
    if (!own || sys::flock(own->get(), LOCK_EX | LOCK_NB)) ++count;
  }
  return count;
}

Result<std::vector<Draft>> Store::list() const {
  std::vector<Draft> out;
  for (const std::string& id : TRY(draft_entries(layout_))) {
    if (!is_valid_id(id)) continue;
    if (auto d = load(id)) out.push_back(std::move(*d));
  }
  std::ranges::sort(out, [](const Draft& a, const Draft& b) {
    return std::tie(a.created, a.id) < std::tie(b.created, b.id);
  });
  return out;
}

Result<std::vector<Draft>> Store::list(const Workspace& workspace) const {
  std::vector<Draft> all = TRY(list());
  std::erase_if(all,
                [&](const Draft& d) { return d.workspace != workspace.path; });
  return all;
}

Result<std::vector<std::string>> Store::list_damaged() const {
  std::vector<std::string> out;
  for (const std::string& id : TRY(draft_entries(layout_)))
    if (!id.starts_with(kUnfinished) && (!is_valid_id(id) || !load(id)))
      out.push_back(id);
  return out;
}

Result<Draft> Store::load(std::string_view id) const {
  Fd dir = TRY(open_draft_dir(layout_, id));
  Draft d =
      TRY_CTX(read_draft(dir.get()), fmt::format("cannot read draft {}", id));
  if (d.id != id)
    return fail(Code::kCorrupt, "draft.json of {} names another draft", id);
  return d;
}

Result<std::optional<Draft>> Store::current(const Workspace& workspace) const {
  std::optional<Draft> best;
  for (Draft& d : TRY(list(workspace))) {
    if (d.state != DraftState::kOpen || !d.stands_over(workspace)) continue;
    if (!best || std::tie(d.selected_ns, d.created) >=
                     std::tie(best->selected_ns, best->created))
      best = std::move(d);
  }
  return best;
}

Result<Draft> Store::find(const Workspace& workspace,
                          std::string_view name) const {
  std::vector<Draft> all = TRY(list());
  for (const Draft& d : all)
    if (d.workspace == workspace.path && d.name == name) return d;
  std::vector<Draft> by_id;
  for (const Draft& d : all)
    if (name.size() >= 4 && d.id.starts_with(name)) by_id.push_back(d);
  if (by_id.size() == 1) return by_id.front();
  if (by_id.size() > 1)
    return fail(Code::kUsage, "cannot tell which draft '{}' is: {} begin so",
                name, by_id.size());
  std::vector<std::string_view> names;
  for (const Draft& d : all)
    if (d.workspace == workspace.path) names.push_back(d.name);
  Error error(Code::kUsage, fmt::format("cannot find draft '{}' of '{}'", name,
                                        workspace.path));
  if (auto near = nearest(name, names); !near.empty())
    return std::unexpected(
        std::move(error).with_hint(fmt::format("did you mean '{}'?", near)));
  return std::unexpected(
      std::move(error).with_hint("`stoplog drafts` lists them"));
}

Result<std::optional<Draft>> Store::overlapping(
    const Workspace& workspace) const {
  for (Draft& d : TRY(list()))
    if (d.state == DraftState::kOpen && d.workspace != workspace.path &&
        overlaps(d.workspace, workspace.path))
      return std::move(d);
  return std::nullopt;
}

Status Store::select(std::string_view id) {
  TRY(update(id, [](Draft& d) { d.selected_ns = now_ns(); }));
  return {};
}

Status Store::rename(std::string_view id, std::string_view name) {
  if (!is_valid_draft_name(name))
    return fail(Code::kUsage, "cannot name a draft '{}'", name);
  Fd lock = TRY(state_lock());
  Draft self = TRY(load(id));
  for (const Draft& other : TRY(list()))
    if (other.id != id && other.name == name &&
        other.workspace == self.workspace)
      return fail(Code::kUsage,
                  "cannot rename to '{}': there is one of that name", name);
  TRY(update(id, [&](Draft& d) { d.name = std::string(name); }));
  return {};
}

Status Store::remove(std::string_view id) {
  Fd lock = TRY(state_lock());
  DraftLock draft_lock =
      TRY_CTX(DraftLock::take(layout_, id, LockMode::kExclusive,
                              std::chrono::seconds(3)),
              "cannot remove the draft while it is in use");
  TRY(clear_dead_mounts(layout_, id));
  Hold hold;
  // Without draft.json it is no draft any more, whatever else a crash leaves.
  Fd dir = TRY(open_draft_dir(layout_, id));
  TRY(sys::unlinkat(dir.get(), kDraftFile));
  Fd drafts =
      TRY(sys::openat(AT_FDCWD, layout_.drafts(), O_RDONLY | O_DIRECTORY));
  // Under another name, nobody who is late puts anything into it; what a crash
  // leaves of it clear_unfinished() takes.
  const std::string gone = kUnfinished + std::string(id);
  TRY_CTX(sys::renameat2(drafts.get(), std::string(id), drafts.get(), gone,
                         RENAME_NOREPLACE),
          "cannot remove the draft's files");
  Status removed = remove_tree(drafts.get(), gone);
  if (!removed && removed.error().err() == ENOTEMPTY)
    removed = remove_tree(drafts.get(), gone);
  TRY_CTX(std::move(removed), "cannot remove the draft's files");
  std::string run = layout_.run(id);
  (void)sys::unlinkat(AT_FDCWD, layout_.socket(id));
  (void)sys::unlinkat(AT_FDCWD, layout_.mount(id), AT_REMOVEDIR);
  (void)sys::unlinkat(AT_FDCWD, run + "/" + kHomeDir, AT_REMOVEDIR);
  (void)sys::unlinkat(AT_FDCWD, run, AT_REMOVEDIR);
  return {};
}

Result<Draft> update_draft(int draft_dir,
                           const std::function<Status(Draft&)>& change,
                           Sync sync) {
  Fd lock = TRY(sys::openat(draft_dir, kMetaLockFile, O_RDWR | O_CREAT, 0600));
  TRY(sys::flock(lock.get(), LOCK_EX));
  Hold hold;  // the ledger's line and its head in draft.json are one
  Draft d = TRY(read_draft(draft_dir));
  TRY(change(d));
  TRY(write_draft(draft_dir, d, sync));
  return d;
}

Result<Draft> Store::update(std::string_view id,
                            const std::function<void(Draft&)>& change) const {
  Fd dir = TRY(open_draft_dir(layout_, id));
  return update_draft(
      dir.get(),
      [&](Draft& d) -> Status {
        change(d);
        return {};
      },
      Sync::kYes);
}

}  // namespace stoplog::draft
