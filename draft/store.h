// SPDX-License-Identifier: Apache-2.0
// The drafts of this user: made, listed, found, renamed, selected, removed.
//
//   Store store = TRY(Store::open(layout, Store::Create::kYes));
//   Draft d = TRY(store.create({.workspace = ws}));
//   std::optional<Draft> current = TRY(store.current(ws));
//   DraftLock lock = TRY(DraftLock::take(layout, d.id, LockMode::kShared));
//
// A Draft is a copy of draft.json at one moment; change it through update(),
// which reads, changes and replaces it under the draft's meta lock, so that the
// daemon and several CLIs may do so at once. Names are unique among the drafts
// of one workspace, ids everywhere. The current draft of a workspace is the
// open one that was selected last (creation selects, forking does not) and
// stands over the directory that is there now.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "base/result.h"
#include "base/temp_file.h"
#include "draft/layout.h"
#include "draft/workspace.h"

namespace stoplog::draft {

enum class DraftState { kOpen, kCommitted, kDiscarded };
std::string_view name_of(DraftState state);

struct Draft {
  std::string id;
  std::string name;
  std::string workspace;
  uint64_t workspace_ino = 0;
  int64_t workspace_born_ns = 0;
  DraftState state = DraftState::kOpen;
  std::string created;        // RFC 3339
  int64_t selected_ns = 0;    // when it was made current; 0: never
  std::string forked_from;    // id, or ""
  int64_t commands = 0;       // commands started so far
  int64_t ledger_count = 0;   // entries of the ledger
  std::string ledger_head;    // SHA-256 of the last one, hex
  int64_t ledger_size = 0;    // bytes of the ledger that the head covers
  int64_t ledger_synced = 0;  // entries that were on the disk for certain
  std::string ledger_boot;    // of the machine's start in which the head is

  Json raw = Json::object();  // keys of a newer version are kept

  // Its workspace is this very directory, not one that was made in its place.
  bool stands_over(const Workspace& directory) const;

  static Result<Draft> from_json(const Json& json);
  Json to_json() const;
};

// 1–64 of [A-Za-z0-9._-], not beginning with '.' or '-'.
bool is_valid_draft_name(std::string_view name);

enum class LockMode { kShared, kExclusive };

// The draft's lock, released on destruction (and by the kernel on our death).
class DraftLock {
 public:
  // Waits up to `wait`; then EWOULDBLOCK.
  static Result<DraftLock> take(
      const Layout& layout, std::string_view id, LockMode mode,
      std::chrono::milliseconds wait = std::chrono::seconds(10));
  // True when somebody holds it exclusively now: a daemon lives, or a commit
  // without one is at work.
  static Result<bool> is_held(const Layout& layout, std::string_view id);
  int fd() const { return fd_.get(); }

 private:
  explicit DraftLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

// The draft's turn: whoever puts it over another tree, or makes another tree of
// it (commit, undo, rollback, discard), has it from before looking at the draft
// until the draft knows. Without it a rollback that came while a commit was
// being made was taken for what had been reviewed, and lost. Commands that
// write in the draft and readers go on. Kept as long as this lives.
class DraftTurn {
 public:
  // Waits up to `wait`; then Code::kRolledBack with EWOULDBLOCK.
  static Result<DraftTurn> take(
      const Layout& layout, std::string_view id,
      std::chrono::milliseconds wait = std::chrono::seconds(20));

 private:
  explicit DraftTurn(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

class Store {
 public:
  enum class Create { kNo, kYes };
  // With kNo an absent state directory is an empty store.
  static Result<Store> open(Layout layout, Create create);

  const Layout& layout() const { return layout_; }

  struct NewDraft {
    const Workspace& workspace;
    std::optional<std::string> name;  // default: a friendly one
    std::string forked_from;          // a fork does not become current
    // Another client may have made the same meanwhile: that one will do.
    bool or_existing = false;
  };
  Result<Draft> create(const NewDraft& request);
  // The same for a draft that begins with something in it. `fill` gets its
  // directory (an fd and a path, another one than it will have) and may change
  // what draft.json will say; only then does the draft exist. What a crash
  // leaves of it is no draft, and clear_unfinished() removes it.
  using Fill =
      std::function<Status(int dir, const std::string& path, Draft& draft)>;
  Result<Draft> create(const NewDraft& request, const Fill& fill);
  // How many there were.
  Result<uint64_t> clear_unfinished();
  // How many it would remove.
  Result<uint64_t> count_unfinished() const;

  // By creation, oldest first. A directory without a readable draft.json is
  // left out (list_damaged names it).
  Result<std::vector<Draft>> list() const;
  Result<std::vector<Draft>> list(const Workspace& workspace) const;
  Result<std::vector<std::string>> list_damaged() const;
  Result<Draft> load(std::string_view id) const;
  Result<std::optional<Draft>> current(const Workspace& workspace) const;
  // A name of this workspace, or an id or unambiguous beginning of one (4
  // digits at least) of any. Unknown: kUsage with the nearest name as hint.
  Result<Draft> find(const Workspace& workspace, std::string_view name) const;
  // An open draft over a directory that contains or lies in `workspace`.
  Result<std::optional<Draft>> overlapping(const Workspace& workspace) const;

  Status select(std::string_view id);
  Status rename(std::string_view id, std::string_view name);
  // Deletes all of it. The caller has stopped the daemon; refused while the
  // lock is held.
  Status remove(std::string_view id);
  Result<Draft> update(std::string_view id,
                       const std::function<void(Draft&)>& change) const;

 private:
  explicit Store(Layout layout) : layout_(std::move(layout)) {}
  Result<Fd> state_lock() const;
  Result<std::string> free_name(const Workspace& workspace) const;
  Result<std::string> choose_name(const NewDraft& request) const;
  Result<std::optional<Draft>> wanted(const NewDraft& request) const;

  Layout layout_;
};

// Reads, changes and replaces draft.json beneath `draft_dir` under meta.lock.
Result<Draft> update_draft(int draft_dir,
                           const std::function<Status(Draft&)>& change,
                           Sync sync);

}  // namespace stoplog::draft
