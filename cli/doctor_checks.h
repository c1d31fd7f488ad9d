// SPDX-License-Identifier: Apache-2.0
// What `doctor` looks at beside the jail: the kernel, FUSE, watches, reflink,
// room on the disk, what earlier runs left. Each check is tried, not guessed,
// and tells its consequence and what to do. Nothing is changed.
#pragma once

#include <vector>

#include "base/result.h"
#include "draft/layout.h"
#include "jail/probe.h"

namespace stoplog::cli {

jail::Check check_kernel();
jail::Check check_fuse();
jail::Check check_watches();
jail::Check check_reflink(const draft::Layout& layout);
jail::Check check_space(const draft::Layout& layout);
jail::Check check_state(const draft::Layout& layout);
// Where drafts of this workspace stand: local, or a file system that does not
// tell of changes or cannot exchange names.
jail::Check check_workspace_fs(const std::string& path);

}  // namespace stoplog::cli
