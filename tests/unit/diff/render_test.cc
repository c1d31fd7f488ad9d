// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "catch_shim.h"
#include "diff/patch.h"
#include "diff/render.h"
#include "memory_view.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

ChangeSet build(const MemoryView& view) {
  auto set = build_change_set(view, {});
  REQUIRE(set);
  return std::move(*set);
}

template <typename Render>
std::string output(Render render) {
  std::string out;
  render([&](std::string_view s) { out += s; });
  return out;
}

RenderOptions on_terminal() {
  RenderOptions options;
  options.terminal = true;
  return options;
}

// Nothing that moves a cursor; newlines between lines aside.
bool is_calm(std::string_view text) {
  for (size_t i = 0; i < text.size(); i++) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n') || c == 0x7f) return false;
    if (c == 0xc2 && i + 1 < text.size() &&
        static_cast<unsigned char>(text[i + 1]) < 0xa0)
      return false;
  }
  return true;
}

MemoryView hostile() {
  MemoryView view;
  view.change("a\x1b[2K\x1b[1A\rsafe.txt", file("\x1b]0;owned\x07\n"));
  view.change("b\nc", file("line\rover\n"));
  view.change("\xc2\x9bx", file("\xc2\x9b"
                                "2J\n"));
  view.change("\xff\xfe", file("x\n"));
  view.change("link", symlink("/etc/\x1b[31mred"));
  return view;
}

}  // namespace

TEST_CASE("nothing from a tree reaches the terminal unescaped") {
  MemoryView view = hostile();
  ChangeSet set = build(view);
  CHECK(is_calm(output(
      [&](const Sink& sink) { render_list(set, on_terminal(), sink); })));
  CHECK(is_calm(output([&](const Sink& sink) { render_list(set, {}, sink); })));
  CHECK(is_calm(output(
      [&](const Sink& sink) { render_summary(set, on_terminal(), sink); })));
  CHECK(is_calm(output(
      [&](const Sink& sink) { render_stat(set, on_terminal(), sink); })));
  CHECK(is_calm(output([&](const Sink& sink) {
    REQUIRE(render_terminal(view, set, on_terminal(), sink));
  })));
}

TEST_CASE("the list has one line a change with dangers first") {
  MemoryView view;
  view.change("a.c", file("int a;\n"));
  view.base["gone"] = file("my notes\n");
  view.change("gone", std::nullopt);
  view.base["m"] = file("x");
  view.change("m", file("x", 0755));
  ChangeSet set = build(view);
  std::string list =
      output([&](const Sink& sink) { render_list(set, {}, sink); });
  CHECK(list.starts_with("D  gone"));
  CHECK(list.find("danger deletion") != std::string::npos);
  CHECK(list.find("A  a.c  +1  @1\n") != std::string::npos);
  CHECK(list.find("mode 100644 → 100755") != std::string::npos);
  CHECK(std::count(list.begin(), list.end(), '\n') == 4);
  CHECK(list.find("3 changes (1 added, 1 modified, 1 deleted), 1 danger\n") !=
        std::string::npos);
}

TEST_CASE("a line with many risks tells the gravest and how many more") {
  MemoryView view;
  std::string scripts;
  for (const char* name : {"preinstall", "install", "postinstall", "prepare",
                           "preprepare", "postprepare", "test"})
    scripts += fmt::format("{}\"{}\":\"x\"", scripts.empty() ? "" : ",", name);
  view.change("package.json", file("{\"scripts\":{" + scripts + "}}", 0755));
  ChangeSet set = build(view);
  REQUIRE(set.changes[0].risks.size() == 8);
  std::string list =
      output([&](const Sink& sink) { render_list(set, {}, sink); });
  INFO(list);
  CHECK(list.find("  and 4 more, 2 of them dangers\n") != std::string::npos);
  size_t told = 0;
  for (size_t at = 0; (at = list.find("danger package", at)) != list.npos; ++at)
    ++told;
  CHECK(told == 4);
}

TEST_CASE("an empty change set is said in words") {
  MemoryView view;
  ChangeSet set = build(view);
  CHECK(output([&](const Sink& sink) { render_list(set, {}, sink); }) ==
        "no changes\n");
}

