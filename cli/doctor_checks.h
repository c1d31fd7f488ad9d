// SPDX-License-Identifier: Apache-2.0
// What `doctor` looks at beside the jail: the kernel, FUSE, watches, reflink,
// room on the disk, what earlier runs left. Each check is tried, not guessed;
// cli/doctor_judge says what follows and what to do. Nothing is changed.
#pragma once

#include <string>

#include "cli/doctor_judge.h"
#include "draft/layout.h"

namespace stoplog::cli {

jail::Check check_kernel();
jail::Check check_fuse();
jail::Check check_fusermount();
jail::Check check_watches();
// `workspace`: whose files would be pinned; "" when there is none.
jail::Check check_rings();
jail::Check check_reflink(const draft::Layout& layout,
                          const std::string& workspace);
jail::Check check_space(const draft::Layout& layout);
jail::Check check_state(const draft::Layout& layout);
WorkspaceFacts look_at_workspace(const std::string& path);

}  // namespace stoplog::cli
