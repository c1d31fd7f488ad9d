// SPDX-License-Identifier: Apache-2.0
#include "draft/ledger.h"

#include "fixture.h"

using namespace stoplog;
using namespace stoplog::draft;

namespace {

struct LedgerPlace : Place {
  LedgerPlace()
      : draft(store().create({.workspace = workspace()}).value()),
        file("state/drafts/" + draft.id + "/ledger.jsonl"),
        ledger(Ledger::open(layout, draft.id).value()) {}
  void add(int count) {
    for (int i = 0; i < count; ++i)
      REQUIRE(ledger.append("snapshot",
                            Json::object().set("mark",
                                               "m\xff"
                                               "x"),
                            Sync::kNo));
  }
  std::string draft_file() const {
    return "state/drafts/" + draft.id + "/draft.json";
  }
  // The machine was started again since the last entry.
  void restart() {
    std::string text = read(draft_file());
    size_t at = text.find("\"boot\": \"");
    REQUIRE(at != std::string::npos);
    text[at + 9] = text[at + 9] == '0' ? '1' : '0';
    write(draft_file(), text);
  }
  // All but the first lines are gone.
  void keep_lines(int count) {
    std::string text = read(file);
    size_t at = 0;
    for (int i = 0; i < count; ++i) at = text.find('\n', at) + 1;
    write(file, text.substr(0, at));
  }
  Draft draft;
  std::string file;
  Ledger ledger;
};

}  // namespace

TEST_CASE("the ledger chains its entries") {
  LedgerPlace place;
  CHECK(place.ledger.verify()->ok);
  place.add(3);
  auto entries = place.ledger.entries().value();
  REQUIRE(entries.size() == 3);
  CHECK(entries[2].integer("n") == 3);
  CHECK(entries[2].text("prev") == entries[1].text("sha256"));
  CHECK(entries[0].text("prev") == std::string(64, '0'));
  CHECK(entries[1].text("kind") == "snapshot");
  auto verdict = place.ledger.verify().value();
  CHECK(verdict.ok);
  CHECK(verdict.entries == 3);
}

