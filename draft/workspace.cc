// SPDX-License-Identifier: Apache-2.0
#include "draft/workspace.h"

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/sys_file.h"

namespace stoplog::draft {
namespace {

Result<std::string> real_path(const std::string& path) {
  std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr),
                                              ::free);
  if (!real && path == "." && errno == ENOENT)
    return std::unexpected(
        Error(Code::kUsage, "cannot find the current directory: it was removed")
            .with_hint("go to one that is there"));
  if (!real) return fail_errno(errno, "cannot find directory '{}'", path);
  return std::string(real.get());
}

bool within(std::string_view path, std::string_view top) {
  if (top == "/") return true;
  return path.starts_with(top) &&
         (path.size() == top.size() || path[top.size()] == '/');
}

bool has_git(const std::string& dir) {
  return sys::statat(AT_FDCWD, dir + (dir == "/" ? ".git" : "/.git"))
      .has_value();
}

// The nearest directory at or above `path` that holds .git; "" when none.
std::string git_top(std::string path) {
  for (;;) {
    if (has_git(path)) return path;
    if (path == "/") return "";
    size_t slash = path.rfind('/');
    path = slash == 0 ? "/" : path.substr(0, slash);
  }
}

// A directory shown by one of our own mounts would stack a draft on a draft.
bool on_own_mount(const std::string& path) {
  struct statfs info{};
  if (::statfs(path.c_str(), &info) != 0) return false;
  if (info.f_type != FUSE_SUPER_MAGIC) return false;
  auto st = sys::statat(AT_FDCWD, path);
  auto table = sys::read_file(AT_FDCWD, "/proc/self/mountinfo", 16u << 20);
  if (!st || !table) return false;
  std::string id = std::to_string(st->mount_id) + " ";
  for (size_t at = 0; at < table->size();) {
    size_t end = table->find('\n', at);
    if (end == std::string::npos) end = table->size();
    std::string_view line(table->data() + at, end - at);
    if (line.starts_with(id))
      return line.find(" fuse.stoplog ") != line.npos ||
             line.find(" stoplog ") != line.npos;
    at = end + 1;
  }
  return false;
}

// What follows the workspace's top in an absolute path. The shell may call the
// top by another name, of a symlink on the way there: the shortest beginning
// that is the top counts, and nothing beneath the top is followed.
std::optional<std::string> beneath_top(const std::string& top,
                                       std::string_view path) {
  if (within(path, top)) {
    path.remove_prefix(top == "/" ? 1 : top.size());
    return std::string(path);
  }
  for (size_t end = 1; end != path.npos;) {
    end = path.find('/', end);
    auto real = real_path(std::string(path.substr(0, end)));
    if (real && *real == top)
      return std::string(end == path.npos ? "" : path.substr(end));
    if (end != path.npos) ++end;
  }
  return std::nullopt;
}

std::string home_directory() {
  const char* home = ::getenv("HOME");
  if (home == nullptr || *home != '/') return "";
  auto real = real_path(home);
  return real ? *real : "";
}

Error refused(std::string text, std::string hint) {
  return Error(Code::kRefused, std::move(text)).with_hint(std::move(hint));
}

}  // namespace

bool overlaps(std::string_view a, std::string_view b) {
  return within(a, b) || within(b, a);
}

bool inside_jail() {
  return ::getenv("STOPLOG_JAIL") != nullptr ||
         ::access(kJailNotesDir, F_OK) == 0;
}

Result<Workspace> find_workspace(const WorkspaceQuery& query) {
  std::string cwd = TRY(real_path(query.cwd));
  std::string top;
  if (query.given) {
    std::string given = *query.given;
    if (given.empty())
      return fail(Code::kUsage, "cannot use an empty --workspace");
    if (!given.starts_with('/')) given = query.cwd + "/" + given;
    auto real = real_path(given);
    if (!real) return fail(Code::kUsage, "{}", std::move(real).error().text());
    top = std::move(*real);
  } else {
    top = git_top(cwd);
    if (top.empty()) top = cwd;
  }
  auto opened = sys::openat(AT_FDCWD, top, O_PATH | O_DIRECTORY);
  if (!opened && opened.error().err() == ENOTDIR)
    return fail(Code::kUsage, "cannot use '{}' as workspace: not a directory",
                top);
  Fd fd = TRY_CTX(std::move(opened),
                  fmt::format("cannot use '{}' as workspace", top));
  sys::Stat st = TRY(sys::fstat(fd.get()));
  Workspace out{.path = top,
                .ino = st.ino,
                .born_ns = st.btime.tv_sec * 1'000'000'000 + st.btime.tv_nsec,
                .git = has_git(top)};
  if (within(cwd, top)) {
    std::string rest = cwd.substr(top == "/" ? 1 : top.size());
    if (rest.starts_with('/')) rest.erase(0, 1);
    out.cwd = TRY(RelPath::parse(rest));
  }
  return out;
}

