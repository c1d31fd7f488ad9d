// SPDX-License-Identifier: Apache-2.0
// A path as people read it: the top of the workspace has no name of its own.
#pragma once

#include <string>

#include "base/relpath.h"

namespace stoplog {

// Not escaped. "." for the top.
inline std::string shown_path(const RelPath& path) {
  return path.is_root() ? "." : path.str();
}

}  // namespace stoplog
