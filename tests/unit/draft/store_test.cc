// SPDX-License-Identifier: Apache-2.0
#include "draft/store.h"

#include <fcntl.h>

#include "base/sys_file.h"
#include "fixture.h"

using namespace stoplog;
using namespace stoplog::draft;

TEST_CASE("the newest open draft is the current one until another is chosen") {
  Place place;
  Store store = place.store();
  Workspace ws = place.workspace();
  CHECK_FALSE(store.current(ws).value());
  Draft a = store.create({.workspace = ws, .name = "a"}).value();
  Draft b = store.create({.workspace = ws, .name = "b"}).value();
  CHECK(store.current(ws).value()->name == "b");
  REQUIRE(store.create({.workspace = ws, .name = "c", .forked_from = b.id}));
  CHECK(store.current(ws).value()->name == "b");
  REQUIRE(store.select(a.id));
  CHECK(store.current(ws).value()->name == "a");
  REQUIRE(
      store.update(a.id, [](Draft& d) { d.state = DraftState::kCommitted; }));
  CHECK(store.current(ws).value()->name == "b");
  place.make("other");
  CHECK_FALSE(store.current(place.workspace("other")).value());
}

TEST_CASE("a draft is found by name and by the beginning of its id") {
  Place place;
  Store store = place.store();
  Workspace ws = place.workspace();
  Draft a = store.create({.workspace = ws, .name = "green"}).value();
  CHECK(store.find(ws, "green")->id == a.id);
  CHECK(store.find(ws, a.id.substr(0, 5))->id == a.id);
  auto missing = store.find(ws, "gren");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code() == Code::kUsage);
  CHECK(missing.error().hint() == "did you mean 'green'?");
  CHECK_FALSE(store.find(ws, a.id.substr(0, 3)));
}

TEST_CASE("names of drafts are unique in a workspace and plain") {
  Place place;
  Store store = place.store();
  Workspace ws = place.workspace();
  REQUIRE(store.create({.workspace = ws, .name = "a"}));
  CHECK_FALSE(store.create({.workspace = ws, .name = "a"}));
  for (const char* bad : {"", "-x", ".x", "a b", "a/b", "a\n"})
    CHECK_FALSE(store.create({.workspace = ws, .name = bad}));
  Draft b = store.create({.workspace = ws}).value();
  CHECK(is_valid_draft_name(b.name));
  CHECK_FALSE(store.rename(b.id, "a"));
  REQUIRE(store.rename(b.id, "z"));
  CHECK(store.load(b.id)->name == "z");
  place.make("other");
  CHECK(store.create({.workspace = place.workspace("other"), .name = "a"}));
}

TEST_CASE("a draft in use is not removed") {
  Place place;
  Store store = place.store();
  Draft a = store.create({.workspace = place.workspace()}).value();
  {
    auto lock = DraftLock::take(place.layout, a.id, LockMode::kShared);
    REQUIRE(lock);
    CHECK_FALSE(DraftLock::is_held(place.layout, a.id).value());
    auto writer = DraftLock::take(place.layout, a.id, LockMode::kExclusive,
                                  std::chrono::milliseconds(10));
    REQUIRE_FALSE(writer);
    CHECK(writer.error().err() == EWOULDBLOCK);
  }
  {
    auto lock = DraftLock::take(place.layout, a.id, LockMode::kExclusive);
    REQUIRE(lock);
    CHECK(DraftLock::is_held(place.layout, a.id).value());
  }
  REQUIRE(store.remove(a.id));
  CHECK_FALSE(store.load(a.id));
  CHECK(store.list()->empty());
}

TEST_CASE("keys of a newer stoplog survive an update of draft.json") {
  Place place;
  Store store = place.store();
  Draft a = store.create({.workspace = place.workspace()}).value();
  std::string file = "state/drafts/" + a.id + "/draft.json";
  Json json = Json::parse(place.read(file)).value();
  json.set("future", "kept");
  place.write(file, json.dump());
  REQUIRE(store.select(a.id));
  CHECK(Json::parse(place.read(file))->text("future") == "kept");
  place.write(file, "{\"version\":1}");
  CHECK(store.load(a.id).error().code() == Code::kCorrupt);
  CHECK(store.list()->empty());
  CHECK(store.list_damaged()->size() == 1);
}

TEST_CASE("an empty draft.json after a loss of power does not lose the draft") {
  Place place;
  Store store = place.store();
  Draft a = store.create({.workspace = place.workspace()}).value();
  const std::string dir = "state/drafts/" + a.id + "/";
  const std::string top = place.layout.draft(a.id) + "/";
  // What XFS leaves of a file that was replaced and not synced.
  auto lose_power = [&](std::string_view text) {
    place.write(dir + "new", text);
    REQUIRE(::rename((top + "new").c_str(), (top + "draft.json").c_str()) == 0);
  };
  auto again = [&](std::string_view name) {
    auto loaded = store.load(a.id);
    REQUIRE(loaded);
    CHECK(loaded->name == name);
    CHECK(store.list()->size() == 1);
    CHECK(store.list_damaged()->empty());
    REQUIRE(store.current(place.workspace()).value());
  };
  lose_power("");
  again(a.name);
  // What was synced since is what counts; what was not is lost.
  REQUIRE(store.rename(a.id, "other"));
  Fd fd = sys::openat(AT_FDCWD, top, O_RDONLY | O_DIRECTORY).value();
  auto unsynced = [&](const std::function<void(Draft&)>& change) {
    auto apply = [&](Draft& d) -> Status {
      change(d);
      return {};
    };
    REQUIRE(update_draft(fd.get(), apply, Sync::kNo));
  };
  unsynced([](Draft& d) { d.name = "unsynced"; });
  again("unsynced");
  lose_power(std::string(200, '\0'));
  again("other");
  // And it goes on from there.
  unsynced([](Draft& d) { d.commands = 7; });
  again("other");
  CHECK(store.load(a.id)->commands == 7);
  // One that was removed is not found by what it was.
  REQUIRE(::unlink((top + "draft.json").c_str()) == 0);
  CHECK_FALSE(store.load(a.id));
}

TEST_CASE("a state directory that others may enter is closed") {
  Place place;
  place.make("state");
  REQUIRE(::chmod(place.layout.state.c_str(), 0755) == 0);
  place.store();
  struct stat st{};
  REQUIRE(::stat(place.layout.state.c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0700);
}

TEST_CASE("a socket path too long for the runtime directory goes elsewhere") {
  Place place;
  place.layout.runtime = "/" + std::string(100, 'r');
  CHECK(place.layout.run("abcdefgh") == place.layout.state + "/run/abcdefgh");
  place.layout.runtime = "/run/user/1";
  CHECK(place.layout.run("abcdefgh") == "/run/user/1/abcdefgh");
}
