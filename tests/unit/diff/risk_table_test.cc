// SPDX-License-Identifier: Apache-2.0
// The whole table of rules: for each code something on which it fires and an
// ordinary neighbour on which it does not. A rule without a row here fails.
#include <functional>

#include "catch_shim.h"
#include "diff/risk.h"
#include "fs/acl.h"
#include "risk_codes.h"
#include "two_trees.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

struct Row {
  std::string code;
  std::function<Codes()> fires, quiet;
};

bool has(const Codes& codes, const std::string& code) {
  for (const std::string& one : codes)
    if (one.substr(one.find(' ') + 1) == code) return true;
  return false;
}

Row by_name(std::string code, std::string fires, std::string quiet) {
  return {std::move(code), [fires] { return added(fires); },
          [quiet] { return added(quiet); }};
}

Row by_text(std::string code, std::string fires, std::string quiet,
            std::string name = "t.c") {
  return {std::move(code), [=] { return added(name, fires); },
          [=] { return added(name, quiet); }};
}

Codes package(const std::string& text) {
  return modified(R"({"scripts":{}})", text, "package.json");
}

Codes link(std::string target) {
  MemoryView view;
  view.change("l", symlink(std::move(target)));
  return risks(view, {.real_root = "/nowhere/workspace"});
}

Codes with(const std::function<void(fs::RawChange&)>& twist) {
  MemoryView view;
  view.base["f"] = file("x");
  view.change("f", file("y"));
  twist(view.raw[0]);
  return risks(view);
}

Codes attribute(std::string_view name, const std::string& value) {
  return with(
      [&](fs::RawChange& r) { r.after->xattrs[std::string(name)] = value; });
}

// A list that gives another user these permissions.
std::string acl_of(uint16_t perm) {
  return fs::encode_acl({{0x01, 7, UINT32_MAX},
                         {0x02, perm, 4711},
                         {0x04, 5, UINT32_MAX},
                         {0x10, 7, UINT32_MAX},
                         {0x20, 5, UINT32_MAX}});
}

Codes large(uint64_t size) {
  MemoryView view;
  view.change("big", file(std::make_shared<RepeatedContent>(size, 'a')));
  return risks(view);
}

Codes deleted(const std::string& text) {
  MemoryView view;
  view.base["notes"] = file(text);
  view.change("notes", std::nullopt);
  return risks(view);
}

Codes special(fs::Type type) {
  MemoryView view;
  view.change("f", type == fs::Type::kFile ? file("x") : node(type, 0644));
  return risks(view);
}

Codes git_part(fs::NodeState state) {
  MemoryView view;
  view.both(".git", dir());
  view.both(".git/HEAD", file("ref: refs/heads/main\n"));
  view.change(".git/ORIG_HEAD", std::move(state));
  return risks(view);
}

Codes deep(uint64_t names) {
  MemoryView view;
  view.change("d", node(fs::Type::kDir, 0755));
  view.raw[0].too_deep = names;
  return risks(view);
}

Codes beside(const std::string& other) {
  MemoryView view;
  view.both(other, file("x"));
  view.change("README.md", file("y"));
  return risks(view);
}

// What git ignores is known from a real repository alone.
Codes deleted_in_repository(const std::string& name) {
  TwoTrees trees;
  REQUIRE(TwoTrees::run("git init -q '" + trees.base() + "'") == 0);
  TwoTrees::write(trees.base() + "/.gitignore", "node_modules/\nmine/\n");
  TwoTrees::write(trees.base() + "/" + name, "text\n");
  trees.copy_base();
  std::filesystem::remove(trees.draft() + "/" + name);
  auto view = trees.view();
  auto set = build_change_set(*view, {.real_root = trees.base()});
  REQUIRE(set);
  Codes out;
  for (const Change& change : set->changes)
    for (const Risk& risk : change.risks)
      out.insert(std::string(name_of(risk.level)) + " " + risk.code);
  return out;
}

