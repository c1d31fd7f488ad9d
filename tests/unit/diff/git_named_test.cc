// SPDX-License-Identifier: Apache-2.0
// Files of the tree that the user's own git configuration names.
#include <sys/stat.h>

#include <filesystem>

#include "catch_shim.h"
#include "memory_view.h"
#include "repository.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

std::string danger_of(const ChangeSet& set, const char* name) {
  const Change* change = set.find(path(name));
  if (change == nullptr) return "no such row";
  for (const Risk& risk : change->risks)
    if (risk.level == Level::kDanger) return risk.code + " " + risk.message;
  return "";
}

}  // namespace

TEST_CASE("what a hook of the real repository runs is a danger") {
  Repository repo;
  const std::string hooks = repo.base() + "/.git/hooks";
  for (const char* name : {"tools/check.sh", "tools/top.sh", "tools/deps.js",
                           "package.json", "tools/msg.py"})
    TwoTrees::write(repo.base() + "/" + name, "echo\n");
  ::chmod((repo.base() + "/tools/top.sh").c_str(), 0755);
  std::filesystem::create_symlink("../../tools/check.sh",
                                  hooks + "/pre-commit");
  TwoTrees::write(hooks + "/pre-push",
                  "#!/bin/sh\nexec \"$(git rev-parse --show-toplevel)/tools/"
                  "top.sh\" \"$@\"\n");
  TwoTrees::write(hooks + "/post-merge",
                  "git diff --name-only | grep -q package.json &&\n"
                  "  node tools/deps.js\n");
  TwoTrees::write(hooks + "/commit-msg", "python3 \"$top/tools/msg.py\"\n");
  TwoTrees::write(hooks + "/post-checkout", "npx lefthook run post-checkout\n");
  TwoTrees::write(hooks + "/update.sample", "sh tools/other\n");
  repo.copy_base();
  ::mkfifo((hooks + "/fifo").c_str(), 0644);  // nobody writes to it
  for (const char* name :
       {"tools/check.sh", "tools/top.sh", "tools/deps.js", "package.json",
        "tools/msg.py", "lefthook.yml", "tools/other"})
    TwoTrees::write(repo.draft() + "/" + name, "curl x | sh\n");
  ChangeSet set = repo.build();
  for (const char* name : {"tools/check.sh", "tools/top.sh", "tools/deps.js",
                           "tools/msg.py", "lefthook.yml"}) {
    INFO(name << ": " << danger_of(set, name));
    CHECK(danger_of(set, name).starts_with("git-hook "));
  }
  CHECK(danger_of(set, "tools/check.sh").find("pre-commit") !=
        std::string::npos);
  CHECK(danger_of(set, "tools/other").empty());
  CHECK(danger_of(set, "package.json").find("git-hook") == std::string::npos);
}

TEST_CASE("a file that the real git configuration names is a danger") {
  Repository repo;
  const std::string home = repo.top() + "/home";
  // His dotfiles are elsewhere, as many people's are.
  TwoTrees::write(home + "/dotfiles/gitconfig",
                  "[include]\n\tpath = more\n[core]\n\tpager = less\n");
  std::filesystem::create_symlink("dotfiles/gitconfig", home + "/.gitconfig");
  TwoTrees::write(home + "/more", "[diff \"x\"]\n\ttextconv = ./conv.py\n");
  TwoTrees::write(repo.base() + "/shared.cfg",
                  "[alias]\n\tgo = !sh tools/go.sh now\n\tst = status\n");
  for (const char* name : {"tools/go.sh", "clean.sh", "status"})
    TwoTrees::write(repo.base() + "/" + name, "echo\n");
  Repository::git(repo.base(), "config core.hooksPath tools/hooks");
  Repository::git(repo.base(), "config include.path ../shared.cfg");
  Repository::git(repo.base(), "config filter.f.clean \"sh '" + repo.base() +
                                   "/clean.sh' %f\"");
  repo.copy_base();
  for (const char* name :
       {"tools/hooks/pre-commit", "tools/go.sh", "clean.sh", "status",
        "conv.py", "shared.cfg", "tools/other", "src/tools/hooks/x"})
    TwoTrees::write(repo.draft() + "/" + name, "curl x | sh\n");
  const char* old = std::getenv("HOME");
  const std::string kept = old != nullptr ? old : "";
  ::setenv("HOME", home.c_str(), 1);
  ::unsetenv("XDG_CONFIG_HOME");
  ChangeSet set = repo.build();
  ::setenv("HOME", kept.c_str(), 1);
  CHECK(danger_of(set, "tools/hooks/pre-commit").starts_with("git-hook "));
  CHECK(danger_of(set, "tools/go.sh").find("alias.go") != std::string::npos);
  CHECK(danger_of(set, "clean.sh").find("filter.f.clean") != std::string::npos);
  CHECK(danger_of(set, "conv.py").find("diff.x.textconv") != std::string::npos);
  CHECK(danger_of(set, "shared.cfg").find("include.path") != std::string::npos);
  for (const char* name : {"status", "tools/other", "src/tools/hooks/x"}) {
    INFO(name);
    CHECK(danger_of(set, name).empty());
  }
}

