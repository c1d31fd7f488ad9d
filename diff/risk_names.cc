// SPDX-License-Identifier: Apache-2.0
#include "diff/risk_names.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

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
     ".git/config .git/config.worktree .config/git/config "
     ".git/modules/**/config "
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
     ".envrc .envrc.local .envrc.private .direnvrc .config/direnv/** "
     ".mise.toml mise.toml "
     "mise.*.toml .mise.*.toml mise/config.toml mise/config.*.toml "
     "mise/conf.d/* .config/mise.toml .config/mise.*.toml .config/mise/** "
     ".mise/** .miserc.toml .rtx.toml .shadowenv.d/** .autoenv .autoenv.zsh "
     ".autoenv_leave.zsh .autoenv.leave .env.leave .ondir .smartcd_enter",
     "executes on host unasked: the shell runs it on entering the directory",
     "direnv, mise, shadowenv and autoenv run or load it at every cd"},
    {"editor-task", Level::kDanger,
     ".vscode/** .idea/** .devcontainer/** .devcontainer.json .zed/** "
     ".fleet/** *.code-workspace .exrc .vimrc .gvimrc _vimrc .nvimrc "
     ".nvim.lua .lvimrc .localvimrc .vim/** .nvim/** .config/nvim/** "
     ".dir-locals.el .dir-locals-2.el .emacs .emacs.d/** .spacemacs .vs/** "
     "*.sublime-project .helix/** .lite_project.lua .lite_project/** .nova/** "
     ".kateproject .theia/** .externalToolBuilders/** "
     ".ycm_extra_conf.py .luarc.json .luarc.jsonc rust-analyzer.toml "
     ".rust-analyzer.toml .neoconf.json .nlsp-settings/** .gitpod.yml "
     ".gitpod/** .ona/** .idx/** .codesandbox/** .replit devfile.yaml "
     ".devfile.yaml",
     "executes on host unasked: an editor runs or obeys it on opening",
     "tasks with runOn folderOpen, interpreter paths, local variables"},
    {"agent-config", Level::kDanger,
     ".claude/** .claude.json .claude-plugin/** .mcp.json mcp.json .mcp/** "
     ".cursor/** .cursorrules .codex/** .gemini/** gemini-extension.json "
     ".windsurf/** .windsurfrules .codeium/** .continue/** .aider.conf.yml "
     ".roo/** .roomodes .kilocode/** .kilocodemodes .clinerules "
     ".clinerules/** .cline/** .kiro/** .goosehints .goose/** .opencode/** "
     ".config/opencode/** opencode.json opencode.jsonc .crush/** crush.json "
     ".crush.json .agents/** .agent/** .amp/** .amazonq/** .augment/** "
     ".qwen/** .factory/** .junie/** .trae/** .copilot/** .openhands/** "
     ".devin/** .warp/** .tabnine/** .zencoder/** .codebuddy/** .iflow/** "
     ".antigravity/** .pi/** .vibe/** .github/hooks/** .github/agents/** "
     ".github/skills/** .github/copilot/** .gitlab/duo/**",
     "executes on host unasked: coding agents start servers and hooks from it",
     "an agent could so widen its own rights for the next start"},
    {"ci", Level::kDanger,
     ".github/workflows/** .github/actions/** .gitlab-ci.yml .gitlab-ci/** "
     ".gitlab/ci/** .circleci/** Jenkinsfile Jenkinsfile.* *.jenkinsfile "
     ".travis.yml azure-pipelines.yml azure-pipelines.yaml "
     ".azure-pipelines/** .azuredevops/** .pipelines/** .buildkite/** "
     "buildkite.yml .drone.yml .drone.yaml .drone.star .drone.jsonnet "
     "bitbucket-pipelines.yml .woodpecker.yml .woodpecker.yaml "
     ".woodpecker/** appveyor.yml .appveyor.yml .teamcity/** .cirrus.yml "
     ".cirrus.star .gitea/workflows/** .gitea/actions/** "
     ".forgejo/workflows/** .forgejo/actions/** cloudbuild.yaml "
     "cloudbuild.yml cloudbuild.json buildspec.yml buildspec.yaml "
     ".semaphore/** .tekton/** .build.yml .build.yaml .builds/** .harness/** "
     ".screwdriver.yaml screwdriver.yaml codefresh.yml .codefresh/** "
     ".onedev-buildspec.yml .bitrise.yml bitrise.yml codemagic.yaml "
     "ci_scripts/** .cnb.yml .zuul.yaml .zuul.d/** zuul.yaml zuul.d/** "
     ".taskcluster.yml .evergreen.yml .prow.yaml .readthedocs.yaml "
     ".readthedocs.yml netlify.toml vercel.json",
     "runs unasked on the next push, with the secrets of your CI",
     "a workflow has tokens that a reviewer of the code never sees"},
    {"package-hook", Level::kDanger, "binding.gyp",
     "executes on host unasked at install: npm builds what it says",
     "npm runs it, or a script of that name, at every install"},
    {"shell-startup", Level::kDanger,
     ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases "
     ".bash_functions .bash_completion .bashrc.d/** .profile .zshrc .zshenv "
     ".zprofile .zlogin .zlogout .zsh/** .oh-my-zsh/** .kshrc .mkshrc .cshrc "
     ".tcshrc .login .logout .xonshrc .elvish/** .xprofile .xinitrc "
     ".xsession .xsessionrc .config/fish/** .config/zsh/** .config/nushell/** "
     ".config/elvish/** .config/autostart/** .config/systemd/** "
     ".config/environment.d/** .config/plasma-workspace/** .config/i3/** "
     ".i3/** .config/sway/** .config/hypr/** .config/tmux/** "
     ".local/share/systemd/** .local/share/applications/** .ssh/** .gnupg/** "
     ".kube/config .docker/config.json .aws/config .inputrc .lessfilter "
     ".pam_environment .tmux.conf .screenrc .mailcap .forward .procmailrc",
     "executes on host unasked when this is a home directory",
     "the next login shell runs it"},
    {"git-attributes", Level::kWarn,
     ".gitattributes .gitmodules .config/git/attributes",
     "changes how git reads files or where it fetches submodules from",
     "filters, merge drivers and submodule URLs are named here"},
    {"commit-hook", Level::kWarn,
     ".pre-commit-config.yaml .pre-commit-hooks.yaml prek.toml lefthook.yml "
     "lefthook.yaml lefthook.toml lefthook.json .lefthook.* "
     "lefthook-local.yml lefthook-local.yaml .lefthook-local.* .lefthook/** "
     ".lefthook-local/** .config/lefthook.* .overcommit.yml .git-hooks/** "
     ".lintstagedrc .lintstagedrc.* lint-staged.config.* .commitlintrc "
     ".commitlintrc.* commitlint.config.* .huskyrc .huskyrc.* "
     ".simple-git-hooks.* simple-git-hooks.* hk.pkl captainhook.json "
     "grumphp.yml grumphp.yml.dist .rusty-hook.toml .gitlint .czrc .cz.toml",
     "runs at commit where its hook manager is installed",
     "the hook manager was installed by the user; what it runs is named here"},
    {"agent-instructions", Level::kWarn,
     "AGENTS.md AGENTS.override.md AGENT.md CLAUDE.md CLAUDE.local.md "
     "GEMINI.md QWEN.md CRUSH.md WARP.md JULES.md replit.md SKILL.md "
     ".github/copilot-instructions.md .github/instructions/** "
     ".github/prompts/** .github/chatmodes/** .rules *.mdc",
     "tells coding agents what to do in every later session",
     "instructions planted here are obeyed without being read by a person"},
    {"package-config", Level::kWarn,
     ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnpmfile.mjs .pnpmfile.js "
     "pnpm-workspace.yaml .pnp.cjs .pnp.js .pnp.loader.mjs .corepack.env "
     ".yarn/releases/** .yarn/plugins/** .yarn/sdks/** .yarn/patches/** "
     "bunfig.toml .bunfig.toml .bundle/config .gemrc pip.conf pip.ini uv.toml "
     "poetry.toml pixi.toml .pypirc .cargo/config .cargo/config.toml .condarc "
     ".mambarc environment.yml environment.yaml Pipfile requirements.txt "
     "requirements-*.txt requirements/*.txt constraints.txt .mvn/** "
     ".m2/settings.xml gradle.properties .sbtopts .jvmopts .npm-init.js "
     "nuget.config NuGet.Config dotnet-tools.json global.json",
     "executes on host when the package manager is called",
     "registries, shells, wrappers and plugins are named here"},
    {"build-input", Level::kWarn,
     "Makefile makefile GNUmakefile Makefile.am Makefile.in Makefile.inc *.mk "
     "CMakeLists.txt *.cmake "
     "CMakePresets.json CMakeUserPresets.json configure configure.ac "
     "meson.build meson_options.txt meson.options BUILD BUILD.bazel BUCK "
     ".buckconfig WORKSPACE WORKSPACE.bazel WORKSPACE.bzlmod MODULE.bazel "
     "*.bzl .bazelrc .bazeliskrc .bazelversion tools/bazel SConstruct "
     "SConscript wscript xmake.lua premake5.lua conanfile.py build.rs "
     "Cargo.toml go.mod go.work magefile.go setup.py setup.cfg "
     "pyproject.toml hatch_build.py pdm_build.py noxfile.py tox.ini "
     "fabfile.py tasks.py dodo.py manage.py conf.py mkdocs.yml Snakefile "
     "*.gradle *.gradle.kts buildSrc/** gradlew gradlew.bat "
     "gradle-wrapper.properties gradle-wrapper.jar pom.xml mvnw mvnw.cmd "
     "build.xml *.sbt build.sc build.mill Rakefile *.rake Gemfile gems.rb "
     "*.gemspec Guardfile Capfile Berksfile config.ru Podfile *.podspec "
     "Fastfile Brewfile justfile Justfile .justfile Taskfile.yml "
     "Taskfile.yaml Taskfile.*.yml Dockerfile Dockerfile.* Containerfile "
     "Containerfile.* *.dockerfile docker-compose.* "
     "compose.yml compose.yaml compose.*.yml compose.*.yaml "
     "docker-bake.hcl Vagrantfile Procfile Procfile.* Tiltfile Earthfile "
     "skaffold.yaml *.tf .terraformrc terragrunt.hcl Pulumi.yaml cdk.json "
     "serverless.yml ansible.cfg gulpfile.js gulpfile.* Gruntfile.* "
     "*.config.js *.config.ts *.config.mjs *.config.cjs *.config.mts "
     "*.config.cts .babelrc .babelrc.* babel.config.json .swcrc .postcssrc "
     ".postcssrc.* .eslintrc .eslintrc.* .prettierrc .prettierrc.* "
     ".stylelintrc .stylelintrc.* tslint.json .releaserc .releaserc.* "
     "nx.json project.json lerna.json rush.json angular.json nodemon.json "
     ".moon/** plopfile.js .pylintrc pylintrc .flake8 mypy.ini .rubocop.yml "
     ".solargraph.yml .yardopts .luacheckrc *.rockspec .perlcriticrc "
     "Makefile.PL Build.PL cpanfile .php-cs-fixer.php .php-cs-fixer.dist.php "
     "phpstan.neon phpstan.neon.dist rector.php rust-toolchain "
     "rust-toolchain.toml flake.nix default.nix shell.nix devenv.nix "
     "devenv.yaml devbox.json build.zig build.zig.zon Setup.hs *.cabal "
     "cabal.project stack.yaml Directory.Build.props Directory.Build.targets "
     "*.csproj *.fsproj *.vbproj *.vcxproj *.proj *.props *.targets *.rsp "
     "dune-project Package.swift project.pbxproj mix.exs rebar.config "
     "pubspec.yaml shard.yml .clangd",
     "executes on host when you build",
     "a build runs what it says, as the user"},
    {"test-input", Level::kWarn,
     "conftest.py pytest.ini .coveragerc jest.config.* vitest.config.* "
     "vitest.workspace.* karma.conf.* wdio.conf.* playwright.config.* "
     "cypress.config.* cypress/plugins/** cypress/support/** .mocharc.* "
     ".nycrc .c8rc .taprc cucumber.js .rspec .busted phpunit.xml "
     "phpunit.xml.dist .proverc CTestTestfile.cmake test_helper.exs",
     "executes on host when you run the tests",
     "test runners load it before the first test"},
    {"interpreter-startup", Level::kWarn,
     "sitecustomize.py usercustomize.py *.pth .pythonrc.py .pythonrc .pdbrc "
     ".pdbrc.py .ipython/** ipython_config.py jupyter_*_config.py "
     "jupyter_*_config.json gunicorn.conf.py .irbrc .pryrc .rdbgrc .byebugrc "
     ".Rprofile .Renviron .julia/config/startup.jl .node_repl_history "
     ".gdbinit gdbinit .gdbearlyinit *-gdb.py *-gdb.gdb .lldbinit lldbinit "
     ".lldbinit-* .radare2rc .rizinrc .perldb .php.ini php.ini .user.ini "
     ".htaccess .iex.exs .octaverc .ocamlinit .ghci .sbclrc .guile .psqlrc "
     ".sqliterc .duckdbrc .my.cnf .mongorc.js .mongoshrc.js",
     "executes on host when an interpreter or debugger starts here",
     "loaded before any line of the program that was asked for"},
    {"path-shadow", Level::kWarn,
     "node_modules/.bin/* .venv/bin/* venv/bin/* env/bin/* .local/bin/* "
     "vendor/bin/* .tool-versions __pycache__/* *.pyc",
     "executes on host in place of a program of the same name",
     "these come first in PATH of scripts, or before the source itself"},
    {"lock-file", Level::kWarn,
     "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml "
     "bun.lockb bun.lock Cargo.lock poetry.lock uv.lock Pipfile.lock pdm.lock "
     "Gemfile.lock composer.lock go.sum flake.lock mix.lock pubspec.lock "
     "packages.lock.json Package.resolved gradle.lockfile deno.lock "
     "gems.locked Podfile.lock Cartfile.resolved pylock.toml pixi.lock "
     "conda-lock.yml conan.lock MODULE.bazel.lock devbox.lock devenv.lock "
     ".terraform.lock.hcl paket.lock shard.lock stack.yaml.lock "
     "cabal.project.freeze renv.lock verification-metadata.xml",
     "decides which packages are installed: check where they come from",
     "nobody reads it, and it names URLs and hashes"},
    {"env-file", Level::kWarn, ".env .env.* .netrc .git-credentials .pgpass",
     "is where programs look for passwords and settings",
     "a changed value redirects a program; a new one may be a secret"},
    {"gitignore", Level::kInfo, ".gitignore .git/info/exclude .ignore",
     "changes which files git shows",
     "what it hides later is not seen in git's status"},
};

