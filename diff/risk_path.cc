// SPDX-License-Identifier: Apache-2.0
#include "diff/risk_path.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/strings.h"
#include "base/sys_file.h"
#include "diff/git_shown.h"
#include "diff/risk_links.h"

namespace stoplog::diff {
namespace {

constexpr size_t kDirectories = 16;
constexpr size_t kNames = 5'000;
constexpr size_t kRules = 200;

// Where root alone can make a link that leads to a workspace: not asked about,
// since most of PATH is there.
bool is_systems(std::string_view directory) {
  return directory.starts_with("/usr/") || directory.starts_with("/bin") ||
         directory.starts_with("/sbin");
}

class Reader {
 public:
  Reader(const fs::View& view, const std::string& root)
      : view_(view), root_(root) {}

  std::vector<PolicyRule> run(std::string_view path) {
    // From the end: what is known then is what comes later.
    std::vector<std::string_view> parts = split(path, ':');
    std::ranges::reverse(parts);
    for (std::string_view part : parts) {
      if (auto inside = beneath(part))
        take(*inside);
      else
        later_.emplace_back(part);
    }
    return std::move(rules_);
  }

 private:
  std::optional<RelPath> beneath(std::string_view directory) const {
    if (directory.empty() || directory == ".") return RelPath();
    if (!directory.starts_with('/'))
      return resolve_beneath(RelPath(), std::string(directory));
    if (is_systems(directory) && !directory.starts_with(root_))
      return std::nullopt;
    // The root's path has no link in it; a directory may not be there yet.
    std::error_code error;
    const std::string real =
        std::filesystem::weakly_canonical(directory, error).string();
    if (real == root_) return RelPath();
    if (!real.starts_with(root_ + "/")) return std::nullopt;
    return resolve_beneath(RelPath(), real.substr(root_.size() + 1));
  }

  void take(const RelPath& directory) {
    if (++directories_ > kDirectories) return;
    auto entries = view_.draft_list(directory);
    if (!entries) return;
    size_t names = 0;
    for (const fs::DirEntry& entry : *entries) {
      if (++names > kNames || rules_.size() >= kRules) return;
      if (entry.type == fs::Type::kDir) continue;
      const std::string hidden = hidden_by(entry.name);
      if (hidden.empty()) continue;
      rules_.push_back(
          {.glob = glob_of(directory / entry.name),
           .level = Level::kDanger,
           .code = "path-shadow",
           .message = fmt::format(
               "executes on host in place of {}: your PATH finds it first",
               hidden)});
    }
  }

  std::string hidden_by(const std::string& name) const {
    for (auto at = later_.rbegin(); at != later_.rend(); ++at) {
      std::string file = *at + "/" + name;
      auto fd = sys::openat(AT_FDCWD, file.c_str(), O_PATH);
      auto found = fd ? sys::fstat(fd->get()) : std::unexpected(fd.error());
      if (found && S_ISREG(found->mode) && (found->mode & 0111) != 0)
        return file;
    }
    return "";
  }

  const fs::View& view_;
  const std::string& root_;
  std::vector<std::string> later_;
  size_t directories_ = 0;
  std::vector<PolicyRule> rules_;
};

}  // namespace

std::vector<PolicyRule> rules_of_path(const fs::View& view,
                                      const std::string& real_root) {
  const char* path = std::getenv("PATH");
  if (real_root.empty() || path == nullptr) return {};
  return Reader(view, real_root).run(path);
}

}  // namespace stoplog::diff
