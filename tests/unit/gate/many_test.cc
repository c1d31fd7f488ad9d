// SPDX-License-Identifier: Apache-2.0
// Commits large enough that verifying, staging and packing are done by several
// threads.
#include <sys/resource.h>

#include <algorithm>

#include "gate/commits.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

namespace {

constexpr int kFiles = 700;

std::string text_of(int i, const char* tag) {
  return tag + std::to_string(i) +
         std::string(static_cast<size_t>(i % 97), 'x');
}

// Two thirds replaced, some of them alike, the rest new, in old and in new
// directories.
void make_many(Site& site) {
  for (int i = 0; i < kFiles; ++i)
    if (i % 3 != 0)
      put(fmt::format("{}/d{}/f{}", site.ws, i % 7, i), text_of(i % 50, "old"));
  site.branch();
  for (int i = 0; i < kFiles; ++i)
    put(fmt::format("{}/d{}/f{}", site.draft, i % (i % 3 == 0 ? 9 : 7), i),
        text_of(i, "new"));
}

}  // namespace

TEST_CASE("a commit of many files is the draft's tree, with every pre-image") {
  Site site("/dev/shm");
  make_many(site);
  auto result = site.commit();
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  CHECK(tree(site.ws) == tree(site.draft));
  size_t found = 0;
  for (const Item& item : result->items) {
    if (!item.has_preimage()) continue;
    auto bytes = site.store->get(*item.old->sha256, 1 << 20);
    REQUIRE(bytes);
    int number = std::stoi(std::string(item.path.name()).substr(1));
    CHECK(*bytes == text_of(number % 50, "old"));
    ++found;
  }
  CHECK(found > 300);
  site.check_clean();
}

// Verified: stat, read. Staged: made, written, its time. Exchanged: lease, read
// again (it is younger than two seconds), rename, stat. Kept: lease. Gone:
// stat, unlink.
TEST_CASE("a replaced file costs a commit twelve steps and no more") {
  auto steps = [](int files) {
    Site site("/dev/shm");
    for (int i = 0; i < files; ++i)
      put(fmt::format("{}/f{}", site.ws, i), text_of(i, "old"));
    site.branch();
    for (int i = 0; i < files; ++i)
      put(fmt::format("{}/f{}", site.draft, i), text_of(i, "new"));
    int count = 0;
    Disk disk([&](const char*) {
      ++count;
      return 0;
    });
    REQUIRE(transact(site.ground(&disk), site.items(), CommitMeta{}));
    return count;
  };
  // A thread opens the directory once for every 32.
  CHECK(steps(300) - steps(100) <= 12 * 200 + 200 / 16);
}

// So long may a reader see some paths new and some old.
TEST_CASE("nothing but renames lies between the first and the last of them") {
  Site site("/dev/shm");
  make_many(site);
  for (int i = 1; i < kFiles; i += 9)
    std::filesystem::remove(fmt::format("{}/d{}/f{}", site.draft, i % 7, i));
  std::vector<std::string> calls;
  Disk disk([&](const char* call) {
    calls.emplace_back(call);
    return 0;
  });
  REQUIRE(transact(site.ground(&disk), site.items(), CommitMeta{}));
  CHECK(tree(site.ws) == tree(site.draft));
  // The first one is the probe of the stage.
  auto first = std::find(calls.begin(), calls.end(), "renameat2");
  first = std::find(first + 1, calls.end(), "renameat2");
  auto last = std::find(calls.rbegin(), calls.rend(), "renameat2").base();
  REQUIRE(last - first > kFiles / 2);
  auto others = std::count_if(
      first, last, [](const std::string& call) { return call != "renameat2"; });
  // New names in directories that nothing else is done in: these are opened.
  CHECK(others <= 2);
}

