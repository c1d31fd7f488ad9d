// SPDX-License-Identifier: Apache-2.0
#include "diff/git_facts.h"

#include <cstring>
#include <map>
#include <mutex>
#include <optional>

#include "base/sys_file.h"
#include "diff/git_library.h"
#include "diff/ignore_filter.h"

namespace stoplog::diff {
namespace {

// Names of directories that are remembered: deep ones in great number would
// fill memory.
constexpr size_t kRemembered = 16 << 20;

}  // namespace

struct GitFacts::State {
  explicit State(std::string at) : root(std::move(at)), filter(root) {}
  std::mutex mutex;  // guards everything below
  std::string root;
  bool tried = false;
  git_repository* repository = nullptr;
  git_tree* head = nullptr;
  // Of directories only, with a final slash: one answer serves all beneath.
  std::map<std::string, bool, std::less<>> directories;
  size_t remembered = 0;  // bytes in them
  IgnoreFilter filter;

  ~State() {
    if (head != nullptr) git_object_free(reinterpret_cast<git_object*>(head));
    if (repository != nullptr) git_repository_free(repository);
  }

  void open() {
    if (tried) return;
    tried = true;
    // Most trees without git end here, before libgit2 is started.
    if (root.empty() || !sys::statat(AT_FDCWD, root + "/.git")) return;
    if (!start_libgit2()) return;
    if (git_repository_open_ext(&repository, root.c_str(),
                                GIT_REPOSITORY_OPEN_NO_SEARCH, nullptr) != 0) {
      repository = nullptr;
      return;
    }
    git_reference* ref = nullptr;
    if (git_repository_head(&ref, repository) != 0) return;
    git_object* tree = nullptr;
    if (git_reference_peel(&tree, ref, GIT_OBJECT_TREE) == 0)
      head = reinterpret_cast<git_tree*>(tree);
    git_reference_free(ref);
  }

  bool rule_says(const std::string& path) {
    int ignored = 0;
    return git_ignore_path_is_ignored(&ignored, repository, path.c_str()) ==
               0 &&
           ignored != 0;
  }

  // The first ignored directory above `path`.
  std::optional<std::string_view> ignored_above(std::string_view path) {
    for (size_t slash = path.find('/'); slash != std::string_view::npos;
         slash = path.find('/', slash + 1)) {
      std::string_view directory = path.substr(0, slash + 1);
      auto it = directories.find(directory);
      if (it == directories.end()) {
        std::string name(directory);
        remembered += name.size();
        if (remembered > kRemembered) {
          directories.clear();
          remembered = name.size();
        }
        it = directories.emplace(name, rule_says(name)).first;
      }
      if (it->second) return directory;
    }
    return std::nullopt;
  }

  std::optional<GitId> blob_at(const std::string& path) {
    git_tree_entry* entry = nullptr;
    if (head == nullptr ||
        git_tree_entry_bypath(&entry, head, path.c_str()) != 0)
      return std::nullopt;
    GitId id;
    std::memcpy(id.data(), git_tree_entry_id(entry)->id, id.size());
    git_tree_entry_free(entry);
    return id;
  }
};

GitFacts::GitFacts(std::string root)
    : state_(std::make_unique<State>(std::move(root))) {}

GitFacts::~GitFacts() = default;

bool GitFacts::has_repository() {
  std::lock_guard lock(state_->mutex);
  state_->open();
  return state_->repository != nullptr;
}

bool GitFacts::is_ignored(const RelPath& path, bool is_directory) {
  std::lock_guard lock(state_->mutex);
  if (state_->root.empty()) return false;
  // The library looks for four files at each question.
  if (!state_->filter.may_ignore(path.str())) return false;
  state_->open();
  if (state_->repository == nullptr) return false;
  bool ignored =
      state_->ignored_above(path.str()).has_value() ||
      state_->rule_says(is_directory ? path.str() + "/" : path.str());
  return ignored && (is_directory || !state_->blob_at(path.str()));
}

std::string GitFacts::group_of(const RelPath& path) {
  std::lock_guard lock(state_->mutex);
  if (state_->repository != nullptr)
    if (auto above = state_->ignored_above(path.str()))
      return std::string(*above);
  RelPath parent = path.parent();
  return parent.is_root() ? path.str() : parent.str() + "/";
}

bool GitFacts::is_restorable(const RelPath& path, const GitId& blob) {
  std::lock_guard lock(state_->mutex);
  state_->open();
  auto id = state_->blob_at(path.str());
  return id && *id == blob;
}

bool GitFacts::is_tracked(const RelPath& path) {
  std::lock_guard lock(state_->mutex);
  state_->open();
  return state_->blob_at(path.str()).has_value();
}

}  // namespace stoplog::diff
