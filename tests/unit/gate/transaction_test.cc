// SPDX-License-Identifier: Apache-2.0
#include "gate/transaction.h"

#include <sys/wait.h>

#include <csignal>
#include <memory>

#include "gate/commits.h"
#include "gate/pending.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

namespace {

// A base and a draft with every kind of change in it.
void make_mixed(Site& site) {
  put(site.ws + "/keep", "untouched");
  put(site.ws + "/edit", "old text");
  put(site.ws + "/script", "#!/bin/sh\n", 0644);
  put(site.ws + "/gone", "to be deleted");
  put(site.ws + "/dir/a", "a");
  put(site.ws + "/dir/sub/b", "b");
  put(site.ws + "/olddir/x", "x");
  put(site.ws + "/olddir/y", "y");
  put(site.ws + "/move-me", "moved content");
  put(site.ws + "/file-to-dir", "was a file");
  put(site.ws + "/dir-to-file/in", "inside");
  put(site.ws + "/brought/in", "goes over an empty directory");
  put(site.ws + "/brought/sub/deep", "with all beneath it");
  std::filesystem::create_directory(site.ws + "/empty");
  put(site.ws + "/link1", "linked");
  ::link((site.ws + "/link1").c_str(), (site.ws + "/link2").c_str());
  std::filesystem::create_symlink("keep", site.ws + "/symlink");
  put(site.ws + "/named", "gets other names", 0640);
  put(site.ws + "/relinked", "was a file of its own");
  put(site.ws + "/two-names", "one goes");
  ::link((site.ws + "/two-names").c_str(), (site.ws + "/dir/goes").c_str());
  put(site.ws + "/moved-linked", "moved and linked");
  site.branch();
  const std::string& d = site.draft;
  put(d + "/edit", "new text, longer");
  ::chmod((d + "/script").c_str(), 0755);
  ::unlink((d + "/gone").c_str());
  std::filesystem::remove_all(d + "/olddir");
  put(d + "/new", "brand new", 0600);
  put(d + "/newdir/one", "1");
  put(d + "/newdir/deep/two", "2", 0755);
  std::filesystem::create_directory(d + "/newdir/empty");
  std::filesystem::create_symlink("one", d + "/newdir/ln");
  ::chmod((d + "/newdir/empty").c_str(), 0555);
  ::rename((d + "/move-me").c_str(), (d + "/dir/moved").c_str());
  ::unlink((d + "/file-to-dir").c_str());
  put(d + "/file-to-dir/inner", "now a directory");
  std::filesystem::remove_all(d + "/dir-to-file");
  put(d + "/dir-to-file", "now a file");
  put(d + "/link1", "linked, changed");  // in place: both names change
  ::rename((d + "/brought").c_str(), (d + "/empty").c_str());
  std::filesystem::remove(d + "/symlink");
  std::filesystem::create_symlink("edit", d + "/symlink");
  auto link = [&](const char* from, const char* to) {
    ::unlink((d + to).c_str());
    REQUIRE(::link((d + from).c_str(), (d + to).c_str()) == 0);
  };
  link("/named", "/again");
  link("/named", "/newdir/deep/linked");
  link("/named", "/relinked");
  link("/new", "/dir/new-too");
  ::unlink((d + "/dir/goes").c_str());
  ::rename((d + "/moved-linked").c_str(), (d + "/was-moved").c_str());
  link("/was-moved", "/dir/of-moved");
  ::chmod((d + "/was-moved").c_str(), 0600);
}
// A directory over another one comes name by name (diff/normalize.h).
const std::map<std::string, std::string> kMoved = {
    {"dir/moved", "move-me"},
    {"was-moved", "moved-linked"},
    {"empty/in", "brought/in"},
    {"empty/sub", "brought/sub"}};

}  // namespace

TEST_CASE("a commit makes the real tree the draft's tree") {
  Site site;
  make_mixed(site);
  auto before = tree(site.ws);
  auto result = site.commit(kMoved);
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  CHECK(tree(site.ws) == tree(site.draft));
  CHECK(tree(site.ws) != before);
  CHECK(result->left.empty());
  CHECK(result->meta.number == 1);
  site.check_clean();
  CHECK(site.items().empty());
}