Status check_workspace(const Workspace& workspace, const Layout& layout,
                       const WorkspaceCheck& check) {
  const std::string& path = workspace.path;
  if (inside_jail())
    return std::unexpected(
        refused("cannot start a draft: this is the inside of a stoplog jail",
                "work on: everything written here is held already"));
  std::string state = layout.state;
  if (auto real = real_path(state)) state = *real;
  if (within(path, state))
    return std::unexpected(
        refused(fmt::format("cannot use '{}' as workspace: it is stoplog's own "
                            "state",
                            path),
                "go to the directory of your project"));
  std::string home = home_directory();
  if (!check.force && (path == "/" || (!home.empty() && within(home, path))))
    return std::unexpected(refused(
        fmt::format("cannot use '{}' as workspace: {}", path,
                    path == home ? "it is your home directory"
                                 : "it contains your home directory"),
        "go to a project's directory, or use --workspace DIR; --force if you "
        "mean it"));
  if (within(state, path))
    return std::unexpected(refused(
        fmt::format("cannot use '{}' as workspace: the drafts' own state '{}' "
                    "lies inside",
                    path, state),
        "set XDG_STATE_HOME to a directory outside"));
  // The mount would show itself, and the agent the daemon's socket.
  std::string runtime = layout.runtime.substr(0, layout.runtime.rfind('/'));
  if (auto real = real_path(runtime)) runtime = *real;
  if (!runtime.empty() && within(runtime, path))
    return std::unexpected(refused(
        fmt::format("cannot use '{}' as workspace: '{}', where views are "
                    "mounted, lies inside",
                    path, runtime),
        "set XDG_RUNTIME_DIR to a directory outside, or unset it"));
  if (on_own_mount(path))
    return std::unexpected(
        refused(fmt::format("cannot use '{}' as workspace: it is the mount of "
                            "a draft",
                            path),
                "use the real directory; `stoplog drafts` names it"));
  if (check.other && !check.force)
    return std::unexpected(refused(
        fmt::format("cannot use '{}' as workspace: '{}' has an open draft and "
                    "overlaps it",
                    path, *check.other),
        fmt::format("use --workspace '{}', or --force for a second draft over "
                    "the same files",
                    *check.other)));
  return {};
}

Result<RelPath> workspace_path(const Workspace& workspace,
                               std::string_view argument) {
  std::vector<std::string_view> parts;
  std::string full;
  if (argument.starts_with('/')) {
    auto beneath = beneath_top(workspace.path, argument);
    if (!beneath)
      return fail(Code::kUsage, "cannot use '{}': it is outside of '{}'",
                  argument, workspace.path);
    full = std::move(*beneath);
  } else {
    if (workspace.cwd && !workspace.cwd->is_root())
      full = workspace.cwd->str() + "/";
    full += argument;
  }
  for (std::string_view rest = full; !rest.empty();) {
    size_t slash = rest.find('/');
    std::string_view part = rest.substr(0, slash);
    rest = slash == rest.npos ? "" : rest.substr(slash + 1);
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (parts.empty()) {
      return fail(Code::kUsage, "cannot use '{}': it is outside of '{}'",
                  argument, workspace.path);
    } else {
      parts.pop_back();
    }
  }
  std::string joined;
  for (std::string_view part : parts) {
    if (!joined.empty()) joined += '/';
    joined += part;
  }
  auto parsed = RelPath::parse(joined);
  if (!parsed) return fail(Code::kUsage, "cannot use '{}' as a path", argument);
  return *parsed;
}

}  // namespace stoplog::draft