Codes asked(const std::string& name) {
  MemoryView view;
  view.change(name, file("x"));
  return risks(view, {.rules = {{.glob = "infra/**",
                                 .level = Level::kDanger,
                                 .code = "policy",
                                 .message = ""}}});
}

std::vector<Row> name_rows() {
  return {
      by_name("git-hook", ".git/hooks/pre-push", "hooks/pre-push"),
      by_name("git-config", ".gitconfig", "gitconfig"),
      by_name("git-info", ".git/info/attributes", "info/attributes"),
      by_name("direnv", ".envrc", "envrc"),
      by_name("editor-task", ".vscode/tasks.json", "vscode/tasks.json"),
      by_name("agent-config", ".mcp.json", "mcp.md"),
      by_name("ci", ".github/workflows/x.yml", ".github/x.yml"),
      by_name("shell-startup", ".profile", "profile"),
      by_name("git-attributes", ".gitattributes", "gitattributes"),
      by_name("commit-hook", "lefthook.yml", "lefthook.md"),
      by_name("agent-instructions", "AGENTS.md", "AGENTS.txt"),
      by_name("package-config", ".npmrc", "npmrc"),
      by_name("build-input", "Makefile", "Makefile.md"),
      by_name("test-input", "conftest.py", "test_conf.py"),
      by_name("interpreter-startup", "sitecustomize.py", "customize.py"),
      by_name("path-shadow", "node_modules/.bin/git", "bin/git"),
      by_name("lock-file", "Cargo.lock", "a.lock"),
      by_name("env-file", ".env", "env"),
      by_name("gitignore", ".gitignore", "gitignore"),
  };
}

std::vector<Row> node_rows() {
  auto mode = [](mode_t m) { return added("f", "x", m); };
  const std::string elf(
      "\x7f"
      "ELF\x02\x01\x01\0\0\0\0",
      11);
  const std::string bytes("a\0b", 3);
  return {
      {"deletion", [] { return deleted("mine\n"); },
       [] { return deleted(""); }},
      {"deletion-generated",
       [] { return deleted_in_repository("node_modules/x.js"); },
       [] { return deleted_in_repository("mine/x.js"); }},
      {"truncation", [] { return modified(std::string(100, 'x'), ""); },
       [] { return modified("x\n", ""); }},
      {"setuid", [=] { return mode(04755); }, [=] { return mode(0755); }},
      {"file-capability",
       [] {
         return with([](fs::RawChange& raw) {
           raw.after->xattrs["security.capability"] = "\x01";
         });
       },
       [] {
         return with(
             [](fs::RawChange& raw) { raw.after->xattrs["user.x"] = "1"; });
       }},
      {"symlink-outside", [] { return link("../x"); },
       [] { return link("x"); }},
      {"symlink-package", [] { return link("node_modules/a"); },
       [] { return link("packages/a"); }},
      {"symlink-system", [] { return link("/usr/bin/python3"); },
       [] { return link("/nowhere/workspace/x"); }},
      {"special-file", [] { return special(fs::Type::kFifo); },
       [] { return special(fs::Type::kFile); }},
      by_name("git-link", ".git", "git"),
      {"git-part", [] { return git_part(symlink("../x")); },
       [] { return git_part(file("x")); }},
      {"executable", [=] { return mode(0755); }, [=] { return mode(0644); }},
      by_text("program", elf, "text\n", "tool"),
      by_text("binary", bytes, "text\n", "data.bin"),
      by_text("media", bytes, "text\n", "logo.png"),
      {"large-file", [] { return large(11 << 20); },
       [] { return large(1 << 10); }},
      {"locked", [=] { return mode(0); }, [=] { return mode(0400); }},
      {"world-writable", [=] { return mode(0666); },
       [=] { return mode(0644); }},
      {"owner", [] { return with([](fs::RawChange& r) { r.after->uid = 5; }); },
       [] { return with([](fs::RawChange&) {}); }},
      {"too-deep", [] { return deep(3); }, [] { return deep(0); }},
      {"acl-write", [] { return attribute(fs::kAclAccess, acl_of(7)); },
       [] { return attribute(fs::kAclAccess, acl_of(5)); }},
      {"acl", [] { return attribute(fs::kAclAccess, acl_of(5)); },
       [] { return attribute("user.x", "y"); }},
      {"security-attribute", [] { return attribute("security.ima", "x"); },
       [] { return attribute("user.ima", "x"); }},
      {"attribute", [] { return attribute("user.x", "y"); },
       [] { return with([](fs::RawChange&) {}); }},
      {"hardlink-detached",
       [] { return with([](fs::RawChange& r) { r.detaches_links = true; }); },
       [] { return with([](fs::RawChange&) {}); }},
  };
}