TEST_CASE("every replaced content is in the object store afterwards") {
  Site site;
  make_mixed(site);
  auto result = site.commit(kMoved);
  REQUIRE(result);
  auto record = read_commit(site.state.get(), 1);
  REQUIRE(record);
  std::set<std::string> kept;
  for (const auto& id : record->preimages()) {
    auto bytes = site.store->get(id, 1 << 20);
    REQUIRE(bytes);
    kept.insert(*bytes);
  }
  CHECK(kept == std::set<std::string>{"old text", "to be deleted", "x", "y",
                                      "was a file", "inside", "linked",
                                      "was a file of its own", "one goes"});
}

TEST_CASE("drift stops a commit before anything is written") {
  Site site;
  make_mixed(site);
  auto items = site.items(kMoved);
  SECTION("edited") { put(site.ws + "/edit", "edited by a person"); }
  SECTION("deleted") { std::filesystem::remove(site.ws + "/edit"); }
  SECTION("chmod") { ::chmod((site.ws + "/edit").c_str(), 0600); }
  SECTION("appeared") { put(site.ws + "/new", "somebody was here"); }
  SECTION("in a directory that goes") {
    put(site.ws + "/olddir/z", "somebody was here");
  }
  SECTION("turned into a symlink") {
    std::filesystem::remove(site.ws + "/edit");
    std::filesystem::create_symlink("/etc/passwd", site.ws + "/edit");
  }
  SECTION("the parent became a symlink") {
    std::filesystem::rename(site.ws + "/dir", site.top + "/elsewhere");
    std::filesystem::create_symlink(site.top + "/elsewhere", site.ws + "/dir");
  }
  auto before = tree(site.ws);
  auto result = transact(site.ground(), items, CommitMeta{});
  REQUIRE(!result);
  CHECK(result.error().code() == Code::kDrift);
  CHECK(tree(site.ws) == before);
  site.check_clean();
}

namespace {

// Counts the calls of one commit first, then fails at each of them.
void fail_at_each_call(int error) {
  int total = 0;
  {
    Site site("/dev/shm");
    make_mixed(site);
    Disk disk([&](const char*) { return ++total, 0; });
    REQUIRE(transact(site.ground(&disk), site.items(kMoved), CommitMeta{}));
  }
  REQUIRE(total > 100);
  for (int k = 1; k <= total; ++k) {
    Site site("/dev/shm");
    make_mixed(site);
    auto old_tree = tree(site.ws);
    auto new_tree = tree(site.draft);
    int n = 0;
    std::string where;
    Disk disk([&](const char* call) {
      if (++n != k) return 0;
      where = call;
      return error;
    });
    auto result =
        transact(site.ground(&disk), site.items(kMoved), CommitMeta{});
    INFO("call " << k << " " << where << " errno " << error);
    if (!result) INFO(result.error().text());
    auto recovered = recover(site.ground());
    REQUIRE(recovered);
    CHECK(recovered->left.empty());
    auto now = tree(site.ws);
    if (result)
      CHECK(now == new_tree);
    else
      CHECK(now == old_tree);
    CHECK(list_commits(site.state.get())->size() == (result ? 1 : 0));
    site.check_clean();
  }
}

}  // namespace

TEST_CASE("ENOSPC at any system call leaves all old or all new") {
  fail_at_each_call(ENOSPC);
}
TEST_CASE("EIO at any system call leaves all old or all new") {
  fail_at_each_call(EIO);
}
TEST_CASE("EACCES at any system call leaves all old or all new") {
  fail_at_each_call(EACCES);
}

namespace {

void give_other_numbers(std::vector<Item>& items,
                        std::vector<std::optional<sys::Stat>>& now) {
  for (Item& item : items)
    if (item.old_stat) item.old_stat->dev += 100;
  for (auto& stat : now)
    if (stat) stat->dev += 100;
}

// As if what is pending, and what is done, had been written before a restart.
void give_other_numbers(Site& site) {
  Disk disk;
  if (auto record = read_commit(site.state.get(), 1)) {
    give_other_numbers(record->items, record->now);
    REQUIRE(write_commit(site.state.get(), disk, *record));
  }
  if (!sys::statat(site.state.get(), "pending")) return;
  auto pending = Pending::open(site.state.get(), disk);
  REQUIRE(pending);
  if (auto intent = *pending->intent()) {
    intent->root.dev += 100;
    REQUIRE(pending->write_intent(*intent));
  }
  if (auto record = *pending->switched()) {
    record->root.dev += 100;
    for (LiveOp& live : record->ops)
      for (Identity* id : {&live.old_id, &live.fresh_id})
        if (id->known()) id->dev += 100;
    give_other_numbers(record->items, record->now);
    REQUIRE(pending->write_switch(*record));
  }
}

// The draft is told numbers of today.
void check_numbers(Site& site) {
  auto record = read_commit(site.state.get(), 1);
  REQUIRE(record);
  renumber(*record, Disk(), site.root.get());
  dev_t today = sys::fstat(site.root.get())->dev;
  for (const fs::BaseChange& change : record->base_changes()) {
    INFO(change.path.str());
    CHECK((!change.now || change.now->dev == today));
    CHECK((!change.before || change.before->dev == today));
  }
}

}  // namespace

