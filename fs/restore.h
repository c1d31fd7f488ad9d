// SPDX-License-Identifier: Apache-2.0
// A state from before commits, over the real tree of after them. The state
// knew the real tree as it was; the commits since changed it. What they
// replaced becomes held content (from the object store), what they made is
// hidden, what they moved is moved back: the tree looks as it did, and all of
// that are held changes over the base that is there now.
//
//   TRY(restore_replaced(state, TRY(base_maps_since(dir, at)), base, store));
//
// Going back to a mark and looking at it are both this; they differ in what
// `store` does: copy an object, or say where it will be read.
#pragma once

#include <functional>
#include <vector>

#include "fs/segments.h"
#include "fs/state.h"

namespace stoplog::fs {

using StoreObject =
    std::function<Result<SegmentRange>(const Sha256Digest&, uint64_t size)>;

// `base` is the real tree, borrowed for the call.
Status restore_replaced(State& state, std::vector<BaseMapRecord> maps, int base,
                        const StoreObject& store);

}  // namespace stoplog::fs
