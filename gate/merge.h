// SPDX-License-Identifier: Apache-2.0
// Three-way merge of files that drifted: base as the draft saw it, the real
// file as it is, the draft's. libgit2's buffer merge; it
// sees three buffers, no repository and no configuration.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "diff/change_set.h"
#include "gate/commit_plan.h"
#include "gate/disk.h"

namespace stoplog::gate {

// The merged text, or nullopt when both sides changed the same lines.
Result<std::optional<std::string>> merge_texts(std::string_view base,
                                               std::string_view ours,
                                               std::string_view theirs);

// Replaces, in every item whose real file has other content than its base, the
// base by the real file and the new content by the merge of both. A change for
// each that was merged, from the real file to the merge, for a person to see.
// Conflicts, and drift that is not in the lines of a text, are Code::kDrift
// with all names; nothing is changed then.
Result<diff::ChangeSet> merge_drifted(const Disk& disk, int root,
                                      std::vector<Item>& items,
                                      const diff::ChangeSet& set);

// Of all that merges make of the real files: path, mode, and content before and
// after. Fills the digests of the changes.
Result<Sha256Digest> merge_digest(diff::ChangeSet& merges);

}  // namespace stoplog::gate
