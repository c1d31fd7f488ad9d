// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "draft/workspace.h"

#include "fixture.h"

using namespace stoplog;
using namespace stoplog::draft;

TEST_CASE("the workspace is the git work tree around the current directory") {
  Place place;
  place.make("ws/.git");
  place.make("ws/src");
  place.make("plain");
  auto inside = find_workspace({.given = {}, .cwd = place.top + "/ws/src"});
  REQUIRE(inside);
  CHECK(inside->path == place.top + "/ws");
  CHECK(inside->git);
  CHECK(inside->cwd->str() == "src");
  auto plain = find_workspace({.given = {}, .cwd = place.top + "/plain"});
  CHECK(plain->path == place.top + "/plain");
  CHECK_FALSE(plain->git);
  auto given = find_workspace({.given = "../ws", .cwd = place.top + "/plain"});
  CHECK(given->path == place.top + "/ws");
  CHECK_FALSE(given->cwd);
  CHECK_FALSE(find_workspace({.given = "nowhere", .cwd = place.top}));
}

TEST_CASE("a path argument is relative to where the user stands") {
  Place place;
  place.make("ws/src");
  auto ws =
      find_workspace({.given = place.top + "/ws", .cwd = place.top + "/ws/src"})
          .value();
  CHECK(workspace_path(ws, "a.c")->str() == "src/a.c");
  CHECK(workspace_path(ws, "../b/./c/")->str() == "b/c");
  CHECK(workspace_path(ws, "..")->is_root());
  CHECK(workspace_path(ws, ".")->str() == "src");
  CHECK(workspace_path(ws, place.top + "/ws/x")->str() == "x");
  CHECK_FALSE(workspace_path(ws, "../../x"));
  CHECK_FALSE(workspace_path(ws, "/etc/passwd"));
  CHECK_FALSE(workspace_path(ws, place.top + "/wsx"));
  // By another name of the top; what a link in the workspace names is not it.
  auto link = [&](const std::string& target, const std::string& name) {
    REQUIRE(::symlink(target.c_str(), (place.top + name).c_str()) == 0);
  };
  link("ws", "/alias");
  link("..", "/ws/src/up");
  CHECK(workspace_path(ws, place.top + "/alias")->is_root());
  CHECK(workspace_path(ws, place.top + "/alias/b/none")->str() == "b/none");
  CHECK(workspace_path(ws, place.top + "/alias/src/up/x")->str() == "src/up/x");
  CHECK_FALSE(workspace_path(ws, place.top + "/alias/../x"));
}

TEST_CASE("a home directory is no workspace unless forced") {
  Place place;
  std::string old = ::getenv("HOME") != nullptr ? ::getenv("HOME") : "";
  ::setenv("HOME", (place.top + "/ws").c_str(), 1);
  Workspace ws = place.workspace();
  auto refused = check_workspace(ws, place.layout, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == Code::kRefused);
  CHECK_FALSE(refused.error().hint().empty());
  CHECK(check_workspace(ws, place.layout, {.force = true, .other = {}}));
  // The state inside is refused whatever is asked.
  place.layout.state = place.top + "/ws/state";
  CHECK_FALSE(check_workspace(ws, place.layout, {.force = true, .other = {}}));
  place.layout.state = place.top + "/state";
  place.make("ws/run");
  place.layout.runtime = place.top + "/ws/run/stoplog";
  auto shown = check_workspace(ws, place.layout, {.force = true, .other = {}});
  REQUIRE_FALSE(shown);
  CHECK(shown.error().hint().find("XDG_RUNTIME_DIR") != std::string::npos);
  place.make("run");
  place.layout.runtime = place.top + "/run/stoplog";
  CHECK(check_workspace(ws, place.layout, {.force = true, .other = {}}));
  ::setenv("HOME", old.c_str(), 1);
}

TEST_CASE("nested workspaces are named") {
  CHECK(overlaps("/a/b", "/a"));
  CHECK(overlaps("/a", "/a/b"));
  CHECK(overlaps("/a", "/a"));
  CHECK(overlaps("/", "/a"));
  CHECK_FALSE(overlaps("/a/b", "/a/bc"));
  Place place;
  place.make("ws/inner");
  Store store = place.store();
  REQUIRE(store.create({.workspace = place.workspace("ws")}));
  auto other = store.overlapping(place.workspace("ws/inner")).value();
  REQUIRE(other);
  CHECK(other->workspace == place.top + "/ws");
  auto refused = check_workspace(place.workspace("ws/inner"), place.layout,
                                 {.other = other->workspace});
  CHECK_FALSE(refused);
}
