// SPDX-License-Identifier: Apache-2.0
#include "cli/review_makers.h"

#include <random>

#include "catch_shim.h"
#include "cli/background.h"
#include "review_fixture.h"

using namespace stoplog;
using namespace stoplog::cli;
using namespace stoplog::cli::test;

namespace {

using Commands = std::vector<uint32_t>;

diff::SharedText shared(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

FileMakers makers(const std::string& base,
                  const std::vector<std::pair<uint32_t, std::string>>& all) {
  std::vector<FileVersion> versions;
  for (const auto& [command, text] : all)
    versions.push_back({command, shared(text)});
  auto text = diff::diff_texts(base, all.back().second);
  REQUIRE(text);
  FileMakers out = makers_of(*text, versions);
  CHECK(out.edits.size() == text->edits.size());
  return out;
}

// Hands out what a test gives it.
class GivenMakers : public MakerSource {
 public:
  std::shared_ptr<const FileMakers> get(size_t) override { return made; }
  std::shared_ptr<const FileMakers> made;
};

}  // namespace

TEST_CASE("makers: each edit has the command that made it") {
  std::string base = lines(60);
  auto out = makers(base, {{0, base},
                           {3, lines(60, {5})},
                           {4, lines(60, {5, 30})},
                           {9, lines(60, {5, 30, 50})}});
  CHECK(out.edits == std::vector<Commands>{{3}, {4}, {9}});
  CHECK(out.of(0, 2) == Commands{3, 4});
  CHECK(out.of(2, 9) == Commands{9});
}

TEST_CASE("makers: a line that was changed again is the last one's") {
  auto out = makers("a\n", {{0, "a\n"}, {1, "b\n"}, {2, "c\n"}});
  // The first took the old line away, the second made the new one.
  CHECK(out.edits == std::vector<Commands>{{1, 2}});
  out = makers("", {{0, ""}, {1, "x\n"}, {2, "x\ny\n"}, {3, "y\n"}});
  CHECK(out.edits == std::vector<Commands>{{2}});
}

TEST_CASE("makers: deleted lines are of who deleted them") {
  auto out = makers("1\n2\n3\n4\n5\n6\n7\n", {{0, "1\n2\n3\n4\n5\n6\n7\n"},
                                              {5, "1\n3\n4\n5\n6\n7\n"},
                                              {6, "1\n3\n4\n5\n7\n"}});
  CHECK(out.edits == std::vector<Commands>{{5}, {6}});
}

TEST_CASE("makers: what was there before the known commands is nobody's") {
  auto out = makers(lines(60), {{0, lines(60, {5})}, {7, lines(60, {5, 40})}});
  CHECK(out.edits == std::vector<Commands>{{0}, {7}});
  CHECK(makers_text(out.of(0, 1)).empty());
  CHECK(makers_text(out.of(1, 1)) == "#7");
  CHECK(makers_text(out.of(0, 2)) == "several");
  CHECK(makers_text({3, 5}) == "#3 #5");
  CHECK(makers_text({1, 2, 3, 4}) == "several");
  CHECK(makers_text({}).empty());
}

TEST_CASE("makers: a base that was committed since stands aside") {
  // Command 1 made both edits, the first was committed, command 2 made more.
  auto out = makers(
      lines(60, {5}),
      {{0, lines(60)}, {1, lines(60, {5, 30})}, {2, lines(60, {5, 30, 50})}});
  CHECK(out.edits == std::vector<Commands>{{1}, {2}});
}

TEST_CASE("makers: versions that do not lead to the text tell nothing") {
  auto text = diff::diff_texts(std::string("a\n"), std::string("b\n"));
  REQUIRE(text);
  CHECK(makers_of(*text, {}).edits.empty());
  CHECK(makers_of(*text, {{1, shared("c\n")}}).edits.empty());
}

TEST_CASE("makers: any history gives each edit some known command") {
  std::mt19937 engine(21);
  for (int round = 0; round < 200; round++) {
    std::vector<int> text(engine() % 40);
    for (int& line : text) line = static_cast<int>(engine() % 30);
    auto print = [&] {
      std::string out;
      for (int line : text) out += std::to_string(line) + "\n";
      return out;
    };
    std::string base = print();
    std::vector<std::pair<uint32_t, std::string>> all{{0, base}};
    for (uint32_t command = 1; command <= 5; command++) {
      for (size_t k = engine() % 4; k > 0; k--) {
        auto at =
            text.begin() + static_cast<long>(engine() % (text.size() + 1));
        if (engine() % 2 == 0 || at == text.end())
          text.insert(at, static_cast<int>(engine() % 30));
        else
          text.erase(at);
      }
      all.emplace_back(command, print());
    }
    FileMakers out = makers(base, all);
    for (const Commands& edit : out.edits)
      for (uint32_t command : edit) CHECK((command >= 1 && command <= 5));
  }
}

TEST_CASE("review: a hunk tells the command that made it") {
  diff::Change change = modified("f", lines(60), lines(60, {5, 40}));
  change.command = 8;
  diff::ChangeSet set{.changes = {change}};
  MemoryDecisions store;
  DirectSource files(set);
  GivenMakers source;
  ReviewModel model(
      {.set = set,
       .decisions = store,
       .files = files,
       .looked = {},
       .title = "t",
       .command_text = [](uint32_t n) { return n == 7 ? "sed -i" : "make"; },
       .makers = &source});
  model.resize(100, 30);
  CHECK(model.awaits_makers());
  CHECK(to_text(layout(model, {})).find("#7") == std::string::npos);
  source.made = std::make_shared<const FileMakers>(FileMakers{{{7}, {7, 8}}});
  model.poll_makers();
  CHECK_FALSE(model.awaits_makers());
  std::string screen = to_text(layout(model, {}));
  CHECK(screen.find("@@ -2,7 +2,7 @@") != std::string::npos);
  CHECK(screen.find(" #7\n") != std::string::npos);
  CHECK(screen.find(" #7 #8\n") != std::string::npos);
  model.press('i');
  screen = to_text(layout(model, {}));
  CHECK(screen.find("this hunk was made by command 7: sed -i") !=
        std::string::npos);
  CHECK(screen.find("last changed by command 8: make") != std::string::npos);
}

TEST_CASE("background: the last that was asked for is made") {
  std::mutex mutex;
  std::condition_variable wake;
  bool go = false;
  auto work = Background<std::string>::create(
      [&](size_t index, const auto& unwanted) -> std::optional<std::string> {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return go; });
        if (unwanted()) return std::nullopt;
        return std::to_string(index);
      });
  REQUIRE(work);
  CHECK((*work)->get(1) == nullptr);
  CHECK((*work)->get(2) == nullptr);
  CHECK((*work)->get(3) == nullptr);
  {
    std::lock_guard lock(mutex);
    go = true;
  }
  wake.notify_all();
  std::shared_ptr<const std::string> made;
  while (!(made = (*work)->get(3))) {
    std::array<pollfd, 1> fds{{{(*work)->fd(), POLLIN, 0}}};
    REQUIRE(sys::wait_any(fds, -1));
    (*work)->drain();
  }
  CHECK(*made == "3");
  CHECK((*work)->kept(2) == nullptr);
  (*work)->keep(9, std::make_shared<const std::string>("nine"));
  CHECK(*(*work)->get(9) == "nine");
}
