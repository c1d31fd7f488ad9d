// SPDX-License-Identifier: Apache-2.0
// What people do all day carries no danger; what attackers do carries one.
// If everything were a danger, nobody would look.
#include "catch_shim.h"
#include "diff/change_set.h"
#include "memory_view.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

void check_no_danger(const MemoryView& view) {
  auto set = build_change_set(view, {});
  REQUIRE(set);
  CHECK_FALSE(set->changes.empty());
  for (const Change& change : set->changes) {
    std::string risks;
    for (const Risk& risk : change.risks) risks += risk.code + " ";
    INFO(change.path.str() << ": " << risks);
    CHECK_FALSE(change.is_danger());
  }
}

std::string lines(const std::string& line, int count) {
  std::string out;
  for (int i = 0; i < count; i++) out += line + std::to_string(i) + "\n";
  return out;
}

}  // namespace

TEST_CASE("a feature in a C project is no danger") {
  MemoryView view;
  view.base["src/parse.c"] = file(lines("int token_", 200));
  view.change("src/parse.c", file(lines("int token_", 120) +
                                  "int token = next_token(lexer);\n" +
                                  lines("int word_", 80)));
  view.change("src/lexer.c", file("#include \"lexer.h\"\nint lex;\n"));
  view.change("src/lexer.h", file("#pragma once\nextern int lex;\n"));
  view.base["Makefile"] = file("all:\n\tcc -o a src/parse.c\n");
  view.change("Makefile",
              file("all:\n\tcc -o a src/parse.c src/lexer.c\n\ntest: all\n"));
  view.change("tests/run.sh", file("#!/bin/sh\nexec ./a\n", 0755));
  view.base["README.md"] = file("# parse\n\nUsage\n");
  view.change("README.md",
              file("# parse\n\nUsage: set `PASSWORD` in the environment\n"));
  check_no_danger(view);
}

TEST_CASE("dependencies and tests of a JavaScript project are no danger") {
  MemoryView view;
  view.base["package.json"] =
      file(R"({"name":"x","scripts":{"test":"jest","build":"tsc"},)"
           R"("dependencies":{"react":"^17.0.0"}})");
  view.change("package.json",
              file(R"({"name":"x","scripts":{"test":"jest","build":"tsc",)"
                   R"("lint":"eslint ."},"dependencies":{"react":"^18.2.0",)"
                   R"("zod":"^3.0.0"}})"));
  view.base["package-lock.json"] = file("{\"lockfileVersion\":3}\n");
  view.change(
      "package-lock.json",
      file("{\"lockfileVersion\":3,\"packages\":{\"node_modules/zod\":{"
           "\"resolved\":\"https://registry.npmjs.org/zod/-/zod-3.0.0.tgz\","
           "\"integrity\":\"sha512-m46AKbrzKVzOzs/DZgVnG5H55N1sv1M8qZU3A8RIKb"
           "s3mrACDNeIOeilDymVb2HdmP8uwshOCF4uJ8uM9rCqJw==\"}}}\n"));
  view.change("src/auth.test.ts",
              file("const token = 'test-token';\nconst password = 'hunter2';\n"
                   "expect(login({ user: 'a', password })).toBe(token);\n"));
  view.change("src/auth.ts",
              file("export const token = process.env.API_TOKEN ?? '';\n"
                   "const apiKey: string = config.get('api.key');\n"));
  view.change("jest.config.js", file("module.exports = {};\n"));
  view.change("public/logo.png", file(std::string("\x89PNG\0\0", 6)));
  check_no_danger(view);
}

TEST_CASE("a Python refactoring with renames is no danger") {
  MemoryView view;
  view.base["app"] = dir();
  view.base["app/models.py"] = file(lines("class Model", 60));
  view.base["app/util.py"] = file(lines("def util", 30));
  view.draft["service/util.py"] = view.base["app/util.py"];
  view.change("service", dir(), "app");
  view.change("service/models.py", file(lines("class Model", 61)),
              "app/models.py");
  view.base["pyproject.toml"] = file("[project]\nname = \"app\"\n");
  view.change("pyproject.toml",
              file("[project]\nname = \"service\"\ndependencies = [\"a\"]\n"));
  view.change("tests/conftest.py", file("import pytest\n"));
  view.change("tests/data/users.json",
              file(R"([{"id":"5f2b8c1e-9a7d-4e3f-8b6c-1d2e3f4a5b6c"}])"));
  view.change("docs/r\xc3\xa9sum\xc3\xa9.md",
              file("caf\xc3\xa9 \xe2\x9c\x85\n"));
  check_no_danger(view);
}

