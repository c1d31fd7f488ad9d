// SPDX-License-Identifier: Apache-2.0
// What `run` says when the command has ended: how it ended, what changed, what
// to do next; and the number of changes for --report. On stderr: stdout is the
// command's alone.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "cli/context.h"
#include "draft/client.h"
#include "draft/protocol.h"

namespace stoplog::cli {

struct AfterRun {
  const draft::Draft& draft;
  bool created = false;
  const draft::RunRequest& request;
  uint32_t command = 0;
  const draft::Outcome& outcome;
  bool automatic = false;  // the policy commits what it approves by itself
  bool quiet = false;
  bool report = false;    // the count is wanted
  bool terminal = false;  // stderr is one
};

// The number of changes; null when nobody asked for it.
Result<Json> after_run(Context& context, draft::Client& client,
                       const AfterRun& after);

// "ended by its time limit of 10m" or "exit 2" ...; pure.
std::string ending_text(const draft::Outcome& outcome,
                        const draft::Limits& limits);

}  // namespace stoplog::cli
