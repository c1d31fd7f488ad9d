// SPDX-License-Identifier: Apache-2.0
// The plan as text: what would be done, in which order.
#include "gate/commit_plan.h"

#include <algorithm>

#include "catch_shim.h"
#include "snapshot/content_digest.h"

using namespace stoplog;
using namespace stoplog::gate;

namespace {

RelPath path(std::string_view text) { return *RelPath::parse(text); }

Node file(const std::string& text, mode_t mode = 0644) {
  Node node;
  node.mode = mode;
  node.size = text.size();
  node.sha256 = sha256(text);
  return node;
}
Node dir(mode_t mode = 0755) {
  return Node{.type = fs::Type::kDir, .mode = mode};
}

Item added(std::string_view name, Node node) {
  Item item;
  item.path = path(name);
  if (node.is_file()) item.content = snapshot::memory_content("");
  item.fresh = std::move(node);
  return item;
}
Item deleted(std::string_view name, Node node) {
  Item item;
  item.path = path(name);
  item.old = std::move(node);
  return item;
}
Item changed(std::string_view name, Node old, Node fresh) {
  Item item = added(name, std::move(fresh));
  item.old = std::move(old);
  return item;
}
Item moved(std::string_view from, std::string_view to, Node node) {
  Item item = changed(to, node, node);
  item.from = path(from);
  return item;
}

std::string text_of(std::vector<Item> items) {
  auto plan = build_plan(std::move(items));
  REQUIRE(plan);
  return to_text(*plan);
}

}  // namespace

TEST_CASE("a replaced file is one exchange and a new mode is set in place") {
  CHECK(text_of({changed("a", file("1"), file("22")),
                 changed("b", file("1"), file("1", 0755))}) ==
        "stage 0 a (file 0644, 2 bytes)\n"
        "swap a (0)\n"
        "attr b (0755)\n");
}

TEST_CASE("nothing is done where nothing changed") {
  CHECK(text_of({changed("a", file("1"), file("1"))}).empty());
  CHECK(text_of({}).empty());
}

TEST_CASE("no name of a new tree reaches a terminal as it is") {
  const std::string text =
      text_of({added("d", dir()), added("d/\x1b[2J\nput x", dir()),
               added("d/\x1b[2J\nput x/f", file("x"))});
  INFO(text);
  CHECK(text.find('\x1b') == text.npos);
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);
}

TEST_CASE("a new tree is one rename") {
  CHECK(text_of({added("d", dir()), added("d/e", dir(0700)),
                 added("d/e/f", file("x")), added("d/g", file("x"))}) ==
        "stage 0 d (directory 0755)\n"
        "stage 0/e d/e (directory 0700)\n"
        "stage 0/e/f d/e/f (file 0644, 1 bytes)\n"
        "stage 0/g d/g (file 0644, 1 bytes)\n"
        "put d (0)\n");
}

TEST_CASE("what leaves goes children first and what comes parents first") {
  CHECK(text_of({deleted("d", dir()), deleted("d/a", file("1")),
                 deleted("d/s", dir()), deleted("d/s/b", file("2"))}) ==
        "take d/s/b (0)\n"
        "rmdir d/s\n"
        "take d/a (1)\n"
        "rmdir d\n");
}

TEST_CASE("a file that turns into a directory is one exchange") {
  CHECK(text_of({changed("x", file("1"), dir()), added("x/in", file("2"))}) ==
        "stage 0 x (directory 0755)\n"
        "stage 0/in x/in (file 0644, 1 bytes)\n"
        "swap x (0)\n");
}

TEST_CASE("a directory that turns into a file is emptied first") {
  CHECK(text_of({changed("x", dir(), file("1")), deleted("x/in", file("2"))}) ==
        "stage 1 x (file 0644, 1 bytes)\n"
        "take x/in (0)\n"
        "rmdir x\n"
        "put x (1)\n");
}

TEST_CASE("a plain move is one rename from place to place") {
  CHECK(text_of({moved("a", "b", file("1"))}) == "move a -> b\n");
  CHECK(text_of({moved("src", "lib/src", dir())}) == "move src -> lib/src\n");
}

TEST_CASE("a move into a new directory waits for it") {
  CHECK(text_of({added("n", dir()), moved("a", "n/a", file("1"))}) ==
        "stage 1 n (directory 0755)\n"
        "take a (0, moving)\n"
        "put n (1)\n"
        "put n/a (0, moving)\n");
}

TEST_CASE("a move out of a directory that goes comes before it goes") {
  CHECK(text_of({moved("d/a", "a", file("1")), deleted("d", dir())}) ==
        "take d/a (0, moving)\n"
        "rmdir d\n"
        "put a (0, moving)\n");
}

TEST_CASE("a moved directory takes the rest along and what changed is anew") {
  Item edited = changed("lib/x", file("1"), file("22"));
  edited.from = path("src/x");
  CHECK(text_of({moved("src", "lib", dir()), edited,
                 deleted("src/y", file("3"))}) ==
        "stage 2 lib/x (file 0644, 2 bytes)\n"
        "take src/y (0)\n"
        "take src/x (1)\n"
        "move src -> lib\n"
        "put lib/x (2)\n");
}

TEST_CASE("something new where a moved thing stood waits until it left") {
  CHECK(text_of({moved("a", "b", file("1")), added("a", file("2"))}) ==
        "stage 1 a (file 0644, 1 bytes)\n"
        "take a (0, moving)\n"
        "put a (1)\n"
        "put b (0, moving)\n");
}

TEST_CASE("hard links are staged as links of one file") {
  Item second = changed("b", file("1"), file("22"));
  second.link_to = path("a");
  CHECK(text_of({changed("a", file("1"), file("22")), second}) ==
        "stage 0 a (file 0644, 2 bytes)\n"
        "stage 1 b (file 0644, 2 bytes, link of 0)\n"
        "swap a (0)\n"
        "swap b (1)\n");
  Item mode = changed("b", file("1"), file("1", 0600));
  mode.link_to = path("a");
  CHECK(text_of({changed("a", file("1"), file("1", 0600)), mode}) ==
        "attr a (0600)\n");
}

TEST_CASE("a mode that must not touch other links makes a new file") {
  Item item = changed("a", file("1"), file("1", 0600));
  item.detach = true;
  CHECK(text_of({item}) ==
        "stage 0 a (file 0600, 1 bytes)\n"
        "swap a (0)\n");
}

TEST_CASE("what changes beneath a directory that leaves goes by itself") {
  // b became c, and a with its own b/f became b.
  CHECK(text_of({moved("a", "b", dir()), moved("b", "c", dir()),
                 changed("b/f", file("1"), file("22")),
                 deleted("a/f", file("22"))}) ==
        "stage 3 b/f (file 0644, 2 bytes)\n"
        "take b/f (0)\n"
        "take b (1, moving)\n"
        "take a/f (2)\n"
        "move a -> b\n"
        "put b/f (3)\n"
        "put c (1, moving)\n");
}

TEST_CASE("contradictions are refused") {
  CHECK(!build_plan({added("a", file("1")), added("a", file("2"))}));
  CHECK(!build_plan({moved("a", "b", file("1")), moved("a", "c", file("1"))}));
  CHECK(!build_plan({moved("a", "x/b", file("1")), deleted("a", file("1")),
                     added("x", dir())}));
}
