// SPDX-License-Identifier: Apache-2.0
// Links only when git_shut.h shuts all of the doors that the installed libgit2
// has.
#include "../diff/git_shut.h"

int main() {
  git_diff_options options;
  git_merge_file_result result{};
  return git_libgit2_init() +
         git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION) +
         git_merge_file(&result, nullptr, nullptr, nullptr, nullptr);
}