// A pattern of the rules above, found by its first component: built by the
// compiler, and of places and not of pointers, so that a program that starts
// has nothing to make and nothing to fill in.
struct Pattern {
  uint16_t rule, begin, length, key;
  constexpr std::string_view text() const {
    return kRules[rule].patterns.substr(begin, length);
  }
  constexpr std::string_view name() const { return text().substr(0, key); }
  // Components after the first, each a name or "*"; one may be "**": last, all
  // beneath; else any that are followed by the rest.
  std::vector<std::string_view> rest() const {
    if (key == length) return {};
    return split(text().substr(key + 1u), '/');
  }
};

constexpr size_t byte(char c) { return static_cast<unsigned char>(c); }

constexpr size_t hash(std::string_view name) {
  size_t h = 0;
  for (char c : name) h = h * 31 + byte(c);
  return h % 256;
}

template <typename Take>
constexpr void each_pattern(Take take) {
  for (uint16_t r = 0; r < std::size(kRules); r++) {
    const std::string_view all = kRules[r].patterns;
    for (size_t begin = 0; begin < all.size();) {
      size_t end = std::min(all.find(' ', begin), all.size());
      const std::string_view text = all.substr(begin, end - begin);
      auto key = static_cast<uint16_t>(std::min(text.find('/'), text.size()));
      if (!text.empty())
        take(Pattern{r, static_cast<uint16_t>(begin),
                     static_cast<uint16_t>(text.size()), key});
      begin = end + 1;
    }
  }
}

