// SPDX-License-Identifier: Apache-2.0
// Three-way merge of what drifted: the base as the draft saw it, the real thing
// as it is, the draft's. Content, mode, owner, attributes and place are merged
// each by itself (gate/merge_nodes.h); what one side alone changed comes along,
// and what both made alike is done. Only where both changed the content of a
// file are lines looked at: libgit2's buffer merge, which sees three buffers,
// no repository and no configuration.
//
// There is no answer, and a sentence instead, where both sides changed the same
// lines, the same mode or another attribute; where one removes or moves what
// the other changed; where both made different things at one path.
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

struct Merges {
  // From the real thing to the merge, for a person to see: one for each item
  // that is another than what was approved.
  diff::ChangeSet changes;
  std::vector<std::string> notes;  // what the real tree has already
};
// Replaces, in every item that drifted, the base by the real thing and the new
// side by the merge of both. What has no answer is Code::kDrift with all names
// and why; nothing is changed then.
Result<Merges> merge_drifted(const Disk& disk, int root,
                             std::vector<Item>& items,
                             const diff::ChangeSet& set);

// Of all that merges make of the real files: paths, modes, owners, attributes,
// and content before and after. Fills the digests of the changes.
Result<Sha256Digest> merge_digest(diff::ChangeSet& merges);

}  // namespace stoplog::gate
