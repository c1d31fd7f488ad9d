// SPDX-License-Identifier: Apache-2.0
// Dangers in disguise: the same thing by another way must be told as well.
#include "catch_shim.h"
#include "diff/git_config.h"
#include "diff/hunks.h"
#include "risk_codes.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

const std::string kPlain = "[core]\n\tbare = false\n";

Codes config(const std::string& more) {
  return modified(kPlain, kPlain + more, ".git/config");
}

DiffOptions in_workspace() {
  DiffOptions options;
  options.real_root = "/nowhere/workspace";
  return options;
}

bool has(const Codes& codes, const std::string& code) {
  return codes.contains(code);
}

}  // namespace

TEST_CASE("a git configuration is read as git reads it") {
  GitConfig keys = parse_git_config(
      "\xEF\xBB\xBF[Core] Bare\n"
      "[remote \"A\\\"b\"] url = \"x # y\" z ; comment\n"
      "\turl = one\\\n  two\r\n"
      "[a.B]c=\"\\\\\"\n");
  CHECK(keys == GitConfig{{"core.bare", {"true"}},
                          {"remote.A\"b.url", {"x # y z", "one  two"}},
                          {"a.b.c", {"\\\\"}}});
  CHECK(parse_git_config("[core\n").contains("?"));
  CHECK(parse_git_config("[a] b = \"x\n").contains("?"));
  CHECK(parse_git_config("[a] b = \\x\n").contains("?"));
  CHECK(parse_git_config("[a \"b]\nc = d\n").contains("?"));
  CHECK(parse_git_config("= x\n").contains("?"));
}

TEST_CASE("a key of git's configuration cannot hide behind another") {
  // A comment and an escaped backslash do not go on in the next line.
  for (const char* hidden :
       {"# a comment \\\n[core] fsmonitor = x\n", "; \\\n\tfsmonitor = x\n",
        "[user]\n\tname = A ; \\\n[core] fsmonitor = x\n",
        "[user]\n\tname = A\\\\\n[core] fsmonitor = x\n",
        "[branch \"x\"] [core] fsmonitor = x\n",
        "[user] name = \"a\nfsmonitor = x\n",
        "[user] \\\n[core] fsmonitor = x\n"}) {
    CAPTURE(hidden);
    CHECK(config(hidden) == Codes{"danger git-config"});
  }
  CHECK(config("[branch \"x\"]\n\tremote = ext::sh -c x\n") ==
        Codes{"danger git-config"});
  CHECK(config("[branch \"x\"]\n\tremote = ../elsewhere\n") ==
        Codes{"danger git-config"});
}

TEST_CASE("a link in place of a directory is what the directory would be") {
  auto link = [](const std::string& at) {
    MemoryView view;
    view.change("plain/x", file("x"));
    view.change(at, symlink("plain"));
    return risks(view, in_workspace());
  };
  CHECK(has(link(".git/hooks"), "danger git-hook"));
  CHECK(has(link(".git/info"), "danger git-info"));
  CHECK(has(link(".husky"), "danger git-hook"));
  CHECK(has(link(".vscode"), "danger editor-task"));
  CHECK(has(link("sub/.claude"), "danger agent-config"));
  CHECK(has(link(".github/workflows"), "danger ci"));
  CHECK(has(link(".github"), "danger ci"));
  CHECK(has(link(".git/modules"), "danger git-config"));
  CHECK(has(link("node_modules"), "warn path-shadow"));
  CHECK(link("vscode").empty());
  CHECK(link("hooks").empty());
}

TEST_CASE("a directory moved to a dangerous name is the danger") {
  auto moved = [](const std::string& from, const std::string& to,
                  const std::string& below) {
    MemoryView view;
    view.base[from] = dir();
    if (size_t slash = below.find('/'); slash != std::string::npos)
      view.draft[to + "/" + below.substr(0, slash)] = dir();
    view.base[from + "/" + below] = file("x");
    view.draft[to + "/" + below] = file("x");
    view.change(to, dir(), from);
    return risks(view, in_workspace());
  };
  CHECK(has(moved("templates", ".vscode", "tasks.json"), "danger editor-task"));
  CHECK(has(moved("old/.github", ".github", "workflows/x.yml"), "danger ci"));
  CHECK(
      has(moved("samples", ".git/hooks", "post-checkout"), "danger git-hook"));
  CHECK(has(moved("skeleton", ".git", "config"), "danger git-config"));
  CHECK(has(moved("a", "node_modules", ".bin/git"), "warn path-shadow"));
  CHECK(
      has(moved("node_modules/a", "b", "package.json"), "danger package-hook"));
  CHECK(has(moved("web/node_modules", "packages", "a/package.json"),
            "danger package-hook"));
  CHECK(moved("a/node_modules/b", "node_modules/b", "package.json").empty());
  CHECK(moved("old/.github", ".github", "funding.yml").empty());
  CHECK(moved("templates", "vscode", "tasks.json").empty());
  CHECK(moved("lib/.vscode/x", "lib/x", "tasks.json").empty());
}