// By the name itself, so that a path costs a few lookups and not one comparison
// for each of some hundreds of patterns. Those with a star in the name by the
// letter that they begin with, or end with where they begin with the star: most
// names have to be compared with two or three of them.
enum class By { kName, kFirst, kLast };

constexpr By by_of(const Pattern& pattern) {
  if (pattern.name().find('*') == std::string_view::npos) return By::kName;
  return pattern.text().front() == '*' ? By::kLast : By::kFirst;
}

template <By kBy>
struct Buckets {
  static constexpr size_t kCount = [] {
    size_t count = 0;
    each_pattern([&](const Pattern& p) { count += by_of(p) == kBy; });
    return count;
  }();
  static constexpr size_t bucket_of(const Pattern& pattern) {
    return kBy == By::kName    ? hash(pattern.name())
           : kBy == By::kFirst ? byte(pattern.text().front())
                               : byte(pattern.text().back());
  }

  constexpr Buckets() {
    each_pattern([&](const Pattern& p) {
      if (by_of(p) == kBy) begin[bucket_of(p) + 1]++;
    });
    for (size_t i = 0; i < 256; i++)
      begin[i + 1] = static_cast<uint16_t>(begin[i + 1] + begin[i]);
    std::array<uint16_t, 257> next = begin;
    each_pattern([&](const Pattern& p) {
      if (by_of(p) == kBy) patterns[next[bucket_of(p)]++] = p;
    });
  }
  std::span<const Pattern> at(size_t bucket) const {
    return std::span(patterns).subspan(
        begin[bucket], static_cast<size_t>(begin[bucket + 1] - begin[bucket]));
  }

