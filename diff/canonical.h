// SPDX-License-Identifier: Apache-2.0
// The canonical form of a change set and its digest (docs/FORMAT.md, "diff"):
// what an approval is bound by. Says nothing of risks, drift, commands or how
// something is shown, and nothing of ignored files that are held back unless
// they are shown.
#pragma once

#include "diff/change_set.h"

namespace stoplog::diff {

// Whether the digest speaks of this change.
bool is_covered(const Change& change, bool include_ignored);

// The change's own digest; its hashes must have been taken.
Sha256Digest change_digest(const Change& change);
Sha256Digest set_digest(const ChangeSet& set, bool include_ignored);

}  // namespace stoplog::diff