TEST_CASE("a link that moved along with a directory may leave the workspace") {
  auto moved = [](const std::string& from, const std::string& to,
                  std::string target) {
    MemoryView view;
    view.base[from] = dir();
    view.base[from + "/l"] = symlink(target);
    view.draft[to + "/l"] = symlink(target);
    view.change(to, dir(), from);
    return risks(view, in_workspace());
  };
  CHECK(moved("a/b", "c", "../../x") == Codes{"danger symlink-outside"});
  CHECK(moved("a/b", "c", "../x").empty());
  CHECK(moved("a", "c/d", "../x").empty());
}

TEST_CASE("a link is followed through other links") {
  auto chain = [](std::string first, std::string second) {
    MemoryView view;
    view.both("a", dir());
    view.both("a/b", dir());
    view.change("a/b/l", symlink(std::move(first)));
    view.change("evil", symlink(std::move(second)));
    return risks(view, in_workspace());
  };
  // Each stays inside by its text.
  CHECK(chain("../..", "a/b/l/../x") == Codes{"danger symlink-outside"});
  CHECK(chain("/nowhere/workspace", "a/b/l/../x") ==
        Codes{"danger symlink-outside"});
  CHECK(chain("../..", "a/b/l/x").empty());
  CHECK(chain("../../evil", "a/b/l").empty());  // a circle leads nowhere
}

TEST_CASE("new content of a privileged program is a danger") {
  MemoryView view;
  view.base["f"] = file("old", 04755);
  view.change("f", file("new", 04755));
  CHECK(has(risks(view), "danger setuid"));
  MemoryView able;
  able.base["f"] = file("old", 0755);
  able.base["f"].xattrs["security.capability"] = "1";
  auto after = file("new", 0755);
  after.xattrs["security.capability"] = "1";
  able.change("f", after);
  CHECK(has(risks(able), "danger file-capability"));
}

TEST_CASE("a byte of zero hides nothing") {
  std::string token =
      "ghp_" + std::string("a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
  std::string far = std::string(9000, 'x') + '\0' + "\n";
  CHECK(has(added("run.sh", far), "warn binary"));
  CHECK(has(added("run.sh", far + token + "\n"), "danger secret"));
  CHECK(has(added("data.bin", std::string(1, '\0') + token), "danger secret"));
}

TEST_CASE("what is too large to be looked at says so") {
  for (uint64_t size : {kTextLimit + 1, uint64_t{20} << 20}) {
    MemoryView view;
    view.base["big"] = file(std::make_shared<RepeatedContent>(size, 'a'));
    view.change("big", file(std::make_shared<RepeatedContent>(size, 'b')));
    ChangeSet set = build(view);
    REQUIRE(set.changes.at(0).risks.size() == 1);
    CHECK(set.changes[0].risks[0].code == "large-file");
    CHECK(set.changes[0].risks[0].message.find("not looked") !=
          std::string::npos);
  }
}

TEST_CASE("an install script cannot hide from its reader") {
  std::string hook = R"("\u0073cripts":{"postinstall":"x"})";
  auto package = [](const std::string& text) {
    return added("package.json", text);
  };
  std::string fill = R"("a":")" + std::string(2 << 20, 'x') + "\",\n";
  CHECK(has(package("{" + hook + "}"), "danger package-hook"));
  CHECK(has(package("{" + fill + hook + "}"), "danger package-hook"));
  // Node puts another character in place of bytes that are not UTF-8.
  CHECK(has(package("{\"a\":\"\xff\"," + hook + "}"), "danger package-hook"));
  CHECK_FALSE(has(package("{ not yet }"), "danger package-hook"));
  MemoryView view;
  view.base["package.tmpl"] = file("{" + hook + "}");
  view.change("package.json", file("{" + hook + "}"), "package.tmpl");
  CHECK(has(risks(view), "danger package-hook"));
  MemoryView same;
  same.base["a/package.json"] = file("{" + hook + "}");
  same.change("b/package.json", file("{" + hook + "}"), "a/package.json");
  CHECK(risks(same).empty());
  CHECK(has(added("binding.gyp"), "danger package-hook"));
}

TEST_CASE("scripts of other package managers are named") {
  auto composer = [](const std::string& text) {
    return modified(R"({"scripts":{}})", text, "composer.json");
  };
  CHECK(has(composer(R"({"scripts":{"post-install-cmd":"x"}})"),
            "danger package-hook"));
  CHECK(has(composer(R"({"scripts":{"check":["a","b"]}})"),
            "warn package-script"));
  CHECK(modified("{}", R"({"tasks":{"dev":"x"}})", "deno.json") ==
        Codes{"warn package-script"});
  CHECK(composer(R"({"scripts":{},"require":{"a":"1"}})").empty());
}

