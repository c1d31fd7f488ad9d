// SPDX-License-Identifier: Apache-2.0
#include "gate/git_paths.h"

#include <algorithm>

#include "diff/content_hash.h"
#include "diff/git_index.h"
#include "fs/view.h"

namespace stoplog::gate {
namespace {

constexpr uint64_t kConfigLimit = 1u << 20;

// The same for the git directory of a submodule or of another work tree, which
// may have slashes in its name: known by what git keeps in one.
std::string_view within_inner(std::string_view relative) {
  if (!relative.starts_with("modules/") && !relative.starts_with("worktrees/"))
    return relative;
  size_t at = std::string_view::npos;
  for (const char* kept : {"/objects/", "/refs/", "/logs/"})
    at = std::min(at, relative.find(kept, relative.find('/') + 1));
  if (at == std::string_view::npos) at = relative.rfind('/');
  return relative.substr(at + 1);
}

}  // namespace

std::string_view within_git(const RelPath& path) {
  std::string_view text = path.str();
  if (text.starts_with(".git/")) return within_inner(text.substr(5));
  size_t at = text.find("/.git/");
  return at == std::string_view::npos ? std::string_view()
                                      : within_inner(text.substr(at + 6));
}

RelPath git_directory_of(const RelPath& path) {
  RelPath dir = path;
  std::string_view rest = within_git(path);
  for (auto left = std::ranges::count(rest, '/') + 1; left > 0; --left)
    dir = dir.parent();
  return dir;
}

bool is_git_ref(std::string_view relative) {
  return relative == "HEAD" || relative.starts_with("refs/") ||
         relative == "packed-refs";
}

// Only ever added: an index of the real repository may rest on it.
bool is_shared_index(std::string_view relative) {
  return relative.starts_with("sharedindex.");
}

bool is_git_note(std::string_view relative) {
  constexpr std::string_view kNotes[] = {
      "COMMIT_EDITMSG", "ORIG_HEAD", "FETCH_HEAD", "TAG_EDITMSG",
      "SQUASH_MSG",     "gc.log",    "info/refs"};
  return relative.starts_with("logs/") ||
         std::ranges::find(kNotes, relative) != std::end(kNotes);
}

std::optional<RelPath> git_lock_for(const RelPath& path) {
  std::string_view relative = within_git(path);
  if (relative.ends_with(".lock")) return std::nullopt;
  if (relative != "index" && !is_git_ref(relative)) return std::nullopt;
  std::string name = std::string(path.name()) + ".lock";
  if (!is_valid_name(name)) return std::nullopt;
  return path.parent() / name;
}

bool is_git_object(const RelPath& path) {
  std::string_view relative = within_git(path);
  return relative.starts_with("objects/") || is_shared_index(relative);
}

bool is_git_index(const RelPath& path) { return within_git(path) == "index"; }

bool is_kept_for_undo(const RelPath& path) {
  return is_git_index(path) || within_git(path) == "packed-refs";
}

Result<std::optional<std::string>> text_beneath(int root, const RelPath& path,
                                                uint64_t limit) {
  auto state = TRY(fs::state_beneath(root, path));
  if (!state || !state->content) return std::nullopt;
  return TRY(diff::read_content(*state->content, limit));
}

Result<diff::ObjectFormat> format_beneath(int root, const RelPath& git) {
  auto config = TRY(text_beneath(root, git / "config", kConfigLimit));
  return diff::object_format(config.value_or(""));
}

diff::SharedIndex shared_beneath(int root, const RelPath& git) {
  return [root, git](const std::string& name) -> Result<std::string> {
    auto text = TRY(text_beneath(root, git / name, diff::kIndexLimit));
    if (!text) return fail_errno(ENOENT, "{}", name);
    return std::move(*text);
  };
}

}  // namespace stoplog::gate
