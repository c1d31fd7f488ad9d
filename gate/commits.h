// SPDX-License-Identifier: Apache-2.0
// The commits of a workspace, oldest to newest: one record file each in
// state/commits, written once. Numbers count up from 1 and are never reused.
#pragma once

#include <cstdint>
#include <ctime>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "fs/told.h"
#include "gate/disk.h"
#include "gate/record.h"
#include "snapshot/objects.h"

namespace stoplog::gate {

Result<std::vector<uint64_t>> list_commits(int state);  // ascending
Result<CommitRecord> read_commit(int state, uint64_t number);
// Without the paths, of which there may be many.
Result<CommitMeta> read_commit_meta(int state, uint64_t number);
Result<uint64_t> next_commit_number(int state);
// True when exactly this attempt is on record.
Result<bool> has_commit(int state, const CommitMeta& meta);
// Not synced: the caller syncs it together with the pack.
Status write_commit(int state, const Disk& disk, const CommitRecord& record);
// Records that were being written by one that died, before they had a name.
// With the lock of the workspace's root, under which they are written.
Status clear_unfinished(int state, const Disk& disk);
// The same of what nobody has written to for this many seconds, without it.
Status clear_unfinished(int state, int64_t idle);
// This attempt, when it is on record, never was; not synced, either.
Status withdraw_commit(int state, const Disk& disk, const CommitMeta& meta);
// Items that were left as they are were not committed.
void drop_left_items(CommitRecord& record, const std::set<RelPath>& left);

// A record of before a restart that numbered the devices anew: as of today, by
// what still stands where the commit put it.
void renumber(CommitRecord& record, const Disk& disk, int root);

// What the draft knows it by.
fs::CommitId commit_id(const CommitMeta& meta);
// A commit whose base map the draft's journal has taken is noted as such; the
// others are what a draft must still learn when it is opened again.
Status note_rebased(int state, uint64_t number);
Result<std::vector<uint64_t>> not_rebased(int state, const std::string& draft);

// A content that was kept by a commit that was taken back, and so has no record
// of its own: one file in state/kept, named by the object, with the sentence in
// which it was told. Durable when note_kept() returns.
struct Kept {
  Sha256Digest object{};
  timespec time{};
  std::string text;
};
Status note_kept(int state, const Disk& disk, const Left& left);
Result<std::vector<Kept>> list_kept(int state);
Status forget_kept(int state, const Sha256Digest& object);

// Objects that the undo of any commit still needs, or that were kept: for gc.
Result<std::set<Sha256Digest>> needed_objects(int state);
// Keeps what undo needs below `limit` bytes on disk, oldest commits first. A
// commit goes only when an earlier call named it: `next` are those that the
// next call forgets, `gone` those that this one forgot. The newest stays.
struct Trimmed {
  uint64_t bytes = 0;  // before
  std::vector<uint64_t> gone, next;
};
Result<Trimmed> trim_undo(int state, snapshot::ObjectStore& objects,
                          uint64_t limit);

// Removes the record, so that its pre-images can be collected; it can no
// longer be undone.
Status forget_commit(int state, uint64_t number);

}  // namespace stoplog::gate