TEST_CASE("a bare repository in the tree is obeyed as any other") {
  auto bare = [](const std::string& at, const std::string& text) {
    MemoryView view;
    view.both("fixture/HEAD", file("ref: refs/heads/main\n"));
    view.both("fixture/objects", dir());
    view.both("fixture/refs", dir());
    view.change(at, file(text));
    return risks(view);
  };
  CHECK(bare("fixture/config", "[core] fsmonitor = x\n") ==
        Codes{"danger git-config"});
  CHECK(bare("fixture/config", "[core] bare = true\n") ==
        Codes{"warn git-config"});
  CHECK(has(bare("fixture/hooks/post-update", "x"), "danger git-hook"));
  CHECK(bare("other/config", "[core] fsmonitor = x\n").empty());
  CHECK(bare("fixture/config.worktree", "[core] fsmonitor = x\n") ==
        Codes{"danger git-config"});
}

TEST_CASE("a repository made of links or elsewhere is one as well") {
  const std::string config = "[core] fsmonitor = x\n";
  auto with = [&](const std::string& at, auto&& parts) {
    MemoryView view;
    parts(view, at);
    view.change(at + "config", file(config));
    return risks(view);
  };
  auto linked_head = [](MemoryView& view, const std::string& at) {
    view.both(at + "HEAD", symlink("refs/heads/main"));
    view.both(at + "objects", dir());
    view.both(at + "refs", dir());
  };
  auto linked_dirs = [](MemoryView& view, const std::string& at) {
    view.both(at + "HEAD", file("ref: refs/heads/main\n"));
    view.both(at + "objects", symlink("../o"));
    view.both(at + "refs", symlink("../r"));
  };
  auto elsewhere = [](MemoryView& view, const std::string& at) {
    view.both(at + "HEAD", file("ref: refs/heads/main\n"));
    view.both(at + "commondir", file("../x\n"));
  };
  for (const std::string at : {"", "d/"}) {
    INFO("at '" << at << "'");
    CHECK(with(at, linked_head) == Codes{"danger git-config"});
    CHECK(with(at, linked_dirs) == Codes{"danger git-config"});
    CHECK(with(at, elsewhere) == Codes{"danger git-config"});
    // git takes the ".git" that stands there.
    CHECK(with(at, [&](MemoryView& view, const std::string& top) {
            linked_head(view, top);
            view.both(top + ".git", dir());
          }).empty());
  }
}

TEST_CASE("what makes a repository of a directory with a config is a danger") {
  for (const char* last : {"HEAD", "objects", "refs"}) {
    INFO(last);
    MemoryView view;
    view.both("d/config", file("[core] fsmonitor = x\n"));
    for (const char* name : {"HEAD", "objects", "refs"}) {
      auto node = symlink("../x");
      if (std::string(name) == last)
        view.change("d/" + std::string(name), node);
      else
        view.both("d/" + std::string(name), node);
    }
    CHECK(has(risks(view), "danger git-config"));
  }
  MemoryView view;
  view.change("d/HEAD", file("x\n"));
  CHECK(risks(view).empty());
}

TEST_CASE("a change of stoplog's own policy is a danger, a new one a warning") {
  CHECK(added(".stoplog.toml", "[files]\n") == Codes{"warn stoplog-policy"});
  CHECK(has(modified("[files]\nhide=['a']\n", "\n", ".stoplog.toml"),
            "danger stoplog-policy"));
  MemoryView gone;
  gone.base[".stoplog.toml"] = file("[files]\n");
  gone.change(".stoplog.toml", std::nullopt);
  CHECK(has(risks(gone), "danger stoplog-policy"));
  CHECK(added("a/.stoplog.toml", "[files]\n").empty());
}

TEST_CASE("work trees and submodules are obeyed as any other repository") {
  CHECK(has(added(".git/modules/a/hooks/post-checkout"), "danger git-hook"));
  CHECK(has(added(".git/modules/a/b/config", "[core] pager = x\n"),
            "danger git-config"));
  CHECK(has(added(".git/modules/a/info/attributes", "* filter=x\n"),
            "danger git-info"));
  CHECK(has(added(".git/worktrees/w/config.worktree", "[core] pager = x\n"),
            "danger git-config"));
  CHECK(has(added(".git/worktrees/w/commondir"), "danger git-info"));
  CHECK(
      has(added(".git/modules/a/objects/info/alternates"), "danger git-info"));
}

TEST_CASE("the policy holds for what moved and for git's own directory") {
  DiffOptions options;
  options.rules = {{.glob = "secrets/**",
                    .level = Level::kDanger,
                    .code = "policy",
                    .message = ""}};
  MemoryView view;
  view.base["secrets"] = dir();
  view.base["secrets/a"] = file("x");
  view.draft["public/a"] = file("x");
  view.change("public", dir(), "secrets");
  CHECK(risks(view, options) == Codes{"danger policy"});
  // Copied and deleted is a move, too.
  std::string text(100, 'x');
  MemoryView copied;
  copied.base["secrets/a"] = file(text);
  copied.change("secrets/a", std::nullopt);
  copied.change("public/a", file(text));
  CHECK(has(risks(copied, options), "danger policy"));
  MemoryView git;
  git.both(".git", dir());
  git.both(".git/HEAD", file("ref: refs/heads/main\n"));
  git.change(".git/refs/heads/x", file(std::string(40, 'a') + "\n"));
  options.rules[0].glob = ".git/**";
  CHECK(has(risks(git, options), "danger policy"));
}
