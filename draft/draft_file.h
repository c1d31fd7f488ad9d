// SPDX-License-Identifier: Apache-2.0
// draft.json on disk. It is replaced at every entry of the ledger, which must
// not wait for a disk; on some file systems (XFS) one that was replaced and not
// synced is empty after a loss of power. So the one that was synced last keeps
// a second name, and counts when the other cannot be read.
#pragma once

#include "base/temp_file.h"
#include "draft/store.h"

namespace stoplog::draft {

// ENOENT: there is no draft. Code::kCorrupt when neither can be read.
Result<Draft> read_draft(int draft_dir);
// With meta.lock held, or before anybody can know the draft.
Status write_draft(int draft_dir, const Draft& draft, Sync sync);
// What was written without a sync is synced by somebody else later
// (fs/journal.cc, the first of a journal).
Status keep_synced(int draft_dir);

}  // namespace stoplog::draft