// open(2) waits in the kernel; here it is tried again at every step.
TEST_CASE("a program that opens a file to write waits for no other file") {
  const std::string phase = GENERATE("lease", "renameat2");
  Site site("/dev/shm");
  make_many(site);
  auto items = site.items();
  // The first that is held, the last that leaves.
  std::vector<std::string> replaced;
  for (const Item& item : items)
    if (item.old && item.old->is_file()) replaced.push_back(item.path.str());
  REQUIRE(replaced.size() > 300);
  std::string name = phase == "lease"
                         ? *std::min_element(replaced.begin(), replaced.end())
                         : *std::max_element(replaced.begin(), replaced.end());
  auto wanted = tree(site.ws);
  wanted[name] += "person";
  int steps = 0, waited = 0;
  bool saved = false;
  Disk disk([&](const char* call) {
    steps += call == phase;
    if (steps < 40 || saved) return 0;
    int fd = ::open((site.ws + "/" + name).c_str(),
                    O_WRONLY | O_APPEND | O_NONBLOCK);
    if (fd < 0) {
      waited += call == phase;
      return 0;
    }
    saved = ::write(fd, "person", 6) == 6;
    ::close(fd);
    return 0;
  });
  auto result = transact(site.ground(&disk), items, CommitMeta{});
  REQUIRE(!result);
  CHECK(result.error().code() == Code::kDrift);
  INFO(result.error().text());
  CHECK(result.error().text().find(name) != std::string::npos);
  CHECK(saved);
  // Each of four threads ends its run of 32; of the renames one is on its way.
  CHECK(waited <= (phase == "lease" ? 4 * 32 : 1));
  CHECK(tree(site.ws) == wanted);
  site.check_clean();
}

TEST_CASE("with few open files the others are held one by one") {
  for (rlim_t most : {300, 1300}) {
    Site site("/dev/shm");
    make_many(site);
    auto items = site.items();
    bool alive = survives(0, [&](const Disk& disk) {
      rlimit few{.rlim_cur = 200, .rlim_max = most};
      if (::setrlimit(RLIMIT_NOFILE, &few) != 0) ::abort();
      if (!transact(site.ground(&disk), items, CommitMeta{})) ::abort();
      rlimit now{};
      ::getrlimit(RLIMIT_NOFILE, &now);
      if (now.rlim_cur != 200) ::abort();
    });
    INFO("limit " << most);
    CHECK(alive);
    CHECK(tree(site.ws) == tree(site.draft));
    site.check_clean();
  }
}

TEST_CASE("drift is named by all threads that saw some") {
  Site site("/dev/shm");
  make_many(site);
  auto items = site.items();
  std::set<std::string> edited;
  for (int i = 0; i < kFiles && edited.size() < 10; i += 70)
    if (i % 3 != 0) {
      std::string name = fmt::format("d{}/f{}", i % 7, i);
      put(site.ws + "/" + name, "a person was here");
      edited.insert(name);
    }
  REQUIRE(!edited.empty());
  auto before = tree(site.ws);
  auto result = transact(site.ground(), items, CommitMeta{});
  REQUIRE(!result);
  CHECK(result.error().code() == Code::kDrift);
  for (const std::string& name : edited)
    CHECK(result.error().text().find(name) != std::string::npos);
  CHECK(tree(site.ws) == before);
  site.check_clean();
}

TEST_CASE("a failure or SIGKILL on any thread leaves all old or all new") {
  int total = 0;
  {
    Site site("/dev/shm");
    make_many(site);
    Disk disk([&](const char*) { return ++total, 0; });
    REQUIRE(transact(site.ground(&disk), site.items(), CommitMeta{}));
  }
  REQUIRE(total > kFiles);
  bool seen_old = false, seen_new = false;
  auto check = [&](Site& site, const auto& old_tree) {
    auto recovered = recover(site.ground());
    REQUIRE(recovered);
    CHECK(recovered->left.empty());
    auto now = tree(site.ws);
    bool is_old = now == old_tree;
    CHECK((is_old || now == tree(site.draft)));
    (is_old ? seen_old : seen_new) = true;
    site.check_clean();
  };
  for (int k = 1; k <= total; k += total / 40) {
    INFO("call " << k << " of " << total);
    for (bool dies : {true, false}) {
      Site site("/dev/shm");
      make_many(site);
      auto items = site.items();
      auto old_tree = tree(site.ws);
      if (dies) {
        (void)survives(k, [&](const Disk& disk) {
          (void)transact(site.ground(&disk), items, CommitMeta{});
        });
      } else {
        int n = 0;
        Disk disk([&](const char*) { return ++n == k ? EIO : 0; });
        (void)transact(site.ground(&disk), items, CommitMeta{});
      }
      check(site, old_tree);
    }
  }
  CHECK(seen_old);
  CHECK(seen_new);
}
