// SPDX-License-Identifier: Apache-2.0
#include "diff/git_library.h"

#include "diff/git_shut.h"

namespace stoplog::diff {
namespace {

Result<void> start() {
  if (git_libgit2_init() < 0)
    return fail(Code::kUnsupported, "cannot start libgit2: {}",
                libgit2_error());
  // As root we read a user's repository; nothing in it is ever executed.
  git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
  return {};
}

}  // namespace

Result<void> start_libgit2() {
  static const Result<void> started = start();
  return started;
}

std::string libgit2_error() {
  const git_error* error = git_error_last();
  return error != nullptr && error->message != nullptr ? error->message
                                                       : "unknown error";
}

}  // namespace stoplog::diff