TEST_CASE("the summary names dangers and deletions and counts the rest") {
  MemoryView view;
  for (int i = 0; i < 500; i++) {
    std::string name = "gone" + std::to_string(i);
    view.base[name] = file("x" + name);
    view.change(name, std::nullopt);
    view.change("new" + std::to_string(i), file("y"));
  }
  view.change(".envrc", file("x"));
  ChangeSet set = build(view);
  std::string text =
      output([&](const Sink& sink) { render_summary(set, {}, sink); });
  CHECK(std::count(text.begin(), text.end(), '\n') == 22);
  CHECK(text.find(".envrc") < text.find("gone0"));
  CHECK(text.ends_with(
      "\n  and 481 more, 481 of them dangers: `stoplog status`\n"));
  for (int i = 0; i < 30; i++)
    view.change(std::to_string(i) + "/.envrc", file("x"));
  set = build(view);
  text = output([&](const Sink& sink) { render_summary(set, {}, sink); });
  CHECK(
      text.ends_with("and 511 more, 511 of them dangers: `stoplog status`\n"));
  // The list itself leaves nothing out.
  text = output([&](const Sink& sink) { render_list(set, {}, sink); });
  CHECK(std::count(text.begin(), text.end(), '\n') == 1032);
}

TEST_CASE("name-status is git's format and opens moved directories") {
  MemoryView view;
  view.base["old"] = dir();
  view.base["old/f"] = file("f\n");
  view.draft["new/f"] = view.base["old/f"];
  view.change("new", dir(), "old");
  view.base["r"] = file("one\ntwo\nthree\nfour\n");
  view.change("s", file("one\ntwo\nthree\nFOUR\n"), "r");
  view.change("tab\t", file("x"));
  ChangeSet set = build(view);
  std::string lines = output([&](const Sink& sink) {
    REQUIRE(render_name_status(view, set, {}, false, sink));
  });
  CHECK(lines == "R100\told/f\tnew/f\nR073\tr\ts\nA\t\"tab\\t\"\n");
  std::string nuls = output([&](const Sink& sink) {
    REQUIRE(render_name_status(view, set, {}, true, sink));
  });
  CHECK(nuls.find(std::string("A\0tab\t\0", 7)) != std::string::npos);
}

TEST_CASE("stat counts lines and names binaries") {
  MemoryView view;
  view.base["a"] = file("1\n2\n3\n");
  view.change("a", file("1\nx\ny\n"));
  view.change("b", file(std::string("\0\1", 2)));
  ChangeSet set = build(view);
  std::string text =
      output([&](const Sink& sink) { render_stat(set, {}, sink); });
  CHECK(text.find(" a | 4 ++--\n") != std::string::npos);
  CHECK(text.find(" b | Bin 0 -> 2 bytes\n") != std::string::npos);
  CHECK(text.find(" 2 files changed, 2 insertions(+), 2 deletions(-)\n") !=
        std::string::npos);
}

TEST_CASE("stat counts a link as a line as git does") {
  MemoryView view;
  view.change("new", symlink("a"));
  view.base["old"] = symlink("a");
  view.change("old", symlink("b"));
  auto set = build_change_set(view, {});
  REQUIRE(set);
  std::string out;
  render_stat(*set, {}, [&](std::string_view s) { out += s; });
  CHECK(out ==
        " new | 1 +\n old | 2 +-\n"
        " 2 files changed, 2 insertions(+), 1 deletion(-)\n");
}

TEST_CASE("a bar is never wider than the screen") {
  MemoryView view;
  std::string many;
  for (int i = 0; i < 5000; i++) many += std::to_string(i) + "\n";
  view.change("many", file(many));
  view.change("one", file("1\n"));
  ChangeSet set = build(view);
  RenderOptions narrow;
  narrow.width = 60;
  std::string text =
      output([&](const Sink& sink) { render_stat(set, narrow, sink); });
  for (std::string_view line : split(text, '\n')) CHECK(line.size() <= 60);
  CHECK(text.find("one  |    1 +\n") != std::string::npos);
}

