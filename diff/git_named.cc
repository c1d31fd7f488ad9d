// SPDX-License-Identifier: Apache-2.0
#include "diff/git_named.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/strings.h"
#include "base/sys_file.h"
#include "diff/git_config.h"
#include "diff/git_shown.h"

namespace stoplog::diff {
namespace {

constexpr size_t kConfigLimit = 1u << 20;
constexpr size_t kFiles = 32;
constexpr size_t kRules = 200;

// Keys whose value is a command, or a file with commands; "*" is a name of the
// user's. An alias is one only with "!".
constexpr std::string_view kCommands[] = {"core.fsmonitor",
                                          "core.editor",
                                          "core.pager",
                                          "core.sshcommand",
                                          "core.askpass",
                                          "core.gitproxy",
                                          "core.attributesfile",
                                          "core.alternaterefscommand",
                                          "sequence.editor",
                                          "diff.external",
                                          "diff.*.command",
                                          "diff.*.textconv",
                                          "filter.*.clean",
                                          "filter.*.smudge",
                                          "filter.*.process",
                                          "merge.*.driver",
                                          "mergetool.*.cmd",
                                          "mergetool.*.path",
                                          "difftool.*.cmd",
                                          "difftool.*.path",
                                          "alias.*",
                                          "pager.*",
                                          "credential.helper",
                                          "credential.*.helper",
                                          "gpg.program",
                                          "gpg.*.program",
                                          "trailer.*.command",
                                          "trailer.*.cmd",
                                          "remote.*.uploadpack",
                                          "remote.*.receivepack",
                                          "interactive.difffilter",
                                          "sendemail.smtpserver",
                                          "sendemail.tocmd",
                                          "uploadpack.packobjectshook",
                                          "submodule.*.update",
                                          "init.templatedir",
                                          "gc.recentobjectshook",
                                          "hook.*.command"};

bool is_command(std::string_view key) {
  return std::ranges::any_of(kCommands, [&](std::string_view known) {
    size_t star = known.find('*');
    if (star == known.npos) return key == known;
    std::string_view head = known.substr(0, star),
                     tail = known.substr(star + 1);
    return key.size() > head.size() + tail.size() && key.starts_with(head) &&
           key.ends_with(tail);
  });
}

// A glob that is this path and all beneath it.
std::string glob_of(const RelPath& path) {
  std::string out = "/";
  for (char c : path.str()) {
    if (std::string_view("*?[]\\!#").find(c) != std::string_view::npos)
      out += '\\';
    out += c;
  }
  return out;
}

class Reader {
 public:
  Reader(const fs::View& view, const std::string& root)
      : view_(view), root_(root) {}

  std::vector<PolicyRule> run() {
    read_repository();
    read("/etc/gitconfig");
    if (const char* home = std::getenv("HOME")) {
      read(std::string(home) + "/.gitconfig");
      const char* config = std::getenv("XDG_CONFIG_HOME");
      read((config != nullptr && *config != '\0'
                ? std::string(config)
                : std::string(home) + "/.config") +
           "/git/config");
    }
    return std::move(rules_);
  }

 private:
  // Of a linked work tree ".git" is a file that says where it is, and there
  // another one where the rest is.
  void read_repository() {
    std::string git = root_ + "/.git", common;
    if (auto text = sys::read_file(AT_FDCWD, git, kConfigLimit))
      if (std::string_view link = trim(*text); link.starts_with("gitdir: "))
        git = whole(std::string(link.substr(8)), root_);
    read(git + "/config");
    read(git + "/config.worktree");
    if (auto text = sys::read_file(AT_FDCWD, git + "/commondir", kConfigLimit))
      common = whole(std::string(trim(*text)), git);
    if (!common.empty()) read(common + "/config");
  }

  void read(const std::string& file) {
    if (seen_.size() >= kFiles || !seen_.insert(file).second) return;
    auto text = sys::read_file(AT_FDCWD, file, kConfigLimit);
    if (!text) return;
    for (const auto& [key, values] : parse_git_config(*text))
      for (const std::string& value : values) take(file, key, value);
  }

  void take(const std::string& file, const std::string& key,
            const std::string& value) {
    if (key == "include.path" ||
        (key.starts_with("includeif.") && key.ends_with(".path"))) {
      std::string at = whole(value, file.substr(0, file.rfind('/')));
      if (auto path = inside(at)) add(*path, key);
      read(at);
    } else if (key == "core.hookspath") {
      if (auto path = inside(whole(value, root_))) add(*path, key);
    } else if (is_command(key) &&
               (!key.starts_with("alias.") || value.starts_with("!"))) {
      for (std::string_view word : words(value)) {
        auto path = inside(whole(std::string(word), root_));
        if (path && !path->is_root() && is_there(*path)) add(*path, key);
      }
    }
  }

  static std::vector<std::string_view> words(std::string_view text) {
    std::vector<std::string_view> out;
    constexpr std::string_view kEnds = " \t\n\"'`;|&()<>!=$\\,";
    while (!text.empty() && out.size() < 100) {
      size_t end = std::min(text.find_first_of(kEnds), text.size());
      if (end > 0) out.push_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
  }

  static std::string whole(const std::string& value, const std::string& from) {
    const char* home = std::getenv("HOME");
    if (value.starts_with("~/") && home != nullptr)
      return home + value.substr(1);
    return value.starts_with("/") ? value : from + "/" + value;
  }

  // Of an absolute path what lies in the workspace.
  std::optional<RelPath> inside(const std::string& path) const {
    if (!path.starts_with(root_ + "/")) return std::nullopt;
    return resolve_beneath(RelPath(), path.substr(root_.size() + 1));
  }

  bool is_there(const RelPath& path) const {
    auto draft = view_.draft_state(path);
    auto real = view_.real_state(path);
    auto file = [](const auto& state) {
      return state && *state && (*state)->type != fs::Type::kDir;
    };
    return file(draft) || file(real);
  }

  void add(const RelPath& path, const std::string& key) {
    bool hooks = key == "core.hookspath";
    // A row of its own already, and a danger.
    if (rules_.size() >= kRules ||
        (!path.is_root() && path.components().front() == ".git"))
      return;
    rules_.push_back(
        {.glob = path.is_root() ? "**" : glob_of(path),
         .level = Level::kDanger,
         .code = hooks ? "git-hook" : "git-command",
         .message = fmt::format("executes on host unasked: your git "
                                "configuration names it ({})",
                                key.substr(0, 100))});
  }

  const fs::View& view_;
  const std::string& root_;
  std::set<std::string> seen_;
  std::vector<PolicyRule> rules_;
};

}  // namespace

std::vector<PolicyRule> rules_of_git_config(const fs::View& view,
                                            const std::string& real_root) {
  if (real_root.empty()) return {};
  return Reader(view, real_root).run();
}

}  // namespace stoplog::diff