std::vector<Row> text_rows() {
  return {
      by_text("secret", "password = 'kJ8#mQ2zX9pL4vR7wT1y'\n",
              "password = input()\n", "c.py"),
      {"package-hook",
       [] { return package(R"({"scripts":{"postinstall":"x"}})"); },
       [] { return package(R"({"scripts":{"test":"x"}})"); }},
      {"package-script", [] { return package(R"({"scripts":{"test":"x"}})"); },
       [] { return package(R"({"scripts":{},"dependencies":{"a":"1"}})"); }},
      by_text("bidi", "if (admin\u202E) {}\n", "if (admin) {}\n"),
      by_text("invisible", "/* \u200B */\n", "/* */\n"),
      by_text("mixed-script", "\u0430dmin = 1;\n", "admin = 1;\n"),
      by_text("carriage-return", "rm -rf /\rsafe\n", "one\r\ntwo\r\n"),
      by_text("control-character", "echo \x1b[2K\n", "echo\ttab\n"),
      by_text("minified", std::string(6000, 'x'), "let x = 1;\n", "a.min.js"),
      by_text("generated", "// Code generated by x. DO NOT EDIT.\n",
              "// written by hand\n", "x.pb.go"),
      by_name("git-lookalike", ".GIT/hooks/pre-push", ".gitty/pre-push"),
      by_name("odd-name", "x  approved", "x approved"),
      {"case-collision", [] { return beside("Readme.md"); },
       [] { return beside("Other.md"); }},
      {"policy", [] { return asked("infra/main.tf"); },
       [] { return asked("src/a.c"); }},
  };
}

}  // namespace

TEST_CASE("each rule of the table fires and spares its neighbour") {
  std::set<std::string> tried;
  for (const auto& rows : {name_rows(), node_rows(), text_rows()})
    for (const Row& row : rows) {
      CAPTURE(row.code);
      CHECK(has(row.fires(), row.code));
      CHECK_FALSE(has(row.quiet(), row.code));
      tried.insert(row.code);
    }
  for (const RuleInfo& rule : risk_rules()) {
    CAPTURE(rule.code);
    CHECK(tried.contains(std::string(rule.code)));
  }
}