TEST_CASE("the last entries of a ledger are found from its end") {
  LedgerPlace place;
  place.add(40);
  auto numbers = [&](std::optional<uint64_t> last) {
    std::vector<int64_t> out;
    REQUIRE(place.ledger.for_each(
        [&](const Json& entry) {
          out.push_back(entry.integer("n"));
          return true;
        },
        last));
    return out;
  };
  CHECK(numbers(0).empty());
  CHECK(numbers(1) == std::vector<int64_t>{40});
  CHECK(numbers(3) == std::vector<int64_t>{38, 39, 40});
  CHECK(numbers(40).size() == 40);
  CHECK(numbers(41).size() == 40);
  // A torn last line is none.
  place.write(place.file, place.read(place.file) + "{\"n\":41");
  CHECK(numbers(2) == std::vector<int64_t>{39, 40});
  // Lines longer than the blocks in which it is read.
  place.write(place.file, std::string(200'000, ' ') + "{\"n\":1}\n" +
                              std::string(100'000, ' ') + "{\"n\":2}\n");
  CHECK(numbers(1) == std::vector<int64_t>{2});
  CHECK(numbers(2) == std::vector<int64_t>{1, 2});
}

TEST_CASE("the ledger says where it was changed") {
  LedgerPlace place;
  place.add(4);
  std::string text = place.read(place.file);
  SECTION("a byte of an entry") {
    size_t at = text.find("snapshot", text.find("\"n\":3"));
    text[at] = 'S';
    place.write(place.file, text);
    auto verdict = place.ledger.verify().value();
    CHECK_FALSE(verdict.ok);
    CHECK(verdict.problem == "entry 3: was altered");
  }
  SECTION("an entry taken out") {
    size_t at = text.find('\n') + 1;
    text.erase(at, text.find('\n', at) + 1 - at);
    place.write(place.file, text);
    CHECK(place.ledger.verify()->problem == "entry 2: numbered 3");
  }
  SECTION("the last entries taken off") {
    text.erase(text.find('\n') + 1);
    place.write(place.file, text);
    CHECK(place.ledger.verify()->problem ==
          "entries 2 to 4 are missing at the end");
  }
  SECTION("an entry that is no JSON") {
    size_t at = text.find('\n') + 1;
    text[at] = 'x';
    place.write(place.file, text);
    CHECK(place.ledger.verify()->problem.starts_with("entry 2: not JSON"));
    place.write(place.file, text + "torn");
    CHECK_FALSE(place.ledger.append("x", Json::object(), Sync::kNo));
  }
}

TEST_CASE("a changed last entry is found behind one that chains from it") {
  LedgerPlace place;
  place.add(3);
  // As somebody would who knows how entries chain, and not of the head.
  auto entries = place.ledger.entries().value();
  entries[2].set("mark", "another");
  entries[2].set("sha256", ledger_hash(entries[2]));
  Json more = entries[2];
  more.set("n", 4).set("prev", entries[2].text("sha256"));
  more.set("sha256", ledger_hash(more));
  std::string text;
  for (const Json& entry : entries) text += entry.dump() + "\n";
  place.write(place.file, text + more.dump() + "\n");
  auto verdict = place.ledger.verify().value();
  CHECK_FALSE(verdict.ok);
  CHECK(verdict.problem ==
        "entry 3: is not the one whose hash draft.json keeps");
  // The next append goes on, and its entry tells.
  place.add(1);
  verdict = place.ledger.verify().value();
  CHECK_FALSE(verdict.ok);
  CHECK(verdict.problem == "entry 5: entry 3 is not the one that was recorded");
}

TEST_CASE("entries that were taken off are missed after the next append too") {
  LedgerPlace place;
  place.add(4);
  place.keep_lines(1);
  place.add(2);
  auto verdict = place.ledger.verify().value();
  CHECK_FALSE(verdict.ok);
  CHECK(verdict.entries == 3);
  CHECK(verdict.problem ==
        "entry 2: entries 2 to 4 had been taken off the end");
}

TEST_CASE("entries that went with the machine's power are no damage") {
  LedgerPlace place;
  REQUIRE(place.ledger.append("approve", Json::object(), Sync::kYes));
  place.add(3);
  const std::string lost =
      "entries 3 to 4 had not reached the disk when the machine went down, and "
      "went with it";
  SECTION("they are not there") { place.keep_lines(2); }
  SECTION("the second is torn and the third came whole") {
    std::string text = place.read(place.file);
    size_t at = text.find("\"n\":3") - 1;
    for (size_t i = 0; i < 40; ++i) text[at + i] = '\0';
    place.write(place.file, text);
  }
  // While the machine runs nothing can be lost.
  CHECK_FALSE(place.ledger.verify()->ok);
  place.restart();
  auto verdict = place.ledger.verify().value();
  INFO(verdict.problem);
  CHECK(verdict.ok);
  CHECK(verdict.entries == 2);
  CHECK(verdict.lost == 2);
  CHECK(verdict.note == lost);
  // The record goes on, and says so for good.
  place.add(2);
  verdict = place.ledger.verify().value();
  CHECK(verdict.ok);
  CHECK(verdict.entries == 4);
  CHECK(verdict.lost == 0);
  CHECK(verdict.note == "entry 3: " + lost);
  // And is no excuse for what goes afterwards.
  place.keep_lines(2);
  CHECK_FALSE(place.ledger.verify()->ok);
}

TEST_CASE("what was synced is never taken for lost with the power") {
  LedgerPlace place;
  place.add(1);
  REQUIRE(place.ledger.append("commit", Json::object(), Sync::kYes));
  place.add(1);
  SECTION("taken off") { place.keep_lines(1); }
  SECTION("altered") {
    std::string text = place.read(place.file);
    text[text.find("commit")] = 'C';
    place.write(place.file, text);
  }
  SECTION("the last one is another") {
    auto entries = place.ledger.entries().value();
    entries[2].set("mark", "another");
    entries[2].set("sha256", ledger_hash(entries[2]));
    std::string text;
    for (const Json& entry : entries) text += entry.dump() + "\n";
    place.write(place.file, text);
  }
  place.restart();
  CHECK_FALSE(place.ledger.verify()->ok);
  if (place.ledger.append("x", Json::object(), Sync::kNo))
    CHECK_FALSE(place.ledger.verify()->ok);
}

TEST_CASE("a torn last line is cut off by the next append") {
  LedgerPlace place;
  place.add(2);
  std::string text = place.read(place.file);
  place.write(place.file, text + "{\"n\":3,\"ki");
  CHECK(place.ledger.verify()->ok);
  CHECK_FALSE(place.ledger.verify()->note.empty());
  place.add(1);
  auto verdict = place.ledger.verify().value();
  CHECK(verdict.ok);
  CHECK(verdict.entries == 3);
  CHECK(place.ledger.entries()->back().text("recovered") ==
        "a torn last line was cut off");
}

TEST_CASE("the record goes on after a loss of power emptied draft.json") {
  LedgerPlace place;
  place.add(1);
  REQUIRE(place.ledger.append("approve", Json::object(), Sync::kYes));
  place.add(2);
  const std::string top = place.layout.draft(place.draft.id) + "/";
  place.write("state/drafts/" + place.draft.id + "/new", "");
  REQUIRE(::rename((top + "new").c_str(), (top + "draft.json").c_str()) == 0);
  auto verdict = place.ledger.verify().value();
  CHECK(verdict.ok);
  CHECK(verdict.entries == 4);
  place.add(1);
  CHECK(place.ledger.verify()->ok);
  CHECK(place.ledger.verify()->entries == 5);
}

TEST_CASE("an append whose head was not written is taken up") {
  LedgerPlace place;
  place.add(1);
  std::string before =
      place.read("state/drafts/" + place.draft.id + "/draft.json");
  place.add(1);
  place.write("state/drafts/" + place.draft.id + "/draft.json", before);
  CHECK(place.ledger.verify()->ok);
  place.add(1);
  CHECK(place.ledger.verify()->entries == 3);
}

TEST_CASE("a committed draft is open when the end of a run is told") {
  LedgerPlace place;
  REQUIRE(place.store().update(
      place.draft.id, [](Draft& d) { d.state = DraftState::kCommitted; }));
  std::vector<DraftState> told;
  auto look = [&] {
    told.push_back(place.store().list().value().front().state);
  };
  REQUIRE(place.ledger.append("commit", Json::object(), Sync::kNo, look));
  REQUIRE(place.ledger.append("run", Json::object(), Sync::kNo, look));
  REQUIRE(place.ledger.append("run", Json::object(), Sync::kNo, look));
  CHECK(told == std::vector{DraftState::kCommitted, DraftState::kOpen,
                            DraftState::kOpen});
}

TEST_CASE("entries of one kind are found among the last") {
  LedgerPlace place;
  place.add(3);
  // A word of the user's is no kind.
  REQUIRE(place.ledger.append(
      "note", Json::object().set("text", "\"kind\":\"cut\""), Sync::kNo));
  REQUIRE(
      place.ledger.append("cut", Json::object().set("command", 7), Sync::kNo));
  place.add(2);
  auto commands = [&](std::optional<uint64_t> last) {
    std::vector<int64_t> out;
    REQUIRE(place.ledger.for_each_of(
        "cut", [&](const Json& e) { out.push_back(e.integer("command")); },
        last));
    return out;
  };
  CHECK(commands({}) == std::vector<int64_t>{7});
  CHECK(commands(3) == std::vector<int64_t>{7});
  CHECK(commands(2).empty());
}
