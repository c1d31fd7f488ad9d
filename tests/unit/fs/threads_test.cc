// SPDX-License-Identifier: Apache-2.0
// Many threads in one tree, with the slow pool at work; run under TSan too.
#include <random>
#include <thread>

#include "catch_shim.h"
#include "fs/draft_view.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::TreeFixture;

namespace {

struct Counting : Observer {
  std::atomic<uint64_t> told{0};
  void invalidate(std::span<const Invalidation> list) override {
    told += list.size();
  }
  void drift(const DriftNote&) override { ++told; }
  void denied(const Denial&) override {}
};

void visit(Tree& tree, std::mt19937& random, const Caller& caller) {
  std::string name = "n" + std::to_string(random() % 12);
  std::string other = "n" + std::to_string(random() % 12);
  auto dir = tree.lookup(kRootId, random() % 2 ? "d" : "e");
  if (!dir) return;
  std::byte block[512] = {};
  switch (random() % 12) {
    case 0:
    case 1:
      if (auto made = tree.mknod(dir->id, name, S_IFREG | 0644, 0, caller))
        tree.forget(made->id, 1);
      break;
    case 2:
      (void)tree.unlink(dir->id, name, caller);
      break;
    case 3:
      (void)tree.rename(dir->id, name, dir->id, other, 0, caller);
      break;
    case 4:
      (void)tree.readdir_plus(dir->id, 0, [&](const DirItem& item) {
        if (item.entry) tree.forget(item.entry->id, 1);
        return true;
      });
      break;
    case 5:
      tree.lower_changed(dir->id, name);
      break;
    default:
      if (auto file = tree.lookup(dir->id, name)) {
        if (random() % 2)
          (void)tree.write(file->id, random() % 4000, block, {});
        else
          (void)tree.read(file->id, 0, block);
        if (random() % 8 == 0)
          (void)tree.setattr(
              file->id, {.set = kSetSize, .size = random() % 3000}, caller);
        (void)tree.getattr(file->id);
        tree.forget(file->id, 1);
      }
  }
  tree.forget(dir->id, 1);
}

}  // namespace

TEST_CASE("threads in one tree leave it whole") {
  TreeFixture f;
  Counting observer;
  f.options.take_whole = 1000;
  for (const char* dir : {"d", "e"}) {
    f.base.mkdir(dir);
    for (int i = 0; i < 8; ++i)
      f.base.write(std::string(dir) + "/n" + std::to_string(i),
                   std::string(size_t(400 * i), 'x'));
  }
  f.open();
  f.tree.reset();
  auto opened = Tree::open({.draft_dir = f.draft.fd(),
                            .base = f.base.fd(),
                            .observer = &observer,
                            .take_whole = 1000,
                            .background = true});
  REQUIRE(opened);
  f.tree = std::move(*opened);
  f.tree->start();
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (int i = 0; i < 400; ++i) visit(*f.tree, random, f.caller);
      });
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        (void)f.tree->mark(MarkKind::kNamed, 0, "");
        (void)f.tree->fsync();
        if (i % 7 == 3) (void)f.tree->checkpoint();
        if (i == 10) (void)f.tree->rollback(f.tree->marks().front().position);
        (void)f.tree->stats();
      }
    });
  }
  Status settled = f.tree->settle();
  INFO((settled ? std::string() : settled.error().text()));
  REQUIRE(settled);
  auto look = [&] {
    std::string all;
    for (const char* dir : {"d", "e"}) {
      std::istringstream names(f.list(dir));
      for (std::string name; names >> name;) {
        std::string path = std::string(dir) + "/" + name;
        std::string text = f.read(path);
        all += path + " " + std::to_string(f.attr(path).ino) + " " +
               xxh3(std::as_bytes(std::span(text))).hex() + "\n";
      }
    }
    return all;
  };
  std::string before = look();
  f.reopen();
  CHECK(f.tree->recovery_notes().empty());
  CHECK(look() == before);
}

// The file stays what it is, with other content: a write that began before
// that ends after it.
TEST_CASE("a write that a rollback overtakes is not refused as stale") {
  TreeFixture f;
  f.base.write("low", "low");
  f.open();
  f.create("file", "as it was");
  f.write("low", "LOW");
  Position mark = f.tree->mark(MarkKind::kNamed, 0, "")->position;
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0}, refused{0};
  auto work = [&](NodeId id, unsigned seed) {
    std::mt19937 random(seed);
    std::byte block[700] = {};
    auto count = [&](bool done) {
      ++calls;
      if (!done) ++refused;
    };
    while (!stop) {
      uint64_t at = random() % 5000;
      switch (random() % 4) {
        case 0:
          count(f.tree->setattr(id, {.set = kSetSize, .size = at}, f.caller)
                    .has_value());
          break;
        case 1:
          count(f.tree->fallocate(id, 0, at, 100).has_value());
          break;
        default:
          count(f.tree->write(id, at, block, {}).has_value());
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t)
      threads.emplace_back(work, f.at(t % 2 == 0 ? "file" : "low"), t);
    for (int i = 0; i < 60; ++i) {
      int seen = calls;
      while (calls < seen + 20) std::this_thread::yield();
      CHECK(f.tree->rollback(mark));
    }
    stop = true;
  }
  CHECK(refused == 0);
  REQUIRE(f.tree->rollback(mark));
  CHECK(f.read("file") == "as it was");
  CHECK(f.read("low") == "LOW");
  f.reopen();
  CHECK(f.tree->recovery_notes().empty());
  CHECK(f.read("file") == "as it was");
}

// Each of these sets a part and keeps the rest: which rest is that of after the
// rollback, not the one that it saw before.
TEST_CASE("attributes that a rollback took away do not come back by utimens") {
  TreeFixture f;
  f.base.write("low", "low");
  f.open();
  f.create("file", "text");
  REQUIRE(f.tree->setxattr(f.at("low"), "user.kept", "kept", 0, f.caller));
  Position mark = f.tree->mark(MarkKind::kNamed, 0, "")->position;
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0}, refused{0};
  auto work = [&](NodeId id, unsigned seed) {
    while (!stop) {
      Status done;
      if (seed % 4 < 2) {
        SetAttr set{.set = kSetMtime};
        set.mtime.tv_sec = 1000;
        auto entry = f.tree->setattr(id, set, f.caller);
        if (!entry) done = std::unexpected(entry.error());
      } else {
        done = f.tree->setxattr(id, "user.other", "x", 0, f.caller);
      }
      ++calls;
      if (!done) ++refused;
    }
  };
  const NodeId ids[] = {f.at("file"), f.at("low")};
  int mode_back = 0, xattr_back = 0;
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t) threads.emplace_back(work, ids[t % 2], t);
    for (int i = 0; i < 40; ++i) {
      for (NodeId id : ids) {
        REQUIRE(
            f.tree->setattr(id, {.set = kSetMode, .mode = 04711}, f.caller));
        REQUIRE(f.tree->setxattr(id, "user.gone", "gone", 0, f.caller));
      }
      int seen = calls;
      while (calls < seen + 8) std::this_thread::yield();
      REQUIRE(f.tree->rollback(mark));
      seen = calls;
      while (calls < seen + 8) std::this_thread::yield();
      for (NodeId id : ids) {
        if ((f.tree->getattr(id)->attr.mode & 07777) != 0644) ++mode_back;
        if (f.tree->getxattr(id, "user.gone")) ++xattr_back;
      }
    }
    stop = true;
  }
  CHECK(refused == 0);
  CHECK(mode_back == 0);
  CHECK(xattr_back == 0);
  CHECK(f.tree->getxattr(ids[1], "user.kept"));
}
