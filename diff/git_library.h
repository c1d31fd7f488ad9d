// SPDX-License-Identifier: Apache-2.0
// libgit2, loaded with dlopen at the first call: it and the libraries that it
// pulls in cost 5 ms, which commands that show no lines must not pay.
//
//   const GitLibrary& git = *TRY(GitLibrary::get());
//
// The table lives to the end of the process. Thread-safe.
#pragma once

#include <git2.h>

#include "base/result.h"

namespace stoplog::diff {

struct GitLibrary {
  decltype(&::git_libgit2_opts) libgit2_opts;
  decltype(&::git_error_last) error_last;
  decltype(&::git_diff_options_init) diff_options_init;
  decltype(&::git_diff_buffers) diff_buffers;
  decltype(&::git_repository_open_ext) repository_open_ext;
  decltype(&::git_repository_free) repository_free;
  decltype(&::git_repository_head) repository_head;
  decltype(&::git_reference_peel) reference_peel;
  decltype(&::git_reference_free) reference_free;
  decltype(&::git_object_free) object_free;
  decltype(&::git_tree_entry_bypath) tree_entry_bypath;
  decltype(&::git_tree_entry_id) tree_entry_id;
  decltype(&::git_tree_entry_free) tree_entry_free;
  decltype(&::git_ignore_path_is_ignored) ignore_path_is_ignored;
  decltype(&::git_merge_file) merge_file;  // used by gate
  decltype(&::git_merge_file_result_free) merge_file_result_free;

  // Code::kUnsupported, with what to install, when it cannot be loaded.
  static Result<const GitLibrary*> get();
  // What libgit2 says of its last failure in this thread.
  std::string last_error() const;
};

}  // namespace stoplog::diff