TEST_CASE("the JSON has the keys of the contract") {
  MemoryView view = hostile();
  view.base["m"] = file("x");
  view.change("m", file("y", 0755));
  view.raw.back().drift = "modified in the real tree";
  ChangeSet set = build(view);
  JsonOptions options;
  options.draft = "d1";
  options.workspace = "/w";
  std::string text =
      output([&](const Sink& sink) { render_json(set, options, sink); });
  auto json = nlohmann::json::parse(text);
  CHECK(json["version"] == 1);
  CHECK(json["draft"] == "d1");
  CHECK(json["stale"] == false);
  CHECK(json["digest"].get<std::string>().starts_with("sha256:"));
  CHECK(json["groups"].is_array());
  CHECK(json["changes"].size() == 6);
  bool bytes = false, modified = false;
  for (const auto& change : json["changes"]) {
    for (auto key :
         {"path", "kind", "from", "type", "old_mode", "new_mode", "old_hash",
          "new_hash", "size", "binary", "lines_added", "lines_deleted",
          "command", "ignored", "drift", "decision", "risks"})
      CHECK(change.contains(key));
    CHECK(change["decision"] == "none");
    bytes |= change.contains("path_bytes") && change["path_bytes"] == "//4=";
    if (change["path"] != "m") continue;
    modified = true;
    CHECK(change["old_mode"] == "100644");
    CHECK(change["new_mode"] == "100755");
    CHECK(change["old_hash"].get<std::string>().starts_with("xxh3:"));
    CHECK(change["drift"] == "modified in the real tree");
    CHECK(change["lines_added"] == 1);
  }
  CHECK(bytes);
  CHECK(modified);
}

TEST_CASE("paths select what lies beneath them") {
  MemoryView view;
  view.change("src/a", file("x"));
  view.change("src2/b", file("x"));
  ChangeSet set = build(view);
  RenderOptions options;
  options.paths = {path("src")};
  std::string text = output([&](const Sink& sink) {
    REQUIRE(render_name_status(view, set, options, false, sink));
  });
  CHECK(text == "A\tsrc/a\n");
}

TEST_CASE("colour and tabs and wide characters on the terminal") {
  MemoryView view;
  view.base["t"] = file("a\tb\n");
  view.change("t", file("\u65e5\tb\n"));
  ChangeSet set = build(view);
  RenderOptions options = on_terminal();
  options.color = true;
  std::string text = output([&](const Sink& sink) {
    REQUIRE(render_terminal(view, set, options, sink));
  });
  CHECK(text.find("\x1b[31m-a       b\x1b[m\n") != std::string::npos);
  CHECK(text.find("\x1b[32m+\u65e5      b\x1b[m\n") != std::string::npos);
  CHECK(text.find("\x1b[36m@@ -1 +1 @@\x1b[m\n") != std::string::npos);
}

TEST_CASE("names of blobs are for programs and not for eyes") {
  MemoryView view;
  view.base["a"] = file("old\n");
  view.change("a", file("new\n"));
  auto set = build_change_set(view, {});
  REQUIRE(set);
  std::string seen, exact;
  RenderOptions options;
  options.terminal = true;
  REQUIRE(render_terminal(view, *set, options,
                          [&](std::string_view s) { seen += s; }));
  CHECK(seen ==
        "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n");
  REQUIRE(write_patch(view, *set, {}, [&](std::string_view s) { exact += s; }));
  CHECK(exact.find("\nindex 3367afdbbf91e638efe983616377c60477cc6612..") !=
        std::string::npos);
}

TEST_CASE("JSON to a pipe has no character that a terminal obeys") {
  MemoryView view;
  view.change("a\u009b31m\u202e\u200b\x7f-é", file("x\n"));
  ChangeSet set = build(view);
  std::string text = output([&](const Sink& sink) {
    render_json(set, {.draft = "d", .workspace = "/w\u009b"}, sink);
  });
  CHECK(text.find(R"("a\u009b31m\u202e\u200b\u007f-é")") != std::string::npos);
  CHECK(text.find("\u009b") == std::string::npos);
}

TEST_CASE("content cannot pass for a header on the terminal") {
  MemoryView view;
  view.change("t", file("@@ -1 +1 @@\n--- a/x\ndiff --git a/y b/y\n"));
  ChangeSet set = build(view);
  std::string text = output([&](const Sink& sink) {
    REQUIRE(render_terminal(view, set, on_terminal(), sink));
  });
  CHECK(text.find("\n+@@ -1 +1 @@\n+--- a/x\n+diff --git a/y b/y\n") !=
        std::string::npos);
}
