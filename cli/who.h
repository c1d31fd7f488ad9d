// SPDX-License-Identifier: Apache-2.0
// Who decides here and now, for plans, commit records and the ledger.
#pragma once

#include <string>

#include "base/json.h"
#include "gate/gate.h"

namespace stoplog::cli {

std::string user_name();      // by the passwd file, else the number
std::string terminal_name();  // "/dev/pts/3"; empty when there is none

gate::Signature signature(const diff::ChangeSet& set);
// "sha256:…", or "" when it was not taken.
std::string digest_text(const diff::ChangeSet& set);
// user and tty (null without one), for a ledger entry.
Json who_fields();

}  // namespace stoplog::cli
