// SPDX-License-Identifier: Apache-2.0
#include "diff/risk_names.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/glob.h"
#include "base/strings.h"

namespace stoplog::diff {
namespace {

constexpr NameRule kRules[] = {
    {"git-hook", Level::kDanger,
     ".git/hooks/** .git/modules/**/hooks/* .git/worktrees/**/hooks/* "
     ".husky/** .githooks/**",
     "executes on host unasked: a git hook runs at commit, checkout or merge",
     "git starts hooks by itself, as the user, outside of any jail"},
    {"git-config", Level::kDanger,
     ".git/config .git/config.worktree .git/modules/**/config "
     ".git/modules/**/config.worktree .git/worktrees/**/config "
     ".git/worktrees/**/config.worktree .gitconfig .hg/hgrc "
     ".jj/repo/config.toml",
     "executes on host unasked: git's configuration can name commands to run",
     "core.fsmonitor, hooksPath, pager, aliases and filters are commands"},
    {"git-info", Level::kDanger,
     ".git/info/** .git/objects/info/alternates .git/commondir "
     ".git/modules/**/info/* .git/worktrees/**/info/* "
     ".git/modules/**/commondir .git/worktrees/**/commondir "
     ".git/modules/**/info/alternates",
     "changes how git treats this tree, from a place no diff of git shows",
     "info/attributes switches filters on; alternates lend foreign objects"},
    {"direnv", Level::kDanger,
     ".envrc .direnvrc .mise.toml mise.toml mise.local.toml .mise.local.toml "
     ".config/mise/** .mise/** .autoenv",
     "executes on host unasked: the shell runs it on entering the directory",
     "direnv, mise and autoenv run or load it at every cd"},
    {"editor-task", Level::kDanger,
     ".vscode/** .idea/** .devcontainer/** .devcontainer.json .zed/** "
     ".fleet/** *.code-workspace .exrc .vimrc .nvimrc .nvim.lua .lvimrc "
     ".dir-locals.el .vs/** *.sublime-project",
     "executes on host unasked: an editor runs or obeys it on opening",
     "tasks with runOn folderOpen, interpreter paths, local variables"},
    {"agent-config", Level::kDanger,
     ".claude/** .mcp.json mcp.json .cursor/** .cursorrules .codex/** "
     ".gemini/** .windsurf/** .windsurfrules .continue/** .aider.conf.yml "
     ".roo/** .clinerules .clinerules/** .kiro/** .goosehints .opencode/** "
     "opencode.json",
     "executes on host unasked: coding agents start servers and hooks from it",
     "an agent could so widen its own rights for the next start"},
    {"ci", Level::kDanger,
     ".github/workflows/** .github/actions/** .gitlab-ci.yml .circleci/** "
     "Jenkinsfile .travis.yml azure-pipelines.yml .buildkite/** .drone.yml "
     "bitbucket-pipelines.yml .woodpecker.yml .woodpecker/** appveyor.yml "
     ".teamcity/** .cirrus.yml .gitea/workflows/** .forgejo/workflows/** "
     "cloudbuild.yaml",
     "runs unasked on the next push, with the secrets of your CI",
     "a workflow has tokens that a reviewer of the code never sees"},
    {"package-hook", Level::kDanger, "binding.gyp",
     "executes on host unasked at install: npm builds what it says",
     "npm runs it, or a script of that name, at every install"},
    {"shell-startup", Level::kDanger,
     ".bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv "
     ".zprofile .zlogin .kshrc .cshrc .tcshrc .login .xprofile .xinitrc "
     ".xsession .config/fish/** .config/autostart/** .config/systemd/** "
     ".ssh/** .inputrc .pam_environment .tmux.conf .screenrc",
     "executes on host unasked when this is a home directory",
     "the next login shell runs it"},
    {"git-attributes", Level::kWarn, ".gitattributes .gitmodules",
     "changes how git reads files or where it fetches submodules from",
     "filters, merge drivers and submodule URLs are named here"},
    {"commit-hook", Level::kWarn,
     ".pre-commit-config.yaml .pre-commit-hooks.yaml lefthook.yml "
     "lefthook.yaml .lefthook.yml lefthook-local.yml .overcommit.yml "
     ".lintstagedrc "
     ".lintstagedrc.json .lintstagedrc.js lint-staged.config.js",
     "runs at commit where its hook manager is installed",
     "the hook manager was installed by the user; what it runs is named here"},
    {"agent-instructions", Level::kWarn,
     "AGENTS.md CLAUDE.md CLAUDE.local.md GEMINI.md .goosehints "
     ".github/copilot-instructions.md .github/instructions/** .rules",
     "tells coding agents what to do in every later session",
     "instructions planted here are obeyed without being read by a person"},
    {"package-config", Level::kWarn,
     ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .yarn/releases/** "
     ".yarn/plugins/** bunfig.toml .bundle/config pip.conf .pypirc "
     ".cargo/config .cargo/config.toml .condarc nuget.config NuGet.Config",
     "executes on host when the package manager is called",
     "registries, shells, wrappers and plugins are named here"},
    {"build-input", Level::kWarn,
     "Makefile makefile GNUmakefile *.mk CMakeLists.txt *.cmake "
     "CMakePresets.json configure configure.ac meson.build BUILD BUILD.bazel "
     "WORKSPACE WORKSPACE.bazel MODULE.bazel *.bzl .bazelrc build.rs "
     "setup.py setup.cfg pyproject.toml noxfile.py tox.ini fabfile.py "
     "build.gradle build.gradle.kts settings.gradle settings.gradle.kts "
     "gradlew gradle-wrapper.properties gradle-wrapper.jar pom.xml mvnw "
     "build.xml build.sbt Rakefile Gemfile *.gemspec justfile Justfile "
     "Taskfile.yml Taskfile.yaml Dockerfile Containerfile *.dockerfile "
     "docker-compose.yml docker-compose.yaml compose.yml compose.yaml "
     "Vagrantfile Procfile Tiltfile Earthfile gulpfile.js Gruntfile.js "
     "webpack.config.js webpack.config.ts rollup.config.js rollup.config.mjs "
     "vite.config.js vite.config.ts vite.config.mjs next.config.js "
     "next.config.mjs babel.config.js .babelrc.js postcss.config.js "
     "tailwind.config.js .eslintrc.js eslint.config.js eslint.config.mjs "
     ".prettierrc.js .eslintrc.cjs .pylintrc mypy.ini rust-toolchain.toml "
     "flake.nix default.nix shell.nix build.zig "
     "Directory.Build.props Directory.Build.targets *.csproj *.vcxproj "
     "*.props *.targets dune-project Package.swift mix.exs rebar.config",
     "executes on host when you build",
     "a build runs what it says, as the user"},
    {"test-input", Level::kWarn,
     "conftest.py pytest.ini jest.config.js jest.config.ts vitest.config.js "
     "vitest.config.ts karma.conf.js playwright.config.ts playwright.config.js "
     "cypress.config.js cypress.config.ts .mocharc.js .rspec phpunit.xml",
     "executes on host when you run the tests",
     "test runners load it before the first test"},
    {"interpreter-startup", Level::kWarn,
     "sitecustomize.py usercustomize.py *.pth .pythonrc.py .irbrc .pryrc "
     ".Rprofile .node_repl_history .gdbinit .lldbinit .perldb .php.ini "
     ".octaverc .ocamlinit .ghci",
     "executes on host when an interpreter or debugger starts here",
     "loaded before any line of the program that was asked for"},
    {"path-shadow", Level::kWarn, "node_modules/.bin/* .venv/bin/* venv/bin/*",
     "executes on host in place of a program of the same name",
     "these directories come first in PATH of scripts"},
    {"lock-file", Level::kWarn,
     "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml "
     "bun.lockb bun.lock Cargo.lock poetry.lock uv.lock Pipfile.lock pdm.lock "
     "Gemfile.lock composer.lock go.sum flake.lock mix.lock pubspec.lock "
     "packages.lock.json Package.resolved gradle.lockfile deno.lock",
     "decides which packages are installed: check where they come from",
     "nobody reads it, and it names URLs and hashes"},
    {"env-file", Level::kWarn, ".env .env.* .netrc .git-credentials .pgpass",
     "is where programs look for passwords and settings",
     "a changed value redirects a program; a new one may be a secret"},
    {"gitignore", Level::kInfo, ".gitignore .git/info/exclude .ignore",
     "changes which files git shows",
     "what it hides later is not seen in git's status"},
};

struct Pattern {
  const NameRule* rule;
  // Components after the key, each a name or "*"; one may be "**": last, all
  // beneath; else any that are followed by the rest.
  std::vector<std::string> rest;
};

// Patterns by their first component, so that a path costs a few lookups and
// not one comparison for each of some three hundred patterns.
class Table {
 public:
  Table() {
    for (const NameRule& rule : kRules)
      for (std::string_view text : split(rule.patterns, ' '))
        if (!text.empty()) add(rule, text);
  }

  std::vector<const NameRule*> match(const RelPath& path) const {
    auto parts = path.components();
    std::vector<const NameRule*> out = with_key_in(parts, matches);
    if (!parts.empty())
      for (const auto& [glob, rule] : by_glob_)
        if (match_name(glob, parts.back())) out.push_back(rule);
    return each_once(std::move(out));
  }

  std::vector<const NameRule*> match_beneath(const RelPath& path) const {
    return each_once(with_key_in(path.components(), may_match_beneath));
  }

 private:
  using Parts = std::vector<std::string_view>;

  template <typename Matches>
  std::vector<const NameRule*> with_key_in(const Parts& parts,
                                           Matches fits) const {
    std::vector<const NameRule*> out;
    for (size_t i = 0; i < parts.size(); i++) {
      auto it = by_name_.find(std::string(parts[i]));
      if (it == by_name_.end()) continue;
      for (const Pattern& pattern : it->second)
        if (fits(pattern, parts, i + 1)) out.push_back(pattern.rule);
    }
    return out;
  }

  static std::vector<const NameRule*> each_once(
      std::vector<const NameRule*> rules) {
    std::sort(rules.begin(), rules.end());
    rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
    return rules;
  }

  void add(const NameRule& rule, std::string_view text) {
    auto parts = split(text, '/');
    if (parts[0].find('*') != std::string_view::npos) {
      by_glob_.emplace_back(text, &rule);
      return;
    }
    Pattern pattern{.rule = &rule, .rest = {}};
    for (size_t i = 1; i < parts.size(); i++)
      pattern.rest.emplace_back(parts[i]);
    by_name_[std::string(parts[0])].push_back(std::move(pattern));
  }

  // All of `parts` is used up, and the pattern is not.
  static bool may_match_beneath(const Pattern& pattern, const Parts& parts,
                                size_t at) {
    for (const std::string& rest : pattern.rest) {
      if (rest == "**" || at >= parts.size()) return true;
      if (!match_name(rest, parts[at++])) return false;
    }
    return false;
  }

  // Whether the last of `parts`, from `at` on, are the last of `rest`.
  static bool ends_with(const Parts& parts, size_t at,
                        const std::vector<std::string>& rest, size_t from) {
    size_t count = rest.size() - from;
    if (parts.size() - at < count) return false;
    for (size_t i = 0; i < count; i++)
      if (!match_name(rest[from + i], parts[parts.size() - count + i]))
        return false;
    return true;
  }

  static bool matches(const Pattern& pattern, const Parts& parts, size_t at) {
    const auto& rest = pattern.rest;
    for (size_t i = 0; i < rest.size(); i++) {
      if (rest[i] == "**")  // last, or before the end of a path
        return at < parts.size() && ends_with(parts, at, rest, i + 1);
      if (at >= parts.size() || !match_name(rest[i], parts[at])) return false;
      at++;
    }
    return at == parts.size();
  }

  std::unordered_map<std::string, std::vector<Pattern>> by_name_;
  std::vector<std::pair<std::string, const NameRule*>> by_glob_;
};

}  // namespace

std::span<const NameRule> name_rules() { return kRules; }

namespace {

const Table& table() {
  static const Table made;
  return made;
}

}  // namespace

std::vector<const NameRule*> match_names(const RelPath& path) {
  return table().match(path);
}

std::vector<const NameRule*> match_beneath(const RelPath& directory) {
  return table().match_beneath(directory);
}

}  // namespace stoplog::diff
