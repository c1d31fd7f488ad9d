// SPDX-License-Identifier: Apache-2.0
#include "diff/git_named.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/dir.h"
#include "base/strings.h"
#include "base/sys_file.h"
#include "diff/git_config.h"
#include "diff/git_shown.h"
#include "diff/risk_links.h"

namespace stoplog::diff {
namespace {

constexpr size_t kConfigLimit = 1u << 20;
constexpr size_t kFiles = 32;
constexpr size_t kRules = 200;
constexpr size_t kHooks = 40;
constexpr size_t kHookLimit = 64u << 10;
constexpr size_t kHookWords = 2000;

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
    read_hooks((common.empty() ? git : common) + "/hooks");
  }

  // What the user has himself may be a link: to his dotfiles, to a script.
  static Result<std::string> read_own(std::string file) {
    for (int links = 0; links < 8; ++links) {
      auto target = sys::readlinkat(AT_FDCWD, file);
      if (!target) break;
      file = whole(*target, file.substr(0, file.rfind('/')));
    }
    Fd fd = TRY(sys::openat(AT_FDCWD, file.c_str(), O_RDONLY | O_NONBLOCK));
    return sys::read_all(fd.get(), kConfigLimit);
  }

  // Hooks of the repository itself: one that is a link into the tree, and what
  // the others run of it. The draft cannot change them unseen, but that.
  void read_hooks(const std::string& directory) {
    auto names = list_names(AT_FDCWD, directory);
    if (!names) return;
    if (names->size() > kHooks) names->resize(kHooks);
    for (const std::string& name : *names) {
      if (name.ends_with(".sample")) continue;
      const std::string file = directory + "/" + name;
      if (auto target = sys::readlinkat(AT_FDCWD, file))
        if (auto path = inside(whole(*target, directory)))
          add(*path, "git-hook", "the hook " + name + " is a link to it");
      if (auto text = read_own(file)) take_hook(name, *text);
    }
  }

  // A file counts that can be run, or that an interpreter or an option is
  // given; most other words that are files are only looked at.
  void take_hook(const std::string& name, std::string_view text) {
    constexpr std::string_view kRunners[] = {
        "sh",   "bash",    "dash", "zsh",  "ksh",  ".",        "source",
        "node", "python3", "bun",  "deno", "exec", "--config", "python",
        "ruby", "perl",    "php",  "-f",   "-c"};
    std::string_view before;
    for (std::string_view word :
         words(text.substr(0, kHookLimit), kHookWords)) {
      const bool is_run =
          std::ranges::find(kRunners, before) != std::end(kRunners);
      before = word;
      // And without "$top" or "$(git rev-parse --show-toplevel)" before it.
      for (std::string_view from : {word, word.substr(word.find('/') + 1)}) {
        auto path = inside(whole(std::string(from), root_));
        if (path && !path->is_root() && is_there(*path) &&
            (is_run || is_executable(*path)))
          add(*path, "git-hook", "the hook " + name + " names it");
      }
    }
    constexpr std::pair<std::string_view, std::string_view> kManagers[] = {
        {"lefthook", "/lefthook.*"},
        {"lefthook", "/.lefthook.*"},
        {"lefthook", "/lefthook-local.*"},
        {"lefthook", "/.lefthook-local.*"},
        {"lefthook", "/.lefthook"},
        {"overcommit", "/.overcommit.yml"},
        {"overcommit", "/.git-hooks"},
        {"pre-commit", "/.pre-commit-config.yaml"},
        {"prek", "/prek.toml"},
        {"hk run", "/hk.pkl"}};
    for (const auto& [manager, glob] : kManagers)
      if (text.find(manager) != text.npos)
        add_glob(std::string(glob), "git-hook",
                 "the hook " + name + " is of " + std::string(manager));
  }

  bool is_executable(const RelPath& path) const {
    auto runs = [](const auto& state) {
      return state && *state && ((*state)->mode & 0111) != 0;
    };
    return runs(view_.draft_state(path)) || runs(view_.real_state(path));
  }

  void read(const std::string& file) {
    if (seen_.size() >= kFiles || !seen_.insert(file).second) return;
    auto text = read_own(file);
    if (!text) return;
    for (const auto& [key, values] : parse_git_config(*text))
      for (const std::string& value : values) take(file, key, value);
  }

  void take(const std::string& file, const std::string& key,
            const std::string& value) {
    if (key == "include.path" ||
        (key.starts_with("includeif.") && key.ends_with(".path"))) {
      std::string at = whole(value, file.substr(0, file.rfind('/')));
      if (auto path = inside(at)) add(*path, "git-command", named(key));
      read(at);
    } else if (key == "core.hookspath") {
      const std::string at = whole(value, root_);
      if (auto path = inside(at)) add(*path, "git-hook", named(key));
      if (hooks_.insert(at).second) read_hooks(at);
    } else if (is_command(key) &&
               (!key.starts_with("alias.") || value.starts_with("!"))) {
      for (std::string_view word : words(value)) {
        auto path = inside(whole(std::string(word), root_));
        if (path && !path->is_root() && is_there(*path))
          add(*path, "git-command", named(key));
      }
    }
  }

  static std::vector<std::string_view> words(std::string_view text,
                                             size_t most = 100) {
    std::vector<std::string_view> out;
    constexpr std::string_view kEnds = " \t\n\"'`;|&()<>!=$\\,";
    while (!text.empty() && out.size() < most) {
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

  static std::string named(const std::string& key) {
    return fmt::format("your git configuration names it ({})",
                       key.substr(0, 100));
  }

  void add(const RelPath& path, const char* code, const std::string& why) {
    // A row of its own already, and a danger.
    if (!path.is_root() && path.components().front() == ".git") return;
    add_glob(path.is_root() ? "**" : glob_of(path), code, why);
  }

  void add_glob(std::string glob, const char* code, const std::string& why) {
    if (rules_.size() >= kRules || !globs_.insert(glob).second) return;
    rules_.push_back({.glob = std::move(glob),
                      .level = Level::kDanger,
                      .code = code,
                      .message = "executes on host unasked: " + why});
  }

  const fs::View& view_;
  const std::string& root_;
  std::set<std::string> seen_, hooks_, globs_;
  std::vector<PolicyRule> rules_;
};

}  // namespace

std::vector<PolicyRule> rules_of_git_config(const fs::View& view,
                                            const std::string& real_root) {
  if (real_root.empty()) return {};
  return Reader(view, real_root).run();
}

}  // namespace stoplog::diff
