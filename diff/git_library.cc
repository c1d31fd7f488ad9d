// SPDX-License-Identifier: Apache-2.0
#include "diff/git_library.h"

#include <dlfcn.h>

namespace stoplog::diff {
namespace {

template <typename Function>
bool find(void* handle, const char* name, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(handle, name));
  return out != nullptr;
}

Result<GitLibrary> load() {
  // RTLD_LOCAL keeps its mbedTLS and zlib away from what we link statically.
  void* handle = ::dlopen(STOPLOG_LIBGIT2, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return std::unexpected(
        Error(Code::kUnsupported,
              fmt::format("cannot load {}: {}", STOPLOG_LIBGIT2,
                          why ? why : "no reason given"))
            .with_hint("install the package libgit2"));
  }
  GitLibrary git{};
  decltype(&::git_libgit2_init) init = nullptr;
  bool whole =
      find(handle, "git_libgit2_init", init) &&
      find(handle, "git_libgit2_opts", git.libgit2_opts) &&
      find(handle, "git_error_last", git.error_last) &&
      find(handle, "git_diff_options_init", git.diff_options_init) &&
      find(handle, "git_diff_buffers", git.diff_buffers) &&
      find(handle, "git_repository_open_ext", git.repository_open_ext) &&
      find(handle, "git_repository_free", git.repository_free) &&
      find(handle, "git_repository_head", git.repository_head) &&
      find(handle, "git_reference_peel", git.reference_peel) &&
      find(handle, "git_reference_free", git.reference_free) &&
      find(handle, "git_object_free", git.object_free) &&
      find(handle, "git_tree_entry_bypath", git.tree_entry_bypath) &&
      find(handle, "git_tree_entry_id", git.tree_entry_id) &&
      find(handle, "git_tree_entry_free", git.tree_entry_free) &&
      find(handle, "git_ignore_path_is_ignored", git.ignore_path_is_ignored) &&
      find(handle, "git_merge_file", git.merge_file) &&
      find(handle, "git_merge_file_result_free", git.merge_file_result_free);
  if (!whole)
    return fail(Code::kUnsupported, "{} lacks a function that we need",
                STOPLOG_LIBGIT2);
  if (init() < 0)
    return fail(Code::kUnsupported, "cannot start {}", STOPLOG_LIBGIT2);
  // As root we read a user's repository; nothing in it is ever executed.
  git.libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
  return git;
}

}  // namespace

Result<const GitLibrary*> GitLibrary::get() {
  static const Result<GitLibrary> library = load();
  if (!library) return std::unexpected(library.error());
  return &*library;
}

std::string GitLibrary::last_error() const {
  const git_error* error = error_last();
  return error != nullptr && error->message != nullptr ? error->message
                                                       : "unknown error";
}

}  // namespace stoplog::diff
