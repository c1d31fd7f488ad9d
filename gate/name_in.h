// SPDX-License-Identifier: Apache-2.0
// The name by which a path is found in its parent directory: the top of the
// workspace, whose parent is itself, is there as ".".
#pragma once

#include <string>

#include "base/relpath.h"

namespace stoplog::gate {

inline std::string name_in(const RelPath& path) {
  return path.is_root() ? "." : std::string(path.name());
}

}  // namespace stoplog::gate
