// SPDX-License-Identifier: Apache-2.0
#include "fs/tree.h"

#include <linux/fs.h>
#include <sys/xattr.h>

#include <set>

#include "catch_shim.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::TreeFixture;
namespace stdfs = std::filesystem;

TEST_CASE("an untouched tree shows the lower one and holds nothing") {
  TreeFixture f;
  f.base.mkdir("src/deep");
  f.base.write("src/main.c", "int main;");
  f.base.write("readme", "hello");
  f.open();
  CHECK(f.list("") == "readme src");
  CHECK(f.list("src") == "deep main.c");
  CHECK(f.read("src/main.c") == "int main;");
  struct stat st;
  REQUIRE(::stat((f.base / "readme").c_str(), &st) == 0);
  Attr attr = f.attr("readme");
  CHECK(attr.ino == st.st_ino);
  CHECK(attr.mtime.tv_nsec == st.st_mtim.tv_nsec);
  CHECK(attr.size == 5);
  CHECK(f.at("none") == 0);
  CHECK(f.last_errno == ENOENT);
  CHECK(f.tree->stats().touched_nodes == 0);
}

TEST_CASE("writes are held and the lower file never changes") {
  TreeFixture f;
  f.base.mkdir("d");
  f.base.write("d/file", "0123456789");
  struct stat before, after;
  ::stat((f.base / "d/file").c_str(), &before);
  f.open();
  uint64_t ino = f.attr("d/file").ino;
  CHECK(f.write("d/file", "AB", 3) == 0);
  CHECK(f.read("d/file") == "012AB56789");
  CHECK(f.write("d/file", "tail", 12) == 0);
  CHECK(f.read("d/file") == std::string("012AB56789\0\0tail", 16));
  CHECK(f.truncate("d/file", 4) == 0);
  CHECK(f.read("d/file") == "012A");
  CHECK(f.attr("d/file").ino == ino);
  ::stat((f.base / "d/file").c_str(), &after);
  CHECK(f.base.read("d/file") == "0123456789");
  CHECK(before.st_atim.tv_nsec == after.st_atim.tv_nsec);
  CHECK(before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
  f.reopen();
  CHECK(f.read("d/file") == "012A");
  CHECK(f.attr("d/file").ino == ino);
  CHECK(f.list("d") == "file");
}

TEST_CASE("new nodes come back after reopening with the same numbers") {
  TreeFixture f;
  f.base.mkdir("d");
  f.open();
  CHECK(f.create("d/new", "text") == 0);
  CHECK(f.mkdir("made") == 0);
  CHECK(f.create("made/in", "x") == 0);
  auto [dir, name] = f.place("link");
  CHECK(f.tree->symlink(dir, name, "made/in", f.caller));
  CHECK(f.create("d/new") == EEXIST);
  uint64_t ino = f.attr("d/new").ino;
  CHECK((ino >> 62) == 1);
  CHECK(f.attr("made").nlink == 2);
  CHECK(f.attr("d/new").mode == (S_IFREG | 0644));
  CHECK(f.attr("d/new").uid == 1000);
  timespec mtime = f.attr("d").mtime;
  f.reopen();
  CHECK(f.list("") == "d link made");
  CHECK(f.read("d/new") == "text");
  CHECK(f.attr("d/new").ino == ino);
  CHECK(*f.tree->readlink(f.at("link")) == "made/in");
  CHECK(f.attr("d").mtime.tv_nsec == mtime.tv_nsec);
  CHECK_FALSE(stdfs::exists(f.base / "made"));
  CHECK(f.create("again") == 0);
  CHECK(f.attr("again").ino != ino);
}

TEST_CASE("deleted lower names stay gone and a made directory is opaque") {
  TreeFixture f;
  f.base.mkdir("d/sub");
  f.base.write("d/a", "a");
  f.base.write("d/sub/b", "b");
  f.open();
  CHECK(f.attr("d").nlink == 3);
  CHECK(f.rmdir("d") == ENOTEMPTY);
  CHECK(f.rmdir("d/a") == ENOTDIR);
  CHECK(f.unlink("d/sub") == EISDIR);
  CHECK(f.unlink("d/a") == 0);
  CHECK(f.unlink("d/a") == ENOENT);
  CHECK(f.unlink("d/sub/b") == 0);
  CHECK(f.rmdir("d/sub") == 0);
  CHECK(f.attr("d").nlink == 2);
  CHECK(f.rmdir("d") == 0);
  CHECK(f.list("") == "");
  CHECK(f.mkdir("d") == 0);
  CHECK(f.list("d") == "");
  CHECK(f.at("d/a") == 0);
  f.reopen();
  CHECK(f.list("d") == "");
  CHECK(f.create("d/a", "mine") == 0);
  CHECK(f.read("d/a") == "mine");
  CHECK(f.base.read("d/a") == "a");
}

TEST_CASE("a lower directory is renamed with all beneath and nothing copied") {
  TreeFixture f;
  f.base.mkdir("a/x/y");
  f.base.write("a/x/y/file", "deep");
  f.base.write("a/top", "top");
  f.open();
  uint64_t ino = f.attr("a/x/y/file").ino;
  CHECK(f.rename("a", "b") == 0);
  CHECK(f.list("") == "b");
  CHECK(f.read("b/x/y/file") == "deep");
  CHECK(f.attr("b/x/y/file").ino == ino);
  CHECK(f.write("b/x/y/file", "D") == 0);
  CHECK(f.rename("b/x", "x") == 0);
  CHECK(f.read("x/y/file") == "Deep");
  CHECK(f.rename("b", "x/y/b") == 0);
  CHECK(f.read("x/y/b/top") == "top");
  CHECK(f.rename("x", "x/y/loop") == EINVAL);
  CHECK(f.tree->stats().held_bytes < 20);
  f.reopen();
  CHECK(f.read("x/y/b/top") == "top");
  CHECK(f.read("x/y/file") == "Deep");
  CHECK(f.list("") == "x");
  CHECK(f.mkdir("a") == 0);
  CHECK(f.list("a") == "");
}

TEST_CASE("rename replaces refuses and exchanges") {
  TreeFixture f;
  f.base.write("one", "1");
  f.base.write("two", "2");
  f.base.mkdir("full");
  f.base.write("full/x", "x");
  f.base.mkdir("empty");
  f.open();
  CHECK(f.rename("one", "two", RENAME_NOREPLACE) == EEXIST);
  CHECK(f.rename("one", "two", RENAME_EXCHANGE) == 0);
  CHECK(f.read("one") == "2");
  CHECK(f.read("two") == "1");
  CHECK(f.rename("one", "full") == EISDIR);
  CHECK(f.rename("full", "one") == ENOTDIR);
  CHECK(f.rename("empty", "full") == ENOTEMPTY);
  CHECK(f.rename("full", "empty") == 0);
  CHECK(f.read("empty/x") == "x");
  CHECK(f.rename("one", "two") == 0);
  CHECK(f.list("") == "empty two");
  CHECK(f.rename("none", "x") == ENOENT);
  CHECK(f.rename("two", "x", RENAME_EXCHANGE) == ENOENT);
  f.reopen();
  CHECK(f.list("") == "empty two");
  CHECK(f.read("two") == "2");
}

TEST_CASE("hard links stay links through writes also those of the lower") {
  TreeFixture f;
  f.base.write("a", "same");
  f.base.mkdir("d");
  stdfs::create_hard_link(f.base / "a", f.base / "d/b");
  f.open();
  CHECK(f.attr("a").nlink == 2);
  CHECK(f.at("a") == f.at("d/b"));
  CHECK(f.write("a", "S") == 0);
  CHECK(f.read("d/b") == "Same");
  CHECK(f.link("d/b", "c") == 0);
  CHECK(f.attr("a").nlink == 3);
  CHECK(f.unlink("a") == 0);
  CHECK(f.attr("c").nlink == 2);
  f.reopen();
  CHECK(f.read("c") == "Same");
  CHECK(f.read("d/b") == "Same");
  CHECK(f.at("c") == f.at("d/b"));
  CHECK(f.attr("c").nlink == 2);
  CHECK(f.base.read("a") == "same");
}

TEST_CASE("a second lower link is found when the first is already held") {
  TreeFixture f;
  f.base.write("a", "same");
  stdfs::create_hard_link(f.base / "a", f.base / "b");
  f.open();
  CHECK(f.write("a", "S") == 0);
  f.reopen();
  CHECK(f.read("b") == "Same");
  CHECK(f.unlink("b") == 0);
  CHECK(f.attr("a").nlink == 1);
}

TEST_CASE("an unlinked file lives until it is forgotten") {
  TreeFixture f;
  f.base.write("low", "lower");
  f.open();
  f.create("own", "own");
  NodeId low = f.at("low"), own = f.at("own");
  CHECK(f.unlink("low") == 0);
  CHECK(f.unlink("own") == 0);
  CHECK(f.read(low) == "lower");
  CHECK(f.read(own) == "own");
  CHECK(f.tree->getattr(own)->attr.nlink == 0);
  CHECK(f.tree->getattr(low)->attr.nlink == 0);
  std::string text = "L";
  CHECK(f.tree->write(low, 0, std::as_bytes(std::span(text)), {}));
  CHECK(f.read(low) == "Lower");
  CHECK(f.base.read("low") == "lower");
  f.tree->forget(own, 100);
  f.tree->forget(low, 100);
  CHECK(f.tree->getattr(own).error().err() == ESTALE);
  CHECK(f.create("next") == 0);
  f.reopen();
  CHECK(f.list("") == "next");
}

TEST_CASE("attributes are the draft's own after they are set") {
  TreeFixture f;
  f.base.write("file", "text");
  f.open();
  NodeId id = f.at("file");
  SetAttr set{.set = kSetMode | kSetMtime,
              .mode = 0600,
              .mtime = {1234567890, 123456789}};
  CHECK(f.tree->setattr(id, set, f.caller));
  CHECK(f.attr("file").mode == (S_IFREG | 0600));
  CHECK(f.tree->setattr(id, {.set = kSetUid | kSetGid, .uid = 7, .gid = 8},
                        f.caller));
  f.reopen();
  Attr attr = f.attr("file");
  CHECK(attr.mode == (S_IFREG | 0600));
  CHECK(attr.mtime.tv_sec == 1234567890);
  CHECK(attr.mtime.tv_nsec == 123456789);
  CHECK(attr.uid == 7);
  CHECK(attr.gid == 8);
  CHECK(f.read("file") == "text");
  CHECK(f.tree->stats().held_bytes == 0);
}

TEST_CASE("setuid and capabilities are cleared by another's write") {
  TreeFixture f;
  f.open();
  f.create("file", "x", 0755);
  NodeId id = f.at("file");
  f.tree->setattr(id, {.set = kSetMode, .mode = 06755}, f.caller);
  CHECK(f.tree->setxattr(id, "security.capability", "caps", 0, f.caller));
  std::string text = "y";
  CHECK(f.tree->write(id, 0, std::as_bytes(std::span(text)),
                      {.kill_suidgid = true}));
  CHECK((f.attr("file").mode & 07777) == 0755);
  CHECK(f.tree->getxattr(id, "security.capability").error().err() == ENODATA);
  f.create("from", "z");
  f.tree->setattr(id, {.set = kSetMode, .mode = 06755}, f.caller);
  CHECK(f.tree->copy_range(f.at("from"), 0, id, 0, 1) == 1);
  CHECK((f.attr("file").mode & 07777) == 06755);
  CHECK(f.tree->copy_range(f.at("from"), 0, id, 0, 1, {.kill_suidgid = true}) ==
        1);
  CHECK((f.attr("file").mode & 07777) == 0755);
}

TEST_CASE("a setgid directory gives its group and its bit") {
  TreeFixture f;
  f.open();
  f.mkdir("d");
  NodeId id = f.at("d");
  f.tree->setattr(id, {.set = kSetMode | kSetGid, .mode = 02775, .gid = 42},
                  f.caller);
  f.create("d/file");
  f.mkdir("d/sub");
  CHECK(f.attr("d/file").gid == 42);
  CHECK(f.attr("d/sub").gid == 42);
  CHECK((f.attr("d/sub").mode & S_ISGID) != 0);
}

TEST_CASE("extended attributes are taken over and changed") {
  TreeFixture f;
  f.base.write("file", "x");
  if (::setxattr((f.base / "file").c_str(), "user.low", "1", 1, 0) != 0) {
    WARN("no user xattrs here");
    return;
  }
  f.open();
  NodeId id = f.at("file");
  CHECK(*f.tree->getxattr(id, "user.low") == "1");
  CHECK(f.tree->setxattr(id, "user.new", "2", 0, f.caller));
  CHECK(f.tree->setxattr(id, "user.new", "3", XATTR_CREATE, f.caller)
            .error()
            .err() == EEXIST);
  CHECK(f.tree->setxattr(id, "user.no", "3", XATTR_REPLACE, f.caller)
            .error()
            .err() == ENODATA);
  CHECK(f.tree->removexattr(id, "user.low"));
  f.reopen();
  id = f.at("file");
  CHECK(f.tree->listxattr(id)->size() == 1);
  CHECK(*f.tree->getxattr(id, "user.new") == "2");
  CHECK(f.tree->getxattr(id, "user.low").error().err() == ENODATA);
}

TEST_CASE("a large file is not copied for one byte") {
  TreeFixture f;
  f.options.take_whole = 1000;
  f.base.write("big", std::string(5000, 'b'));
  f.open();
  CHECK(f.write("big", "X", 5000) == 0);
  CHECK(f.write("big", "Y", 10) == 0);
  CHECK(f.tree->stats().held_bytes == 2);
  CHECK(f.tree->stats().unpinned_files == 1);
  std::string want(5000, 'b');
  want[10] = 'Y';
  want += 'X';
  CHECK(f.read("big") == want);
  SECTION("an edit of the lower file is drift and not mixed in") {
    f.base.write("big", std::string(6000, 'c'));
    std::string out(100, '\0');
    auto n =
        f.tree->read(f.at("big"), 0, std::as_writable_bytes(std::span(out)));
    REQUIRE_FALSE(n);
    CHECK(n.error().code() == Code::kDrift);
    CHECK(n.error().err() == EIO);
  }
  SECTION("it is the same after reopening") {
    f.reopen();
    CHECK(f.read("big") == want);
  }
}

TEST_CASE("holes and preallocation are seen by seeking") {
  TreeFixture f;
  f.open();
  f.create("file");
  NodeId id = f.at("file");
  f.write("file", "data", 100000);
  CHECK(f.attr("file").size == 100004);
  CHECK(*f.tree->lseek(id, 0, SEEK_DATA) == 100000);
  CHECK(*f.tree->lseek(id, 0, SEEK_HOLE) == 0);
  CHECK(f.tree->fallocate(id, 0, 0, 50));
  CHECK(*f.tree->lseek(id, 0, SEEK_HOLE) == 50);
  CHECK(f.tree->fallocate(id, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                          100001, 2));
  CHECK(f.attr("file").size == 100004);
  std::string out(4, 'x');
  f.tree->read(id, 100000, std::as_writable_bytes(std::span(out)));
  CHECK(out == std::string("d\0\0a", 4));
  CHECK(f.tree->fallocate(id, FALLOC_FL_KEEP_SIZE, 200000, 10));
  CHECK(f.attr("file").size == 100004);
  CHECK(
      f.tree->fallocate(id, FALLOC_FL_COLLAPSE_RANGE, 0, 4096).error().err() ==
      EOPNOTSUPP);
  CHECK(f.tree->lseek(id, 100004, SEEK_DATA).error().err() == ENXIO);
}

TEST_CASE("a listing goes on after names before and behind it vanish") {
  TreeFixture f;
  for (int i = 0; i < 50; ++i) f.base.write("low" + std::to_string(i), "");
  f.open();
  for (int i = 0; i < 50; ++i) f.create("own" + std::to_string(i));
  std::set<std::string> seen;
  uint64_t cookie = 0;
  for (;;) {
    std::vector<std::string> block;
    auto listed =
        f.tree->readdir_plus(kRootId, cookie, [&](const DirItem& item) {
          if (block.size() == 7) return false;
          cookie = item.cookie;
          block.emplace_back(item.name);
          if (item.entry) CHECK(item.entry->attr.ino == item.ino);
          return true;
        });
    REQUIRE(listed);
    if (block.empty()) break;
    for (const std::string& name : block) {
      if (name == "." || name == "..") continue;
      CHECK(seen.insert(name).second);
      CHECK(f.unlink(name) == 0);
    }
  }
  CHECK(seen.size() == 100);
  CHECK(f.list("") == "");
}

TEST_CASE("the quota is ENOSPC and writeback has a reserve") {
  TreeFixture f;
  f.options.quota = {.bytes = 1000, .inodes = 3, .reserve = 500};
  f.open();
  CHECK(f.create("a", std::string(900, 'a')) == 0);
  CHECK(f.write("a", std::string(200, 'b'), 900) == ENOSPC);
  std::string text(200, 'c');
  CHECK(f.tree->write(f.at("a"), 900, std::as_bytes(std::span(text)),
                      {.writeback = true}));
  CHECK(f.create("b") == 0);
  CHECK(f.create("c") == 0);
  CHECK(f.create("d") == ENOSPC);
  CHECK(f.tree->stats().refused_bytes == 1);
  CHECK(f.tree->stats().refused_nodes == 1);
  CHECK(f.unlink("a") == 0);
  f.tree->forget(f.at("a"), 1);
}

TEST_CASE("nodes are dropped when the kernel forgets them") {
  TreeFixture f;
  f.base.mkdir("a/b/c");
  f.base.write("a/b/c/d", "x");
  f.open();
  uint64_t empty = f.tree->stats().live_nodes;
  std::vector<NodeId> ids;
  NodeId id = kRootId;
  for (const char* name : {"a", "b", "c", "d"})
    ids.push_back(id = f.tree->lookup(id, name)->id);
  CHECK(f.tree->stats().live_nodes == empty + 4);
  for (NodeId i : ids) f.tree->forget(i, 1);
  CHECK(f.tree->stats().live_nodes == empty);
  CHECK(f.tree->getattr(ids[0]).error().err() == ESTALE);
}

TEST_CASE("a lower file that is edited shows while it is untouched") {
  TreeFixture f;
  f.base.write("file", "old");
  f.open();
  CHECK(f.read("file") == "old");
  f.base.write("tmp", "new content");
  stdfs::rename(f.base / "tmp", f.base / "file");
  CHECK(f.read("file") == "new content");
  CHECK(f.attr("file").size == 11);
}

TEST_CASE("a default ACL replaces the umask and is inherited") {
  TreeFixture f;
  f.open();
  f.mkdir("d");
  // user::rwx user:1:rwx group::r-x mask::rwx other::---
  const unsigned char acl[] = {
      2, 0, 0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  7,
      0, 1, 0,   0,   0,   4,   0,  5, 0,   255, 255, 255, 255, 16, 0,
      7, 0, 255, 255, 255, 255, 32, 0, 0,   0,   255, 255, 255, 255};
  std::string_view bytes(reinterpret_cast<const char*>(acl), sizeof acl);
  CHECK(f.tree->setxattr(f.at("d"), "system.posix_acl_default", bytes, 0,
                         f.caller));
  f.create("d/file", "", 0666);
  CHECK((f.attr("d/file").mode & 0777) == 0660);
  CHECK(f.tree->getxattr(f.at("d/file"), "system.posix_acl_access"));
  f.mkdir("d/sub", 0777);
  CHECK(*f.tree->getxattr(f.at("d/sub"), "system.posix_acl_default") == bytes);
  CHECK(f.tree
            ->setxattr(f.at("d/file"), "system.posix_acl_access", "junk", 0,
                       f.caller)
            .error()
            .err() == EINVAL);
}

namespace {

struct Told : Observer {
  std::vector<Invalidation> what;
  std::vector<DriftNote> notes;
  std::vector<std::string> denials;
  void invalidate(std::span<const Invalidation> list) override {
    what.insert(what.end(), list.begin(), list.end());
  }
  void drift(const DriftNote& note) override { notes.push_back(note); }
  void denied(const Denial& denial) override { denials.push_back(denial.path); }
  bool has(Invalidation::Kind kind, NodeId node, std::string_view name = "") {
    for (const Invalidation& i : what)
      if (i.kind == kind && i.node == node && i.name == name) return true;
    return false;
  }
};

struct SomeRules : PathRules {
  bool empty() const override { return false; }
  bool hides() const override { return true; }
  Rule rule(std::string_view path, bool) const override {
    if (path == "hidden") return Rule::kHide;
    if (path == ".env") return Rule::kMask;
    if (path == "denied") return Rule::kDeny;
    if (path == "ro" || path.starts_with("ro/")) return Rule::kReadOnly;
    return Rule::kNone;
  }
  Rule evaded(std::string_view, std::string_view to) const override {
    return to == "deep" ? Rule::kReadOnly : Rule::kNone;
  }
  std::string_view mask_content(std::string_view) const override {
    return "masked\n";
  }
};

}  // namespace

TEST_CASE("edits of the real tree become invalidations and drift") {
  TreeFixture f;
  Told told;
  f.options.observer = &told;
  f.base.write("same", "1");
  f.base.write("gone", "2");
  f.base.write("held", "3");
  f.base.mkdir("d");
  f.open();
  NodeId same = f.at("same");
  f.at("gone");
  NodeId d = f.at("d");
  CHECK(f.write("held", "H") == 0);
  f.base.write("same", "longer");
  stdfs::remove(f.base / "gone");
  f.base.write("held", "edited");
  f.base.write("fresh", "x");
  for (const char* name : {"same", "gone", "held", "fresh"})
    f.tree->lower_changed(kRootId, name);
  CHECK(told.has(Invalidation::Kind::kNode, same));
  CHECK(told.has(Invalidation::Kind::kDrop, kRootId, "gone"));
  CHECK(told.has(Invalidation::Kind::kExpire, kRootId, "fresh"));
  REQUIRE(told.notes.size() == 1);
  CHECK(told.notes[0].path.str() == "held");
  CHECK(f.read("held") == "H");
  stdfs::rename(f.base / "d", f.base / "e");
  f.tree->lower_changed(kRootId, "d");
  CHECK(told.has(Invalidation::Kind::kDrop, kRootId, "d"));
  CHECK(f.at("d") == 0);
  CHECK(f.at("e") != d);
  f.tree->lower_changed_everywhere();
  f.tree->lower_changed(kRootId, "");
}

TEST_CASE("a lower directory that vanishes keeps what the draft holds in it") {
  TreeFixture f;
  Told told;
  f.options.observer = &told;
  f.base.mkdir("d/sub");
  f.base.write("d/sub/low", "x");
  f.open();
  CHECK(f.create("d/sub/new", "mine") == 0);
  stdfs::remove_all(f.base / "d");
  f.reopen();
  CHECK(f.list("d/sub") == "new");
  CHECK(f.read("d/sub/new") == "mine");
  CHECK(f.at("d/sub/low") == 0);
  CHECK_FALSE(told.notes.empty());
}

TEST_CASE("rules hide mask deny and protect by every route") {
  TreeFixture f;
  Told told;
  SomeRules rules;
  f.options.observer = &told;
  f.options.rules = &rules;
  f.base.write("hidden", "h");
  f.base.write(".env", "SECRET");
  f.base.write("denied", "d");
  f.base.mkdir("ro");
  f.base.write("ro/file", "r");
  f.base.mkdir("plain");
  f.open();
  CHECK(f.list("") == ".env denied plain ro");
  CHECK(f.at("hidden") == 0);
  CHECK(f.last_errno == ENOENT);
  CHECK(f.create("hidden", "x") == EACCES);
  CHECK(f.at("denied") == 0);
  CHECK(f.last_errno == EACCES);
  CHECK(f.read(".env") == "masked\n");
  CHECK(f.attr(".env").size == 7);
  CHECK(f.write(".env", "x") == EACCES);
  CHECK(f.rename(".env", "plain/env") == EACCES);
  CHECK(f.link(".env", "plain/env") == EACCES);
  CHECK(f.unlink(".env") == EACCES);
  CHECK(f.read("ro/file") == "r");
  CHECK(f.write("ro/file", "x") == EROFS);
  CHECK(f.create("ro/new") == EROFS);
  CHECK(f.rename("ro", "rw") == EROFS);
  CHECK(f.create("plain/x") == 0);
  CHECK(f.rename("plain/x", "hidden") == EACCES);
  CHECK(f.rename("plain", "deep") == EROFS);
  CHECK(f.mkdir("deep") == 0);
  CHECK(f.rename("plain", "deep", RENAME_EXCHANGE) == EROFS);
  CHECK(f.rename("deep", "plain", RENAME_EXCHANGE) == EROFS);
  CHECK(f.rename("plain/x", "deep/x") == 0);
  CHECK(told.denials.size() > 5);
  CHECK(f.tree->stats().denials == told.denials.size());
}

TEST_CASE("a mark costs one record and freezes what was written") {
  TreeFixture f;
  f.open();
  f.create("file", "one");
  uint64_t held = f.tree->stats().held_bytes;
  f.write("file", "two");
  CHECK(f.tree->stats().held_bytes == held);
  auto mark = f.tree->mark(MarkKind::kCommandBegin, 7, "seven");
  REQUIRE(mark);
  CHECK(mark->id == 1);
  f.write("file", "six");
  CHECK(f.read("file") == "six");
  f.reopen();
  CHECK(f.read("file") == "six");
  REQUIRE(f.tree->marks().size() == 1);
  CHECK(f.tree->marks()[0].name == "seven");
  CHECK(f.tree->marks()[0].position == mark->position);
}
