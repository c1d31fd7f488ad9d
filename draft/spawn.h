// SPDX-License-Identifier: Apache-2.0
// Starts the daemon of a draft as a process of its own session and waits until
// it is ready. The caller is single-threaded. The daemon is nobody's child: it
// outlives the terminal and leaves no zombie. It inherits three descriptors,
// /dev/null, its log and the ready pipe, and the environment.
#pragma once

#include <string>

#include "base/result.h"
#include "draft/client.h"
#include "draft/layout.h"

namespace stoplog::draft {

// An error is the daemon's own (code, words and hint), or says that it died
// and what its log says last.
Status start_daemon(const Layout& layout, const std::string& id,
                    const StartOptions& options);

}  // namespace stoplog::draft
