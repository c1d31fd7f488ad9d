// SPDX-License-Identifier: Apache-2.0
// `run`'s options and the policy, as what the daemon is asked: a Shape for its
// mount and jail, a RunRequest for the command. Pure, so that every option is
// tested without running anything.
//
//   RunPlan plan = TRY(plan_run({.args = args, .policy = policy, ...}));
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/relpath.h"
#include "base/result.h"
#include "cli/args.h"
#include "draft/policy.h"
#include "draft/protocol.h"
#include "draft/shape.h"

namespace stoplog::cli {

struct RunInput {
  const Args& args;
  const draft::Policy& policy;
  std::vector<std::string> environment;  // NAME=VALUE, of the caller
  std::string cwd;                       // beneath the workspace, "" its top
  uint32_t umask = 022;
};

struct RunPlan {
  draft::Shape shape;
  draft::RunRequest request;
  std::vector<std::string> notes;  // for the user, a line each
  std::string hint;                // before the command runs; or empty
  bool automatic = false;  // the policy commits what it approves by itself
};

// kUsage for a value that is none, kUnsupported for what cannot be held.
Result<RunPlan> plan_run(const RunInput& input);

// The caller's environment, NAME=VALUE each.
std::vector<std::string> caller_environment();

// The Shape that policy and environment give without any option: what `mount`
// starts a daemon with.
draft::Shape base_shape(const draft::Policy& policy,
                        std::span<const std::string> environment);

}  // namespace stoplog::cli