TEST_CASE("a commit made by the agent and a new license are no danger") {
  MemoryView view;
  view.base["LICENSE"] = file("old terms\n");
  view.change("LICENSE", file("new terms\n"));
  view.change("CHANGELOG.md", file("## 1.2.0\n- a git hook example\n"));
  view.change("docs/ci.md", file("Put this into .github/workflows/x.yml\n"));
  view.change("examples/keys.md",
              file("-----BEGIN PRIVATE KEY-----\n(your key here)\n"));
  check_no_danger(view);
}

TEST_CASE("a feature in a C++ project with CMake is no danger") {
  MemoryView view;
  std::string cmake =
      "cmake_minimum_required(VERSION 3.25)\nproject(net CXX)\n"
      "add_library(net src/socket.cc)\n";
  view.base["CMakeLists.txt"] = file(cmake);
  view.change("CMakeLists.txt",
              file(cmake + "target_sources(net PRIVATE src/retry.cc)\n"
                           "find_package(OpenSSL REQUIRED)\n"));
  view.change("cmake/FindThing.cmake", file("find_path(THING_DIR thing.h)\n"));
  view.change("src/retry.cc",
              file("#include \"net/retry.h\"\n"
                   "constexpr char kTokenHeader[] = \"X-Auth-Token\";\n"
                   "const std::string secret_name = name_of(secret);\n"
                   "auto token = parse_token(\"Bearer \" + raw);\n"));
  view.change("include/net/retry.h", file("#pragma once\nint retry(int);\n"));
  view.change("tests/retry_test.cc",
              file("TEST_CASE(\"x\") { auto password = \"hunter2\"; }\n"));
  view.base["src/old_retry.cc"] = file(lines("int old_", 40));
  view.change("src/backoff.cc", view.base["src/old_retry.cc"],
              "src/old_retry.cc");
  view.change(".clang-format", file("BasedOnStyle: Google\n"));
  view.change("scripts/build", file("#!/bin/sh\ncmake --build b\n", 0755));
  check_no_danger(view);
}

TEST_CASE("a new version of dependencies is no danger") {
  MemoryView view;
  auto bump = [&](const char* name, const char* before, const char* after) {
    view.base[name] = file(before);
    view.change(name, file(after));
  };
  bump(
      "Cargo.toml", "[dependencies]\nserde = \"1.0.1\"\n",
      "[dependencies]\nserde = { version = \"1.0.2\", features = [\"rc\"] }\n");
  bump(
      "Cargo.lock",
      "name = \"serde\"\nchecksum = \"a7e1bd5b2a0ac0a8c9dd5e1d4b0c7d0d2f9\"\n",
      "name = \"serde\"\nchecksum = "
      "\"63261df402c67811e9ac6def069e4786148c4563f4b50fd4bf30aa370d626b02\"\n");
  bump("go.mod", "require golang.org/x/net v0.1.0\n",
       "require golang.org/x/net v0.2.0\n");
  bump("go.sum", "",
       "golang.org/x/net v0.2.0 "
       "h1:sZfSu1wtKLGlWI4ZZayP0ck9Y73K1ynO6gqzTdBVdPU=\n");
  bump("requirements.txt", "django==4.1\n",
       "django==4.2 --hash=sha256:7ee17d9d6c2dbf4c1a2f3cbbcd4c0d93a1ae06c0\n");
  bump("composer.json", R"({"require":{"a/b":"1"}})",
       R"({"require":{"a/b":"2"}})");
  bump("gradle/wrapper/gradle-wrapper.properties", "v=8.1\n", "v=8.2\n");
  bump("Gemfile.lock", "rails (7.0)\n", "rails (7.1)\n");
  check_no_danger(view);
}

TEST_CASE("documentation and tests alone are no danger") {
  MemoryView view;
  view.change("docs/security.md",
              file("Tokens begin with `ghp_` and keys with `AKIA`.\n"
                   "Set `api_key = \"<your key>\"`, or "
                   "`password: ${DB_PASSWORD}`.\n"));
  view.change("docs/setup.md",
              file("```sh\ncurl https://example.org/i.sh | sh\n"
                   "export TOKEN=$(pass show token)\n```\n"));
  view.change("docs/img/a.svg", file("<svg><path d=\"M0 0\"/></svg>\n"));
  view.change("docs/CNAME", symlink("../CNAME"));
  view.change("tests/test_login.py",
              file("PASSWORD = 'correct horse battery staple'\n"
                   "API_KEY = 'test-key-00000000000000000000'\n"
                   "def test_login(): assert login(PASSWORD)\n"));
  view.change("tests/__snapshots__/x.snap",
              file("// Jest Snapshot v1\nexports[`a 1`] = `<div/>`;\n"));
  view.change("tests/fixtures/empty", file(""));
  view.change("spec/models/user_spec.rb",
              file("let(:token) { SecureRandom.hex(16) }\n"));
  check_no_danger(view);
}
