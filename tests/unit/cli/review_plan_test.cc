// SPDX-License-Identifier: Apache-2.0
#include "cli/review_plan.h"

#include "catch_shim.h"
#include "gate/select_items.h"
#include "review_fixture.h"

using namespace stoplog;
using namespace stoplog::cli;
using namespace stoplog::cli::test;

namespace {

constexpr Verdict kN = Verdict::kNone, kY = Verdict::kApproved,
                  kX = Verdict::kRejected;

// A plan on disk that several stores share.
struct Disk {
  gate::Plan plan;
  PlanDecisions open() {
    return PlanDecisions(plan, {.user = "me", .tty = "/dev/pts/1"},
                         [this](const auto& change) -> Status {
                           // Through the file's form, as it really goes.
                           gate::Plan copy =
                               TRY(gate::plan_from_json(gate::to_json(plan)));
                           TRY(change(copy));
                           plan = std::move(copy);
                           return {};
                         });
  }
};

diff::Change three(const std::string& path, bool mode = false) {
  diff::Change change = modified(path, lines(60), lines(60, {5, 30, 50}));
  if (mode) {
    change.mode_changed = true;
    change.after->mode = 0755;
  }
  return change;
}

FileDecision parts(std::vector<Verdict> verdicts, Verdict mode = kN) {
  FileDecision out;
  out.parts = std::move(verdicts);
  out.mode = mode;
  return out;
}

std::string read(const fs::Content& content) {
  std::string out(content.size(), '\0');
  auto got = content.read(
      0, std::as_writable_bytes(std::span(out.data(), out.size())));
  REQUIRE(got);
  return out;
}

}  // namespace

TEST_CASE("plan store: whole decisions come back from the disk") {
  Disk disk;
  diff::Change a = dangerous(added("a", "x\n")), b = deleted("b", "y\n");
  {
    PlanDecisions store = disk.open();
    CHECK(store.summary(a) == Summary{});
    store.put(a, nullptr, {.whole = kY});
    store.put(b, nullptr, {.whole = kX, .reason = "needed"});
    CHECK(disk.plan.decisions.empty());
    REQUIRE(store.save());
    PlanDecisions::Decided decided = store.take_decided();
    CHECK(decided.approved.size() == 1);
    CHECK(decided.rejected.size() == 1);
    CHECK(store.take_decided().approved.empty());
  }
  PlanDecisions again = disk.open();
  CHECK(again.get(a, nullptr).whole == kY);
  CHECK(again.get(b, nullptr).whole == kX);
  CHECK(again.get(b, nullptr).reason == "needed");
  CHECK(again.summary(b).standing == Standing::kRejected);
  CHECK_FALSE(again.summary(b).undecided);
  // A danger that was looked at counts as named.
  CHECK(disk.plan.find(a.path)->confirmed);
}

TEST_CASE("plan store: parts and mode come back and are what is committed") {
  Disk disk;
  diff::Change change = three("f", true);
  LoadedFile file = load_file(change);
  REQUIRE(file.text->edits.size() == 3);
  struct Case {
    FileDecision decision;
    std::string content;
    mode_t mode;
  };
  std::vector<Case> cases = {
      {parts({kY, kN, kX}), lines(60, {5}), 0644},
      {parts({kY, kN, kX}, kY), lines(60, {5}), 0755},
      {parts({kY, kY, kY}), lines(60, {5, 30, 50}), 0644},
      {parts({kY, kY, kY}, kX), lines(60, {5, 30, 50}), 0644},
      {parts({kN, kN, kN}, kY), lines(60), 0755},
      {parts({kX, kX, kX}, kY), lines(60), 0755},
      {{.whole = kY}, lines(60, {5, 30, 50}), 0755},
  };
  diff::ChangeSet set{.changes = {change}};
  for (size_t i = 0; i < cases.size(); i++) {
    INFO(i);
    PlanDecisions store = disk.open();
    store.put(change, &*file.text, cases[i].decision);
    REQUIRE(store.save());
    PlanDecisions again = disk.open();
    CHECK(again.get(change, &*file.text) == cases[i].decision);
    CHECK(again.summary(change) == summarize(change, cases[i].decision));
    auto selection = gate::select_items(disk.plan, set);
    REQUIRE(selection);
    REQUIRE(selection->items.size() == 1);
    CHECK(read(*selection->items[0].content) == cases[i].content);
    CHECK(selection->items[0].fresh->mode == cases[i].mode);
  }
}

TEST_CASE("plan store: a mode approved in parts is bound to that mode") {
  Disk disk;
  diff::Change change = three("f", true);
  LoadedFile file = load_file(change);
  PlanDecisions store = disk.open();
  store.put(change, &*file.text, parts({kY, kN, kN}, kY));
  REQUIRE(store.save());
  change.after->mode = 04755;
  PlanDecisions again = disk.open();
  CHECK(again.get(change, &*file.text).mode == kN);
  diff::ChangeSet set{.changes = {change}};
  auto selection = gate::select_items(disk.plan, set);
  REQUIRE_FALSE(selection);
  CHECK(selection.error().code() == Code::kDrift);
}

TEST_CASE("plan store: nothing decided leaves nothing behind") {
  Disk disk;
  diff::Change change = three("f", true);
  LoadedFile file = load_file(change);
  PlanDecisions store = disk.open();
  store.put(change, &*file.text, parts({kX, kN, kY}, kY));
  REQUIRE(store.save());
  CHECK(disk.plan.decisions.size() == 1);
  store.put(change, &*file.text, FileDecision{});
  REQUIRE(store.save());
  CHECK(disk.plan == gate::Plan{});
  CHECK(store.take_decided().approved.empty());
}

TEST_CASE("plan store: what changed since is stale or undecided again") {
  Disk disk;
  diff::Change change = three("f");
  PlanDecisions store = disk.open();
  store.put(change, nullptr, {.whole = kY});
  REQUIRE(store.save());
  diff::Change other = modified("f", lines(60), lines(60, {5, 31}));
  PlanDecisions again = disk.open();
  CHECK(again.summary(other).stale);
  CHECK(again.summary(other).undecided);
  CHECK_FALSE(again.summary(other).approves);
}

TEST_CASE("plan store: what another decided meanwhile stays") {
  Disk disk;
  diff::Change a = added("a", "x\n"), b = added("b", "y\n");
  PlanDecisions mine = disk.open();
  PlanDecisions other = disk.open();
  other.put(a, nullptr, {.whole = kY});
  REQUIRE(other.save());
  mine.put(b, nullptr, {.whole = kX});
  REQUIRE(mine.save());
  CHECK(disk.plan.decisions.size() == 2);
}

TEST_CASE("plan store: a row that moved does not decide what lies beneath") {
  Disk disk;
  diff::Change dir;
  dir.path = *RelPath::parse("d");
  dir.from = *RelPath::parse("old");
  dir.kind = diff::Kind::kRenamed;
  dir.before = dir.after = fs::NodeState{};
  dir.before->type = dir.after->type = fs::Type::kDir;
  diff::Change inside = added("d/x", "x\n");
  PlanDecisions store = disk.open();
  store.put(dir, nullptr, {.whole = kY});
  REQUIRE(store.save());
  CHECK(store.summary(dir).standing == Standing::kApproved);
  CHECK(store.summary(inside).standing == Standing::kNone);
}
