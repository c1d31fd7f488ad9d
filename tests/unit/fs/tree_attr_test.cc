// SPDX-License-Identifier: Apache-2.0
// Modes, owners, extended attributes and ACLs of a tree.
#include "fs/tree.h"

#include <sys/xattr.h>

#include <chrono>
#include <thread>

#include "catch_shim.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::TreeFixture;

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

// They are kept in memory, which no quota of bytes or of files bounds.
TEST_CASE("extended attributes without end are refused and leave room") {
  TreeFixture f;
  f.open();
  f.mkdir("dir");
  const std::string value(60000, 'x');
  int made = 0, err = 0;
  for (; err == 0 && made < 10000; ++made) {
    std::string path = "dir/f" + std::to_string(made);
    f.create(path);
    err = f.err(f.tree->setxattr(f.at(path), "user.x", value, 0, f.caller));
  }
  CHECK(err == ENOSPC);
  CHECK(f.tree->stats().refused_bytes > 0);
  // Content, names and small attributes of others go the same way; what is
  // taken away can be used again, after a moment.
  CHECK(f.create("small", "text") == 0);
  CHECK(f.read("small") == "text");
  for (int i = 0; i < 100; ++i) f.unlink("dir/f" + std::to_string(i));
  f.forget_all();
  for (int i = 0; i < 600 && err != 0; ++i) {
    err = f.err(f.tree->setxattr(f.at("small"), "user.x", value, 0, f.caller));
    f.forget_all();
    if (err != 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK(err == 0);
  f.reopen();
  CHECK(f.tree->recovery_notes().empty());
  CHECK(*f.tree->getxattr(f.at("small"), "user.x") == value);
  CHECK(f.err(f.tree->setxattr(f.at("dir/f200"), "user.y", value, 0,
                               f.caller)) == 0);
}
