// SPDX-License-Identifier: Apache-2.0
// Where everything lives on disk. This header owns every name; nobody else
// spells one.
//
//   <state>/                       $XDG_STATE_HOME/stoplog, 0700, ours
//     lock                         creation, renaming, removal of drafts
//     objects/                     contents kept for undo and bundles
//     commits/                     one record a commit (gate)
//     drafts/new-<id>/             a draft that is being made
//     drafts/<id>/
//       draft.json                 what the draft is; replaced atomically
//       draft.synced               the one that was synced last, for when power
//                                  was lost before a later one was on the disk
//       lock                       the draft's lock: exclusive for a writer of
//                                  the journal, shared for its readers
//       start.lock                 whoever starts the daemon
//       meta.lock                  short: draft.json and ledger appends
//       journal, segments/         the held work (fs)
//       home/                      the same for the jail's HOME
//       ledger.jsonl               the record
//       begun.jsonl                commands that run: not in the record yet
//       plan.json                  decisions so far
//       daemon.log                 what the daemon said last
//     run/<id>/                    when the runtime directory cannot be used
//   <runtime>/<id>/                $XDG_RUNTIME_DIR/stoplog/<id>, 0700
//     control                      the daemon's socket
//     mount/                       the draft's view
//
// A Layout is plain strings; nothing is created by making one.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stoplog::draft {

inline constexpr char kLockFile[] = "lock";
inline constexpr char kMetaLockFile[] = "meta.lock";
inline constexpr char kTurnLockFile[] = "turn.lock";
inline constexpr char kStartLockFile[] = "start.lock";
inline constexpr char kMountedAtFile[] = "mounted-at";
// A symlink to the run directory of the latest daemon.
inline constexpr char kServedAtLink[] = "served-at";
inline constexpr char kObjectsDir[] = "objects";
inline constexpr char kCommitsDir[] = "commits";
inline constexpr char kDraftsDir[] = "drafts";
inline constexpr char kRunDir[] = "run";
inline constexpr char kDraftFile[] = "draft.json";
inline constexpr char kSyncedFile[] = "draft.synced";
inline constexpr char kJournalFile[] = "journal";
inline constexpr char kSegmentsDir[] = "segments";
inline constexpr char kHomeDir[] = "home";
inline constexpr char kHomeBase[] = "lower";  // in it: what HOME stands over
inline constexpr char kLedgerFile[] = "ledger.jsonl";
inline constexpr char kBegunFile[] = "begun.jsonl";
inline constexpr char kPlanFile[] = "plan.json";
inline constexpr char kDaemonLogFile[] = "daemon.log";
inline constexpr char kSocketFile[] = "control";
inline constexpr char kMountDir[] = "mount";
inline constexpr char kWorkspacePolicyFile[] = ".stoplog.toml";
inline constexpr char kUserPolicyFile[] = "config.toml";
// Where the jail shows what stoplog tells the agent.
inline constexpr char kJailNotesDir[] = "/run/stoplog";
inline constexpr char kRejectionsNote[] = "rejections";

struct Layout {
  std::string state;    // absolute
  std::string runtime;  // absolute; "" when only <state>/run can be used
  std::string config;   // $XDG_CONFIG_HOME/stoplog

  // From the environment; kInvalid when there is neither XDG nor HOME.
  static Result<Layout> from_environment();

  std::string drafts() const { return state + "/" + kDraftsDir; }
  std::string objects() const { return state + "/" + kObjectsDir; }
  std::string commits() const { return state + "/" + kCommitsDir; }
  std::string user_policy() const { return config + "/" + kUserPolicyFile; }
  std::string draft(std::string_view id) const;
  std::string journal(std::string_view id) const;
  std::string segments(std::string_view id) const;
  std::string ledger(std::string_view id) const;
  std::string plan(std::string_view id) const;
  std::string daemon_log(std::string_view id) const;
  // The run directory of a draft: under the runtime directory when the socket's
  // path fits sun_path there, else under the state directory.
  std::string run(std::string_view id) const;
  std::string socket(std::string_view id) const;
  std::string mount(std::string_view id) const;
};

// Makes `path` and its missing parents, 0700. The last component must be a
// directory of this user that nobody else may enter, else kRefused.
Status make_private_dir(const std::string& path);
// The same beneath the state directory: what fails says where another may be.
Status make_state_dir(const std::string& path);
inline constexpr char kStateHint[] =
    "stoplog keeps its drafts there: set XDG_STATE_HOME to a directory of your "
    "own; `stoplog doctor` says more";
// There is nothing of that name, whatever its directory is.
inline bool is_nothing(const Error& error) {
  return error.err() == ENOENT || error.err() == ENOTDIR;
}

}  // namespace stoplog::draft
