// SPDX-License-Identifier: Apache-2.0
// What the gate writes down, as data, and its form on disk (docs/FORMAT.md,
// gate). Three records:
//
//   Intent        before anything is staged: where a stage may be found
//   SwitchRecord  when everything is staged and synced: from here on a crash is
//                 finished forward
//   CommitRecord  when everything is done: what `show` and `undo` read
//
// Encoding and decoding are pure. A record that does not decode, or fails its
// check, is Code::kCorrupt.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fs/tree_types.h"
#include "gate/commit_plan.h"

namespace stoplog::gate {

// Who, when, on whose word. Free of hostile bytes but for `draft_name`.
struct CommitMeta {
  std::string id;               // 16 hex digits, of this attempt
  uint64_t number = 0;          // of the commit, counted by workspace
  std::string kind = "commit";  // or "undo"
  uint64_t undoes = 0;          // the number of the commit taken back
  timespec time{};
  std::string draft;          // id; empty for none
  uint64_t position = 0;      // of the journal: what was reviewed
  std::string change_digest;  // "sha256:…" of the change set
  std::string plan_digest;    // "sha256:…" of what was approved of it
  std::string policy_digest;
  std::string user;  // of the one who ran it
  std::string tty;   // empty: none
};

struct Intent {
  std::string id;
  std::string draft;  // whose commit it is
  Identity root;
  // Directories, relative to the root, at whose top a stage of our name stands;
  // the one in the state directory needs no mention.
  std::vector<RelPath> stages;
};

// A switch op with what the stage told about it.
struct LiveOp {
  SwitchOp op;
  uint32_t stage = 0;
  Identity old_id;    // of what is to leave or change
  Identity fresh_id;  // of what is to come
};

struct StagePlace {
  bool in_state = true;
  RelPath dir;  // else: the directory in which ".stoplog-<id>" stands
  // By which that directory is known again, whatever its device is numbered.
  uint64_t ino = 0;  // 0: not known
  timespec birth{};
};

// The times of a directory in which names come or go (gate/dir_times.h).
struct DirTimes {
  RelPath path;  // before the commit
  RelPath now;   // afterwards: another when it moves
  std::optional<timespec> before{};
  std::optional<timespec> want{};   // what it is to be set to
  std::optional<timespec> after{};  // as the commit left it
};

struct SwitchRecord {
  CommitMeta meta;
  Identity root;
  std::vector<StagePlace> stages;
  std::vector<Item> items;
  std::vector<std::string> places;  // of each item in its stage, or empty
  std::vector<std::optional<sys::Stat>> now;  // of each item as staged
  std::vector<LiveOp> ops;
  std::vector<std::string> warnings;
  std::vector<DirTimes> dirs{};
};

// A path that was neither old nor new and was left as it is.
struct Left {
  RelPath path;
  std::string why;
  // What would have been lost, in the object store.
  std::optional<Sha256Digest> kept;
  std::string text() const;  // one sentence
};

struct CommitRecord {
  CommitMeta meta;
  std::vector<Item> items;                    // without content
  std::vector<std::optional<sys::Stat>> now;  // parallel to items
  std::vector<Left> left;
  std::vector<std::string> warnings;
  std::vector<DirTimes> dirs{};

  // What the draft's journal must learn (of an earlier day: renumber() first).
  std::vector<fs::BaseChange> base_changes() const;
  // Objects that an undo needs.
  std::vector<Sha256Digest> preimages() const;
};

// Stats of a device that has another number now, after a restart.
void renumber(std::vector<Item>& items,
              std::vector<std::optional<sys::Stat>>& now,
              const std::map<dev_t, dev_t>& devices);

// A list of paths, for the lock files that are held.
std::string encode_paths(const std::vector<RelPath>& paths);
Result<std::vector<RelPath>> decode_paths(std::string_view bytes);

std::string encode(const Intent& intent);
std::string encode(const SwitchRecord& record);
std::string encode(const CommitRecord& record);
Result<Intent> decode_intent(std::string_view bytes);
Result<SwitchRecord> decode_switch(std::string_view bytes);
Result<CommitRecord> decode_commit(std::string_view bytes);
// What it begins with; all of it is checked.
Result<CommitMeta> decode_commit_meta(std::string_view bytes);

}  // namespace stoplog::gate
