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