// What editors, agents, shells, hook managers, CI and package managers of the
// day look for; a name that is missing here is one that nobody is told of.
TEST_CASE("what runs unasked is a danger and what runs when asked a warning") {
  for (const char* name : {".claude/settings.json",
                           ".claude-plugin/plugin.json",
                           ".mcp.json",
                           ".cursor/hooks.json",
                           ".codex/config.toml",
                           "opencode.jsonc",
                           ".agents/skills/x/SKILL.md",
                           ".amp/settings.json",
                           ".qwen/x",
                           ".crush.json",
                           ".factory/hooks/x",
                           ".openhands/setup.sh",
                           ".github/hooks/x.json",
                           ".kilocode/mcp.json",
                           ".gemini/settings.json",
                           ".vscode/settings.json",
                           ".helix/languages.toml",
                           ".luarc.json",
                           ".vim/coc-settings.json",
                           ".ycm_extra_conf.py",
                           "rust-analyzer.toml",
                           ".nvim.lua",
                           ".exrc",
                           ".dir-locals.el",
                           ".zed/tasks.json",
                           ".externalToolBuilders/x.launch",
                           ".gitpod.yml",
                           ".lite_project.lua",
                           ".idea/workspace.xml",
                           "sub/.devcontainer/devcontainer.json",
                           ".envrc",
                           ".envrc.local",
                           ".config/mise.toml",
                           "mise/config.toml",
                           ".mise.toml",
                           "mise.dev.toml",
                           ".shadowenv.d/x.lisp",
                           ".autoenv.zsh",
                           ".gitlab/ci/x.yml",
                           "azure-pipelines.yaml",
                           ".builds/x.yml",
                           "Jenkinsfile.release",
                           ".woodpecker.yaml",
                           ".drone.star",
                           ".semaphore/semaphore.yml",
                           ".tekton/x.yaml",
                           "netlify.toml",
                           ".circleci/config.yml",
                           ".bash_aliases",
                           ".zlogout",
                           ".config/environment.d/x.conf",
                           ".kube/config",
                           ".docker/config.json",
                           ".gnupg/gpg-agent.conf",
                           ".config/git/config",
                           ".lessfilter",
                           ".local/share/systemd/user/x.service",
                           ".ssh/rc"}) {
    INFO(name);
    bool danger = false;
    for (const std::string& code : added(name))
      danger = danger || code.starts_with("danger");
    CHECK(danger);
  }
  for (const char* name : {"Makefile",
                           "Makefile.am",
                           "Cargo.toml",
                           "go.mod",
                           "build.rs",
                           "eslint.config.ts",
                           ".eslintrc.json",
                           ".prettierrc",
                           "vite.config.mts",
                           "babel.config.json",
                           "webpack.prod.config.js",
                           "docs/conf.py",
                           "requirements.txt",
                           "requirements-dev.txt",
                           "Pipfile",
                           "tasks.py",
                           "build.gradle.kts",
                           "x/init.gradle",
                           "buildSrc/a.java",
                           ".mvn/extensions.xml",
                           "mvnw.cmd",
                           "tools/bazel",
                           ".bazelrc",
                           "compose.override.yml",
                           "docker-compose.dev.yml",
                           "Dockerfile.dev",
                           "main.tf",
                           "ansible.cfg",
                           ".rubocop.yml",
                           ".flake8",
                           ".luacheckrc",
                           "CMakeUserPresets.json",
                           "x.fsproj",
                           "devbox.json",
                           "flake.nix",
                           ".pnp.cjs",
                           ".pnpmfile.mjs",
                           "pnpm-workspace.yaml",
                           ".npmrc",
                           "lefthook.toml",
                           ".lintstagedrc.mjs",
                           "commitlint.config.ts",
                           "prek.toml",
                           "hk.pkl",
                           ".pdbrc",
                           "jupyter_server_config.py",
                           "prog-gdb.py",
                           ".lldbinit",
                           ".psqlrc",
                           ".tool-versions",
                           "__pycache__/app.cpython-312.pyc",
                           "pylock.toml",
                           ".mocharc.yml"}) {
    INFO(name);
    bool told = false;
    for (const std::string& code : added(name)) {
      CHECK_FALSE(code.starts_with("danger"));
      told = told || code.starts_with("warn");
    }
    CHECK(told);
  }
  for (const char* name :
       {"src/main.c", "README.md", "docs/index.md", "config.js", "a.config",
        "lib/settings.py", "mise.md", "notes.tf.md", "x.rs", "app.ts", "envrc",
        ".envrc.example", "prog.py", "lefthook"}) {
    INFO(name);
    CHECK(added(name).empty());
  }
}

