// SPDX-License-Identifier: Apache-2.0
#include "diff/risk_links.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>

#include "base/dir.h"
#include "base/strings.h"
#include "base/sys_file.h"
#include "diff/git_shown.h"
#include "diff/risk_names.h"

namespace stoplog::diff {
namespace {

constexpr size_t kEntries = 20'000;
constexpr size_t kDirectories = 100;
constexpr size_t kRules = 200;

class Reader {
 public:
  explicit Reader(const std::string& root) : root_(root) {}

  std::vector<PolicyRule> run() {
    std::vector<std::string> hidden;
    read(RelPath(), &hidden);
    std::ranges::sort(hidden);
    if (hidden.size() > kDirectories) hidden.resize(kDirectories);
    for (const std::string& name : hidden)
      if (auto path = RelPath::parse(name)) read(*path, nullptr);
    return std::move(rules_);
  }

 private:
  void read(const RelPath& directory, std::vector<std::string>* hidden) {
    std::string at = root_;
    if (!directory.is_root()) at += "/" + directory.str();
    auto fd = sys::openat(AT_FDCWD, at.c_str(), O_RDONLY | O_DIRECTORY);
    if (!fd) return;
    Dir dir = Dir::from(std::move(*fd));
    for (size_t i = 0; i < kEntries; ++i) {
      auto entry = dir.next();
      if (!entry || *entry == nullptr) return;
      const std::string name((*entry)->name);
      if ((*entry)->type == DT_LNK || (*entry)->type == DT_UNKNOWN)
        take(dir.fd(), directory, name);
      else if (hidden != nullptr && (*entry)->type == DT_DIR &&
               name.starts_with('.') && name != ".git")
        hidden->push_back(name);
    }
  }

  void take(int dir, const RelPath& directory, const std::string& name) {
    const RelPath link = directory / name;
    auto target = sys::readlinkat(dir, name);
    if (!target) return;
    std::string inside = *target;
    if (inside.starts_with(root_ + "/")) {
      inside.erase(0, root_.size() + 1);
    } else if (inside.starts_with('/')) {
      return;
    } else if (!directory.is_root()) {
      inside = directory.str() + "/" + inside;
    }
    auto path = resolve_beneath(RelPath(), inside);
    if (!path || path->is_root() || path->components().front() == ".git")
      return;
    for (const NameRule* rule : match_names(link))
      if (rule->level == Level::kDanger) add(glob_of(*path), link, *rule);
    for (const NameRule& rule : name_rules())
      if (rule.level == Level::kDanger)
        for (std::string_view pattern : split(rule.patterns, ' '))
          if (pattern.starts_with(link.str() + "/"))
            add(glob_of(*path) + std::string(pattern.substr(link.str().size())),
                link, rule);
  }

  void add(std::string glob, const RelPath& link, const NameRule& rule) {
    if (rules_.size() >= kRules) return;
    rules_.push_back({.glob = std::move(glob),
                      .level = rule.level,
                      .code = std::string(rule.code),
                      .message = fmt::format("the link '{}' leads to it: {}",
                                             link.str(), rule.message)});
  }

  const std::string& root_;
  std::vector<PolicyRule> rules_;
};

}  // namespace

std::string glob_of(const RelPath& path) {
  std::string out = "/";
  for (char c : path.str()) {
    if (std::string_view("*?[]\\!#").find(c) != std::string_view::npos)
      out += '\\';
    out += c;
  }
  return out;
}

std::vector<PolicyRule> rules_of_links(const std::string& real_root) {
  if (real_root.empty()) return {};
  return Reader(real_root).run();
}

}  // namespace stoplog::diff
