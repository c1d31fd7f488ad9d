// SPDX-License-Identifier: Apache-2.0
#include "jail/toolchains.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <span>

namespace stoplog::jail {
namespace {

// A PATH directory whose path holds `mark` (whole components) needs `roots`,
// named from where the mark begins.
struct Root {
  const char* mark;
  std::array<const char*, 5> roots;
};
constexpr std::array kTable = {
    Root{".asdf", {".asdf"}},
    Root{".bun", {".bun/bin", ".bun/install/global"}},
    Root{".cabal/bin", {".cabal/bin"}},
    Root{".cargo/bin", {".cargo/bin", ".rustup"}},
    Root{".deno", {".deno/bin"}},
    Root{".dotnet", {".dotnet"}},
    Root{".elan", {".elan"}},
    Root{".ghcup", {".ghcup"}},
    Root{".jenv", {".jenv"}},
    Root{".juliaup", {".juliaup", ".julia/juliaup"}},
    Root{".local/bin",
         {".local/bin", ".local/lib", ".local/share/pipx",
          ".local/share/uv/python", ".local/share/uv/tools"}},
    Root{".local/share/mise", {".local/share/mise"}},
    Root{".local/share/pnpm", {".local/share/pnpm"}},
    Root{".nodenv", {".nodenv"}},
    Root{".npm-global", {".npm-global/bin", ".npm-global/lib"}},
    Root{".nvm", {".nvm"}},
    Root{".opam", {".opam"}},
    Root{".pixi", {".pixi"}},
    Root{".pyenv", {".pyenv"}},
    Root{".rbenv", {".rbenv"}},
    Root{".rustup", {".rustup"}},
    Root{".rvm", {".rvm"}},
    Root{".sdkman", {".sdkman"}},
    Root{".volta", {".volta"}},
    Root{".yarn/bin", {".yarn/bin"}},
    Root{"anaconda3", {"anaconda3"}},
    Root{"go/bin", {"go"}},
    Root{"mambaforge", {"mambaforge"}},
    Root{"miniconda3", {"miniconda3"}},
    Root{"miniforge3", {"miniforge3"}},
};
// Of HOME: never to be seen, so nothing that holds one of them is bound.
constexpr std::array kCredentials = {
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config",
    ".docker/config.json",
    ".gem/credentials",
    ".git-credentials",
    ".gnupg",
    ".gradle/gradle.properties",
    ".ivy2/.credentials",
    ".kube",
    ".local/share/keyrings",
    ".local/share/uv/credentials",
    ".m2/settings.xml",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pypirc",
    ".sbt/.credentials",
    ".ssh",
    ".terraform.d",
    ".vault-token",
};
constexpr std::array kSystem = {"/usr", "/bin", "/sbin", "/lib", "/lib64"};
constexpr std::array kStores = {"/nix/store", "/gnu/store"};

// Position of `mark` in `path` as whole components, or npos.
size_t find_mark(const std::string& path, std::string_view mark) {
  for (size_t at = path.find(mark); at != std::string::npos;
       at = path.find(mark, at + 1)) {
    const size_t end = at + mark.size();
    if (at > 0 && path[at - 1] == '/' &&
        (end == path.size() || path[end] == '/'))
      return at;
  }
  return std::string::npos;
}

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> dirs;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    std::string dir = path.substr(at, end - at);
    while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
    if (std::find(dirs.begin(), dirs.end(), dir) == dirs.end())
      dirs.push_back(std::move(dir));
    at = end + 1;
  }
  return dirs;
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The roots for one PATH directory, itself among them or beneath them.
std::vector<std::string> roots_for(const std::string& dir,
                                   const PathProbe& probe) {
  for (const Root& root : kTable) {
    const size_t at = find_mark(dir, root.mark);
    if (at == std::string::npos) continue;
    const std::string before = dir.substr(0, at);
    // Go's workspace, not Go itself: its module cache is HOME's to write.
    if (root.mark == std::string_view("go/bin") &&
        probe(before + "go/VERSION") == PathKind::kNone)
      return {before + "go/bin"};
    std::vector<std::string> found;
    for (const char* name : root.roots)
      if (name != nullptr) found.push_back(before + name);
    return found;
  }
  const std::string above = parent_of(dir);
  if (probe(above + "/pyvenv.cfg") != PathKind::kNone) return {above};
  if (dir.starts_with("/opt/") || dir.starts_with("/snap/")) {
    const size_t end = dir.find('/', 5);
    if (dir.starts_with("/snap/")) return {"/snap"};
    return {dir.substr(0, end)};
  }
  return {dir};
}

class Planner {
 public:
  Planner(const ToolchainInput& input, const PathProbe& probe)
      : input_(input), probe_(probe) {}

  ToolchainPlan run() {
    for (const std::string& dir : split_path(input_.path)) add(dir);
    for (const char* store : kStores)
      if (!plan_.path.empty() && probe_(store) == PathKind::kDir) bind(store);
    std::sort(plan_.binds.begin(), plan_.binds.end(),
              [](const Bind& a, const Bind& b) { return a.target < b.target; });
    return std::move(plan_);
  }

 private:
  void add(const std::string& dir) {
    const bool normal = dir.starts_with('/') &&
                        dir.find("/../") == std::string::npos &&
                        !dir.ends_with("/..") && dir != "/";
    if (!normal) {
      // A relative or empty entry means the working directory: whoever can
      // write there chooses what runs.
      if (!dir.empty()) plan_.left_out.push_back(dir);
      return;
    }
    const bool system =
        std::any_of(kSystem.begin(), kSystem.end(),
                    [&](const char* top) { return is_within(dir, top); });
    if (system || is_within(dir, input_.workspace)) {
      plan_.path.push_back(dir);
      return;
    }
    if (probe_(dir) != PathKind::kDir) return;
    bool reachable = false;
    for (const std::string& root : roots_for(dir, probe_))
      if (bind(root) && is_within(dir, root)) reachable = true;
    if (!reachable && !bind(dir)) {
      plan_.left_out.push_back(dir);
      return;
    }
    plan_.path.push_back(dir);
  }

  bool bind(const std::string& root) {
    if (probe_(root) != PathKind::kDir) return false;
    if (is_within(input_.home, root) || is_within(input_.workspace, root))
      return false;
    for (const char* credential : kCredentials)
      if (is_within(input_.home + "/" + credential, root)) return false;
    for (const std::string& hidden : input_.hidden)
      if (is_within(hidden, root) || is_within(root, hidden)) return false;
    for (const Bind& other : plan_.binds)
      if (is_within(root, other.target)) return true;
    std::erase_if(plan_.binds, [&](const Bind& other) {
      return is_within(other.target, root);
    });
    plan_.binds.push_back({.source = root, .target = root, .required = false});
    return true;
  }

  const ToolchainInput& input_;
  const PathProbe& probe_;
  ToolchainPlan plan_;
};

}  // namespace

bool is_within(const std::string& path, const std::string& top) {
  if (top.empty()) return false;
  if (top == "/") return true;
  return path.starts_with(top) &&
         (path.size() == top.size() || path[top.size()] == '/');
}

PathKind probe_path(const std::string& path) {
  struct stat stat{};
  if (::stat(path.c_str(), &stat) < 0) return PathKind::kNone;
  if (S_ISDIR(stat.st_mode)) return PathKind::kDir;
  return S_ISREG(stat.st_mode) ? PathKind::kFile : PathKind::kOther;
}

ToolchainPlan plan_toolchains(const ToolchainInput& input,
                              const PathProbe& probe) {
  return Planner(input, probe).run();
}

}  // namespace stoplog::jail