TEST_CASE("what a link of the real tree makes of a file is a danger") {
  Repository repo;
  auto link = [&](const char* target, const char* name) {
    std::filesystem::create_symlink(target, repo.base() + "/" + name);
  };
  for (const char* name :
       {"config/vscode/tasks.json", "forge/workflows/a.yml", "forge/README.md",
        "tools/hooks/x.sh", "env/rc", "docs/a.md", ".claude/settings.json"})
    TwoTrees::write(repo.base() + "/" + name, "text\n");
  link("config/vscode", ".vscode");
  link("./forge", ".github");
  link("../tools/hooks", ".claude/hooks");
  link("env/rc", ".envrc");
  link("docs", "manual");
  link("../../elsewhere", ".idea");
  repo.copy_base();
  for (const char* name :
       {"config/vscode/tasks.json", "forge/workflows/a.yml", "forge/README.md",
        "tools/hooks/x.sh", "env/rc", "docs/a.md", "config/vscode/new/x"})
    TwoTrees::write(repo.draft() + "/" + name, "curl x | sh\n");
  ChangeSet set = repo.build();
  auto starts = [&](const char* name, const char* code) {
    INFO(name << ": " << danger_of(set, name));
    CHECK(danger_of(set, name).starts_with(code));
  };
  starts("config/vscode/tasks.json", "editor-task the link '.vscode'");
  starts("config/vscode/new/x", "editor-task ");
  starts("forge/workflows/a.yml", "ci the link '.github'");
  starts("tools/hooks/x.sh", "agent-config the link '.claude/hooks'");
  starts("env/rc", "direnv ");
  CHECK(danger_of(set, "forge/README.md").empty());
  CHECK(danger_of(set, "docs/a.md").empty());
}

TEST_CASE("a program that PATH finds before another of its name is a danger") {
  Repository repo;
  const std::string tools = repo.top() + "/tools", late = repo.top() + "/late";
  for (const char* name : {"git", "ls", "notes"})
    TwoTrees::write(tools + "/" + name, "echo\n");
  ::chmod((tools + "/git").c_str(), 0755);
  ::chmod((tools + "/ls").c_str(), 0755);
  for (const char* name : {"bin/ls", "bin/own"})
    TwoTrees::write(repo.base() + "/" + name, "echo\n");
  repo.copy_base();
  for (const char* name : {"bin/git", "bin/ls", "bin/own", "bin/notes", "git",
                           "late/git", "env/git", "bin/sub/git"})
    TwoTrees::write(repo.draft() + "/" + name, "curl x | sh\n");
  const std::string kept = std::getenv("PATH");
  auto build = [&](const std::string& search) {
    ::setenv("PATH", search.c_str(), 1);
    ChangeSet set = repo.build();
    ::setenv("PATH", kept.c_str(), 1);
    return set;
  };
  ChangeSet set = build(repo.base() + "/bin:env:" + tools + ":" + repo.base() +
                        "/late:" + repo.top() + "/none");
  CHECK(danger_of(set, "bin/git").starts_with("path-shadow "));
  CHECK(danger_of(set, "bin/git").find(tools + "/git") != std::string::npos);
  CHECK(danger_of(set, "bin/ls").starts_with("path-shadow "));
  CHECK(danger_of(set, "env/git").starts_with("path-shadow "));
  for (const char* name :
       {"bin/own", "bin/notes", "git", "late/git", "bin/sub/git"})
    CHECK(danger_of(set, name).empty());
  std::filesystem::create_directory_symlink(repo.base(), repo.top() + "/link");
  set = build(repo.top() + "/link/env/:" + tools);
  CHECK(danger_of(set, "env/git").starts_with("path-shadow "));
  CHECK(danger_of(build(":" + tools), "git").starts_with("path-shadow "));
  CHECK(danger_of(build(tools), "bin/git").empty());
}
