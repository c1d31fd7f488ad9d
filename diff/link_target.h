// SPDX-License-Identifier: Apache-2.0
// Where a symlink of the draft leads: inside the workspace, or out of it.
//
// Followed as the kernel does, through the draft's other links: "a/l/.." is
// above the workspace when "a/l" leads to its top. Nothing outside of the view
// is looked at. Bounded as the kernel is, by 40 links.
#pragma once

#include <string_view>

#include "fs/view.h"

namespace stoplog::diff {

// Of a link at `path`; `real_root` is where the workspace stands, and absolute
// targets beneath it are inside.
bool leaves_workspace(const fs::View& view, const RelPath& path,
                      std::string_view target, std::string_view real_root);

}  // namespace stoplog::diff