TEST_CASE("what an .envrc loads is a danger, for direnv asks about it alone") {
  auto beside = [](const char* at, const char* envrc) {
    MemoryView view;
    if (envrc != nullptr) view.both(envrc, file("use flake\n"));
    view.base[at] = file("{}\n");
    view.change(at, file("{ shellHook = \"curl x | sh\"; }\n"));
    return has(risks(view), "direnv");
  };
  CHECK(beside("flake.nix", ".envrc"));
  CHECK(beside("flake.lock", ".envrc"));
  CHECK(beside("sub/devbox.json", "sub/.envrc"));
  CHECK(beside(".env", ".envrc"));
  CHECK_FALSE(beside("flake.nix", nullptr));
  CHECK_FALSE(beside("sub/flake.nix", ".envrc"));
  CHECK_FALSE(beside("README.md", ".envrc"));
}

TEST_CASE("a new name that is not what it looks like is told") {
  for (const char* name :
       {".GIT/hooks/post-checkout", ".Git", ".gi\u200ct/hooks/x",
        "git~1/config", "sub/.git ./x", ".git::$INDEX_ALLOCATION/x"}) {
    INFO(name);
    CHECK(added(name).contains("danger git-lookalike"));
  }
  CHECK(has(added("\u0430dmin.py"), "mixed-script"));
  CHECK(has(added("dir\u200b/x.c"), "invisible"));
  CHECK(has(added("photo\u202egpj.exe"), "bidi"));
  CHECK(has(added("a\x1b[2K"), "control-character"));
  CHECK(has(added("a\nb"), "control-character"));
  CHECK(has(added("a\u009b2K"), "control-character"));
  for (const char* name : {" lead", "trail ", "a  danger git-hook", "dir /x",
                           "nbsp\u00a0x", "wide\u3000x"})
    CHECK(has(added(name), "odd-name"));
  for (const char* name : {"r\u00e9sum\u00e9.md", "\u65e5\u672c\u8a9e.txt",
                           ".github/x.md", "a b.txt", "\u0434\u043e\u043a.md",
                           "git.c", ".gitkeep", "emoji\U0001F600"})
    CHECK(added(name).empty());
  // Its directory is the user's own.
  MemoryView view;
  view.both("odd  dir", dir());
  view.change("odd  dir/x.c", file("x"));
  CHECK(risks(view).empty());
}

TEST_CASE("members of package.json by which something runs are told") {
  CHECK(has(package(R"({"scripts":{},"simple-git-hooks":{"pre-commit":"x"}})"),
            "commit-hook"));
  CHECK(has(package(R"({"scripts":{},"eslintConfig":{"parser":"./x.js"}})"),
            "build-input"));
  CHECK(has(package(R"({"scripts":{},"jest":{"globalSetup":"./x.js"}})"),
            "test-input"));
  for (const char* version : {"git+ssh://git@x/y.git", "github:x/y", "x/y",
                              "https://x/y.tgz", "file:./evil", "link:../x"}) {
    INFO(version);
    CHECK(
        has(package(fmt::format(
                R"({{"scripts":{{}},"dependencies":{{"a":"{}"}}}})", version)),
            "package-config"));
  }
  CHECK(has(package(R"({"scripts":{},"packageManager":"pnpm@https://x/y"})"),
            "package-config"));
  CHECK(
      package(R"({"scripts":{},"packageManager":"pnpm@9.1.0","version":"2",)"
              R"("dependencies":{"a":"^1.2","b":"npm:c@2","d":"workspace:*"},)"
              R"("devDependencies":{"e":"catalog:"}})")
          .empty());
}

TEST_CASE("a new directory that its owner cannot enter has a row") {
  auto made = [](mode_t mode) {
    MemoryView view;
    view.change("d", node(fs::Type::kDir, mode));
    view.change("d/f", file("x"));
    return risks(view);
  };
  CHECK(made(0).contains("danger locked"));
  CHECK(made(0311).contains("danger locked"));
  CHECK(made(0555).contains("warn locked"));
  CHECK(made(0700).empty());
  CHECK(made(02755).empty());
}
