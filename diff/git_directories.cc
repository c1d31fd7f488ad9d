// SPDX-License-Identifier: Apache-2.0
#include "diff/git_directories.h"

#include <algorithm>

namespace stoplog::diff {
namespace {

size_t top_of(const Change& change) {
  const std::string& path = change.path.str();
  for (size_t at = 0; at < path.size();) {
    size_t end = std::min(path.find('/', at), path.size());
    if (path.compare(at, end - at, ".git") == 0) {
      auto dir = [](const std::optional<fs::NodeState>& s) {
        return !s || s->type == fs::Type::kDir;
      };
      bool inside = end < path.size();
      return inside || (dir(change.before) && dir(change.after)) ? end : 0;
    }
    at = end + 1;
  }
  return 0;
}

}  // namespace

GitDirectories::Kind GitDirectories::kind_of(std::string_view directory) {
  auto it = known_.find(directory);
  if (it != known_.end()) return it->second;
  auto is = [&](const std::string& at, fs::Type type) {
    auto path = RelPath::parse(at);
    auto state =
        path ? view_.real_state(*path) : std::unexpected(Error(EINVAL));
    return state && *state && (*state)->type == type;
  };
  std::string name(directory);
  Kind kind = !is(name, fs::Type::kDir)             ? Kind::kAbsent
              : is(name + "/HEAD", fs::Type::kFile) ? Kind::kRepository
                                                    : Kind::kDirectory;
  known_.emplace(std::move(name), kind);
  return kind;
}

GitDirectories::Place GitDirectories::find(const Change& change) {
  std::string_view path = change.path.str();
  size_t top = top_of(change);
  Place place{top, top};
  while (top != 0) {
    std::string_view rest = path.substr(place.own);
    bool module = rest.starts_with("/modules/");
    if (!module && !rest.starts_with("/worktrees/")) break;
    // A submodule's name may have slashes in it.
    size_t at = place.own + rest.find('/', 1) + 1;
    Kind kind = Kind::kDirectory;
    for (; kind == Kind::kDirectory && at <= path.size(); at++) {
      at = std::min(path.find('/', at), path.size());
      kind = kind_of(path.substr(0, at));
      if (kind == Kind::kRepository) place.own = at;
      if (!module) break;
    }
    if (kind != Kind::kRepository) break;
  }
  return place;
}

}  // namespace stoplog::diff