TEST_CASE("SIGKILL at every system call leaves all old or all new") {
  bool seen_old = false, seen_new = false;
  for (int k = 1;; ++k) {
    Site site("/dev/shm");
    make_mixed(site);
    auto items = site.items(kMoved);
    auto old_tree = tree(site.ws);
    auto new_tree = tree(site.draft);
    bool alive = survives(k, [&](const Disk& disk) {
      (void)transact(site.ground(&disk), items, CommitMeta{});
    });
    auto recovered = recover(site.ground());
    INFO("call " << k);
    if (!recovered) INFO(recovered.error().text());
    REQUIRE(recovered);
    CHECK(recovered->left.empty());
    auto now = tree(site.ws);
    bool is_old = now == old_tree, is_new = now == new_tree;
    CHECK((is_old || is_new));
    (is_old ? seen_old : seen_new) = true;
    CHECK(list_commits(site.state.get())->size() == (is_new ? 1 : 0));
    if (recovered->what == RecoverReport::What::kForward)
      CHECK(is_new);
    else if (!alive && recovered->what == RecoverReport::What::kBack)
      CHECK(is_old);
    site.check_clean();
    if (alive) break;
    REQUIRE(k < 2000);
  }
  CHECK(seen_old);
  CHECK(seen_new);
}

TEST_CASE("a restart that numbers the device anew is recovered from as well") {
  for (int k = 1;; k += 3) {
    Site site("/dev/shm");
    make_mixed(site);
    auto items = site.items(kMoved);
    auto old_tree = tree(site.ws);
    auto new_tree = tree(site.draft);
    bool alive = survives(k, [&](const Disk& disk) {
      (void)transact(site.ground(&disk), items, CommitMeta{});
    });
    INFO("call " << k);
    give_other_numbers(site);
    auto recovered = recover(site.ground());
    REQUIRE(recovered);
    CHECK(recovered->left.empty());
    auto now = tree(site.ws);
    CHECK((now == old_tree || now == new_tree));
    CHECK(list_commits(site.state.get())->size() == (now == new_tree ? 1 : 0));
    if (now == new_tree) check_numbers(site);
    site.check_clean();
    if (alive) break;
    REQUIRE(k < 2000);
  }
}

TEST_CASE("SIGKILL during recovery is recovered from as well") {
  // Three places to die first: while staging, half-way through the switch and
  // right after it; then at every call of the recovery.
  int total = 0, renames = 0, first_rename = 0, last_rename = 0;
  {
    Site site("/dev/shm");
    make_mixed(site);
    Disk disk([&](const char* call) {
      ++total;
      if (std::string_view(call) == "renameat2" && ++renames > 1) {
        if (first_rename == 0) first_rename = total;
        last_rename = total;
      }
      return 0;
    });
    REQUIRE(transact(site.ground(&disk), site.items(kMoved), CommitMeta{}));
  }
  for (int first :
       {first_rename / 2, (first_rename + last_rename) / 2, last_rename + 1}) {
    for (int k = 1;; ++k) {
      Site site("/dev/shm");
      make_mixed(site);
      auto items = site.items(kMoved);
      auto old_tree = tree(site.ws);
      auto new_tree = tree(site.draft);
      REQUIRE(!survives(first, [&](const Disk& disk) {
        (void)transact(site.ground(&disk), items, CommitMeta{});
      }));
      bool alive = survives(
          k, [&](const Disk& disk) { (void)recover(site.ground(&disk)); });
      auto recovered = recover(site.ground());
      INFO("died at " << first << ", then at " << k);
      REQUIRE(recovered);
      CHECK(recovered->left.empty());
      CHECK(tree(site.ws) == (first < first_rename ? old_tree : new_tree));
      site.check_clean();
      if (alive) break;
    }
  }
}

