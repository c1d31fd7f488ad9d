// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sys_file.h"
#include "catch_shim.h"
#include "cli/patch_prompt.h"
#include "review_fixture.h"

using namespace stoplog;
using namespace stoplog::cli;
using namespace stoplog::cli::test;

namespace {

Fd memory(std::string_view text) {
  Fd fd(::memfd_create("prompt", MFD_CLOEXEC));
  REQUIRE(sys::write_full(fd.get(), text));
  ::lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

struct Run {
  PromptEnd end;
  std::string output;
};

Run run(const diff::ChangeSet& set, DecisionStore& store,
        std::string_view answers, std::vector<RelPath> paths = {}) {
  Fd in = memory(answers);
  Fd out = memory("");
  auto end = run_patch_prompt({.set = set,
                               .decisions = store,
                               .input = in.get(),
                               .output = out.get(),
                               .paths = std::move(paths)});
  REQUIRE(end);
  ::lseek(out.get(), 0, SEEK_SET);
  return {*end, *sys::read_all(out.get(), 1 << 24)};
}

constexpr Verdict kN = Verdict::kNone, kY = Verdict::kApproved,
                  kX = Verdict::kRejected;

std::vector<Verdict> parts(const diff::ChangeSet& set, const DecisionStore& s,
                           size_t i) {
  LoadedFile file = load_file(set.changes[i]);
  return s.get(set.changes[i], &*file.text).parts;
}

diff::Change three(const std::string& path) {
  return modified(path, lines(60), lines(60, {5, 30, 50, 53}));
}

}  // namespace

TEST_CASE("prompt: y and n go through the hunks") {
  diff::ChangeSet set{.changes = {three("f")}};
  MemoryDecisions store;
  Run r = run(set, store, "y\nn\ny\n");
  CHECK(parts(set, store, 0) == std::vector<Verdict>{kY, kN, kY, kY});
  CHECK(r.end.decided == 2);
  CHECK_FALSE(r.end.quit);
  CHECK(store.saves() == 2);
  CHECK(r.output.find("(1/3) Approve this hunk [y,n,x,q,a,d,j,J,k,K,g,/,?]?") !=
        std::string::npos);
  CHECK(r.output.find("-line 5\n+changed 5\n") != std::string::npos);
}

TEST_CASE("prompt: each hunk tells the commands that made it") {
  diff::ChangeSet set{.changes = {three("f")}};
  MemoryDecisions store;
  Fd in = memory("y\ny\ny\n");
  Fd out = memory("");
  REQUIRE(run_patch_prompt({.set = set,
                            .decisions = store,
                            .input = in.get(),
                            .output = out.get(),
                            .makers = [](const diff::Change&) {
                              return FileMakers{.edits = {{3}, {}, {3}, {5}}};
                            }}));
  ::lseek(out.get(), 0, SEEK_SET);
  std::string said = *sys::read_all(out.get(), 1 << 24);
  size_t first = said.find("  by #3\n"), last = said.find("  by #3 #5\n");
  REQUIRE(first != std::string::npos);
  REQUIRE(last != std::string::npos);
  CHECK(first < said.find("-line 5\n"));
  CHECK(last > said.find("-line 30\n"));
  CHECK(said.find("  by", first + 2) == last);  // the second is not known
}

TEST_CASE("prompt: a and d answer the rest of the file alone") {
  diff::ChangeSet set{.changes = {three("f"), three("g")}};
  MemoryDecisions store;
  run(set, store, "n\na\nx\nbad idea\nd\n");
  CHECK(parts(set, store, 0) == std::vector<Verdict>{kN, kY, kY, kY});
  CHECK(parts(set, store, 1) == std::vector<Verdict>{kX, kN, kN, kN});
  CHECK(store.get(set.changes[1], nullptr).reason == "bad idea");
}

TEST_CASE("prompt: q and the end of input keep what was answered") {
  diff::ChangeSet set{.changes = {three("f"), three("g")}};
  MemoryDecisions store;
  Run r = run(set, store, "y\nq\ny\ny\n");
  CHECK(r.end.quit);
  CHECK(parts(set, store, 0) == std::vector<Verdict>{kY, kN, kN, kN});
  CHECK(store.summary(set.changes[1]).standing == Standing::kNone);
  MemoryDecisions other;
  CHECK(run(set, other, "y").end.quit);
  CHECK(parts(set, other, 0)[0] == kY);
  CHECK(run(set, other, "").end.decided == 0);
}

TEST_CASE("prompt: s splits and each part is asked about") {
  diff::ChangeSet set{.changes = {three("f")}};
  MemoryDecisions store;
  Run r = run(set, store, "n\nn\ns\ny\nn\n");
  CHECK(parts(set, store, 0) == std::vector<Verdict>{kN, kN, kY, kN});
  CHECK(r.output.find("split into 2 hunks") != std::string::npos);
  CHECK(r.output.find("[y,n,x,q,a,d,j,J,k,K,g,/,s,?]?") != std::string::npos);
}

TEST_CASE("prompt: j J k K g and search move without deciding") {
  diff::ChangeSet set{.changes = {three("f")}};
  MemoryDecisions store;
  run(set, store, "j\ny\nk\nJ\nK\nq\n");
  CHECK(parts(set, store, 0) == std::vector<Verdict>{kN, kY, kN, kN});
  MemoryDecisions second;
  run(set, second, "g 3\ny\nq\n");
  CHECK(parts(set, second, 0) == std::vector<Verdict>{kN, kN, kY, kY});
  MemoryDecisions third;
  run(set, third, "g\n2\ny\nq\n");
  CHECK(parts(set, third, 0) == std::vector<Verdict>{kN, kY, kN, kN});
  MemoryDecisions fourth;
  Run r = run(set, fourth, "/changed 30\ny\ng 9\nK\nq\n");
  CHECK(parts(set, fourth, 0) == std::vector<Verdict>{kN, kY, kN, kN});
  CHECK(r.output.find("no such hunk") != std::string::npos);
}

TEST_CASE("prompt: an unknown key shows the help and asks again") {
  diff::ChangeSet set{.changes = {added("f", "x\n")}};
  MemoryDecisions store;
  Run r = run(set, store, "w\n\ny\n");
  CHECK(r.output.find("q - quit") != std::string::npos);
  CHECK(store.get(set.changes[0], nullptr).whole == kY);
}

TEST_CASE("prompt: a word is no letter and decides nothing") {
  diff::ChangeSet set{.changes = {three("f"), added("g", "x\n")}};
  MemoryDecisions store;
  Run r = run(set, store, "abort\nno\nyes\nn\nn\nn\nabort\n");
  CHECK(r.end.decided == 0);
  CHECK(store.saves() == 0);
  CHECK(r.output.find("one letter is expected, not 'abort'") !=
        std::string::npos);
}

TEST_CASE("prompt: the key to edit a hunk has an answer") {
  diff::ChangeSet set{.changes = {three("f")}};
  MemoryDecisions store;
  Run r = run(set, store, "e\n");
  CHECK(r.output.find("a hunk cannot be edited here") != std::string::npos);
  CHECK(r.output.find("y - approve this") == std::string::npos);
}

TEST_CASE("prompt: dangers come first and are named") {
  diff::ChangeSet set{.changes = {added("a", "x\n"),
                                  dangerous(added("b", "y\n")),
                                  deleted("c", "z\n")}};
  MemoryDecisions store;
  Run r = run(set, store, "y\nx\nkeep it\nn\n");
  CHECK(r.output.find("file 1 of 3: b (added)\nDANGER git-hook: runs on your "
                      "machine\n") == 0);
  CHECK(r.output.find("Approve this deletion [y,n,x,q,a,d,?]?") !=
        std::string::npos);
  CHECK(store.get(set.changes[1], nullptr).whole == kY);
  CHECK(store.get(set.changes[2], nullptr).whole == kX);
  CHECK(store.get(set.changes[2], nullptr).reason == "keep it");
  CHECK(store.get(set.changes[0], nullptr).whole == kN);
}

TEST_CASE("prompt: what is decided is not asked about again") {
  diff::ChangeSet set{.changes = {three("f"), added("g", "x\n")}};
  MemoryDecisions store;
  run(set, store, "y\nq\n");
  Run r = run(set, store, "n\ny\ny\n");
  CHECK(r.output.find("(1/3)") == std::string::npos);
  CHECK(parts(set, store, 0) == std::vector<Verdict>{kY, kN, kY, kY});
  CHECK(store.get(set.changes[1], nullptr).whole == kY);
}

TEST_CASE("prompt: only the paths asked for") {
  diff::ChangeSet set{
      .changes = {added("a/x", "x\n"), added("ab", "x\n"), added("c", "x\n")}};
  MemoryDecisions store;
  Run r = run(set, store, "y\ny\ny\n", {*RelPath::parse("a")});
  CHECK(r.end.decided == 1);
  CHECK(store.get(set.changes[0], nullptr).whole == kY);
}

TEST_CASE("prompt: hostile names and lines are escaped even to a pipe") {
  diff::ChangeSet set{.changes = {added("e\x1b[2Jvil", "a\x1b[31mb\rc\n")}};
  MemoryDecisions store;
  Run r = run(set, store, "y\n");
  CHECK(r.output.find('\x1b') == std::string::npos);
  CHECK(r.output.find('\r') == std::string::npos);
  CHECK(r.output.find("e^[[2Jvil") != std::string::npos);
}

TEST_CASE("prompt: a mode beside a text is asked about alone") {
  diff::Change change = three("f");
  change.mode_changed = true;
  change.after->mode = 0755;
  diff::ChangeSet set{.changes = {change}};
  MemoryDecisions store;
  Run r = run(set, store, "n\ny\ny\ny\n");
  CHECK(r.output.find("Approve this mode") != std::string::npos);
  CHECK(parts(set, store, 0) == std::vector<Verdict>(4, kY));
  CHECK(store.summary(set.changes[0]).standing == Standing::kPartial);
}

TEST_CASE("prompt: files that git ignores are asked about by name alone") {
  diff::ChangeSet set{.changes = {added("a", "x\n"), added("build/o", "x\n")}};
  set.changes[1].ignored = true;
  MemoryDecisions store;
  CHECK(run(set, store, "y\ny\n").end.asked == 1);
  CHECK(run(set, store, "y\n", {*RelPath::parse("build")}).end.asked == 1);
}