  std::array<uint16_t, 257> begin{};
  std::array<Pattern, kCount> patterns{};
};

constexpr Buckets<By::kName> kByName;
constexpr Buckets<By::kFirst> kByFirst;
constexpr Buckets<By::kLast> kByLast;

using Parts = std::vector<std::string_view>;
using Rules = std::vector<const NameRule*>;

template <typename Fits>
Rules with_key_in(const Parts& parts, Fits fits) {
  Rules out;
  for (size_t i = 0; i < parts.size(); i++)
    for (const Pattern& pattern : kByName.at(hash(parts[i])))
      if (pattern.name() == parts[i] && fits(pattern.rest(), parts, i + 1))
        out.push_back(&kRules[pattern.rule]);
  return out;
}

Rules each_once(Rules rules) {
  std::sort(rules.begin(), rules.end());
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
  return rules;
}

// All of `parts` is used up, and the pattern is not.
bool may_match_beneath(const Parts& rest, const Parts& parts, size_t at) {
  for (std::string_view name : rest) {
    if (name == "**" || at >= parts.size()) return true;
    if (!match_name(name, parts[at++])) return false;
  }
  return false;
}

// Whether the last of `parts`, from `at` on, are the last of `rest`.
bool ends_with(const Parts& parts, size_t at, const Parts& rest, size_t from) {
  size_t count = rest.size() - from;
  if (parts.size() - at < count) return false;
  for (size_t i = 0; i < count; i++)
    if (!match_name(rest[from + i], parts[parts.size() - count + i]))
      return false;
  return true;
}

bool matches(const Parts& rest, const Parts& parts, size_t at) {
  for (size_t i = 0; i < rest.size(); i++) {
    if (rest[i] == "**")  // last, or before the end of a path
      return at < parts.size() && ends_with(parts, at, rest, i + 1);
    if (at >= parts.size() || !match_name(rest[i], parts[at])) return false;
    at++;
  }
  return at == parts.size();
}

}  // namespace

std::span<const NameRule> name_rules() { return kRules; }

std::vector<const NameRule*> match_names(const RelPath& path) {
  auto parts = path.components();
  Rules out = with_key_in(parts, matches);
  if (!parts.empty() && !parts.back().empty()) {
    const std::string_view name = parts.back();
    for (auto patterns :
         {kByFirst.at(byte(name.front())), kByLast.at(byte(name.back()))})
      for (const Pattern& pattern : patterns)
        if (match_name(pattern.text(), name))
          out.push_back(&kRules[pattern.rule]);
  }
  return each_once(std::move(out));
}

std::vector<const NameRule*> match_beneath(const RelPath& directory) {
  return each_once(with_key_in(directory.components(), may_match_beneath));
}

}  // namespace stoplog::diff