namespace {

// The roll-back is caused by a failing syncfs, the `which`th, after the switch.
void kill_during_roll_back(int which) {
  bool alive = false;
  for (int k = 1; !alive; ++k) {
    Site site("/dev/shm");
    make_mixed(site);
    auto items = site.items(kMoved);
    auto old_tree = tree(site.ws);
    auto new_tree = tree(site.draft);
    pid_t pid = ::fork();
    if (pid == 0) {
      int syncs = 0, n = 0;
      Disk disk([&](const char* call) {
        if (std::string_view(call) == "syncfs" && ++syncs == which) return EIO;
        if (syncs >= which && ++n == k) ::kill(::getpid(), SIGKILL);
        return 0;
      });
      (void)transact(site.ground(&disk), items, CommitMeta{});
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    alive = WIFEXITED(status);
    auto recovered = recover(site.ground());
    INFO("call " << k << " of the roll-back after syncfs " << which);
    REQUIRE(recovered);
    INFO(recovered->text());
    CHECK(recovered->left.empty());
    auto now = tree(site.ws);
    CHECK((now == old_tree || now == new_tree));
    if (alive) CHECK(now == old_tree);
    CHECK(list_commits(site.state.get())->size() == (now == new_tree ? 1 : 0));
    site.check_clean();
    REQUIRE(k < 500);
  }
}

}  // namespace

TEST_CASE("SIGKILL during a roll-back leaves all old or all new") {
  kill_during_roll_back(2);
}
// By then it is on record.
TEST_CASE("SIGKILL while a commit on record is taken back leaves no mixture") {
  kill_during_roll_back(3);
}

TEST_CASE("a commit whose last syncfs failed is not on record") {
  Site site("/dev/shm");
  make_mixed(site);
  auto old_tree = tree(site.ws);
  int syncs = 0;
  Disk disk([&](const char* call) {
    return std::string_view(call) == "syncfs" && ++syncs == 3 ? EIO : 0;
  });
  auto result = transact(site.ground(&disk), site.items(kMoved), CommitMeta{});
  REQUIRE(!result);
  REQUIRE(syncs >= 3);
  CHECK(tree(site.ws) == old_tree);
  CHECK(list_commits(site.state.get())->empty());
  CHECK(not_rebased(site.state.get(), "")->empty());
  site.check_clean();
  // Its number is the next one's, which no draft was told of.
  auto again = site.commit(kMoved);
  REQUIRE(again);
  CHECK(again->meta.number == 1);
  CHECK(not_rebased(site.state.get(), "") == std::vector<uint64_t>{1});
  site.check_clean();
}

namespace {

// After the switch the disk takes nothing new; with `names`, nothing at all. A
// directory that left has left its block.
Disk full_after_switch(bool names) {
  auto full = std::make_shared<bool>(false);
  return Disk([full, names](const char* call) {
    std::string_view what = call;
    if (what == "pack") *full = true;
    bool takes_space =
        what == "pack" || what == "create" || what == "write" || what == "keep";
    return *full && (names || takes_space) ? ENOSPC : 0;
  });
}

}  // namespace

TEST_CASE("a commit that ends on a full disk is taken back there and then") {
  Site site("/dev/shm");
  make_mixed(site);
  auto old_tree = tree(site.ws);
  Disk disk = full_after_switch(false);
  auto result = transact(site.ground(&disk), site.items(kMoved), CommitMeta{});
  REQUIRE(!result);
  INFO(result.error().text() << " " << result.error().hint());
  CHECK(result.error().code() == Code::kRolledBack);
  CHECK(tree(site.ws) == old_tree);
  site.check_clean();
}

TEST_CASE("a commit that cannot be taken back is not called rolled back") {
  Site site("/dev/shm");
  make_mixed(site);
  auto new_tree = tree(site.draft);
  Disk disk = full_after_switch(true);
  auto result = transact(site.ground(&disk), site.items(kMoved), CommitMeta{});
  REQUIRE(!result);
  CHECK(result.error().code() == Code::kErrno);
  CHECK(result.error().hint().find("completes it") != std::string::npos);
  CHECK(get(site.ws + "/edit") == "new text, longer");
  auto recovered = recover(site.ground());
  REQUIRE(recovered);
  CHECK(recovered->what == RecoverReport::What::kForward);
  CHECK(tree(site.ws) == new_tree);
  CHECK(list_commits(site.state.get())->size() == 1);
  site.check_clean();
}
