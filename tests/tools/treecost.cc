// SPDX-License-Identifier: Apache-2.0
// One kind of operation of a Tree, COUNT times, without FUSE, to count the
// instructions of: those of two counts, one taken from the other, are those of
// the operations alone.
//
// usage: treecost WHAT COUNT DIR     DIR/base and DIR/draft are made
//   lookup   names that the lower tree has
//   create   a new file, 100 bytes written to it
//   append   100 bytes to one file
//   scatter  100 bytes each to places of one file that do not touch, in no
//   order marked   the same, a mark before each unlink   what create made
//   (which is part of the count) mark     a mark replay   the journal of
//   `create`, opened once more away     a rollback of what create made, which
//   the kernel still knows back     the same, and one that brings it back moved
//   known directories that the host moves away, one by one
#include <fcntl.h>
#include <sys/stat.h>

#include <string>

#include "base/log.h"
#include "base/sys_file.h"
#include "base/sys_node.h"
#include "fs/tree.h"

namespace stoplog::fs {
namespace {

constexpr NodeId kTop = 1;

std::string name_of(int i) { return fmt::format("f{}", i); }

struct Bed {
  Fd base, draft;

  static Result<Bed> make(const std::string& at) {
    Bed bed;
    for (const char* part : {"/base", "/draft"})
      TRY(sys::mkdirat(AT_FDCWD, at + part, 0700));
    bed.base = TRY(sys::openat(AT_FDCWD, at + "/base", O_RDONLY | O_DIRECTORY));
    bed.draft =
        TRY(sys::openat(AT_FDCWD, at + "/draft", O_RDONLY | O_DIRECTORY));
    return bed;
  }
  Result<std::unique_ptr<Tree>> open() const {
    return Tree::open(
        {.draft_dir = draft.get(), .base = base.get(), .background = false});
  }
};

Status write_100(Tree& tree, NodeId node, uint64_t at) {
  std::string text(100, 'x');
  TRY(tree.write(node, at, std::as_bytes(std::span(text)), {}));
  return {};
}

Status create(Tree& tree, int count, bool forget = true) {
  for (int i = 0; i < count; ++i) {
    Entry made = TRY(tree.mknod(kTop, name_of(i), S_IFREG | 0644, 0, {}));
    TRY(write_100(tree, made.id, 0));
    if (forget) tree.forget(made.id, 1);
  }
  return {};
}

// COUNT ranges of one file, none of which touches another.
Status scatter(Tree& tree, int count, bool marks) {
  Entry made = TRY(tree.mknod(kTop, "scattered", S_IFREG | 0644, 0, {}));
  constexpr uint64_t kPlaces = 1u << 20;
  for (int i = 0; i < count; ++i) {
    if (marks) TRY(tree.mark(MarkKind::kNamed, 0, ""));
    const uint64_t place = static_cast<uint64_t>(i) * 0x9e3779b1u % kPlaces;
    TRY(write_100(tree, made.id, place * 4096));
  }
  return {};
}

Status roll(Tree& tree, int count, bool back) {
  Mark before = TRY(tree.mark(MarkKind::kNamed, 0, "before"));
  TRY(create(tree, count, false));
  Mark after = TRY(tree.mark(MarkKind::kNamed, 0, "after"));
  TRY(tree.rollback(before.position));
  if (back) TRY(tree.rollback(after.position));
  return {};
}

Status move_away(const Bed& bed, int count) {
  for (int i = 0; i < count; ++i)
    TRY(sys::mkdirat(bed.base.get(), name_of(i), 0755));
  auto tree = TRY(bed.open());
  std::vector<NodeId> dirs;
  for (int i = 0; i < count; ++i)
    dirs.push_back(TRY(tree->lookup(kTop, name_of(i))).id);
  for (int i = 0; i < count; ++i) {
    TRY(sys::renameat2(bed.base.get(), name_of(i), bed.draft.get(), name_of(i),
                       0));
    tree->lower_changed(dirs[static_cast<size_t>(i)], "");
  }
  return {};
}

Status run(const std::string& what, int count, const std::string& at) {
  Bed bed = TRY(Bed::make(at));
  if (what == "moved") return move_away(bed, count);
  if (what == "lookup")
    for (int i = 0; i < count; ++i)
      TRY(sys::openat(bed.base.get(), name_of(i), O_CREAT | O_WRONLY, 0644));
  auto tree = TRY(bed.open());
  if (what == "lookup") {
    for (int i = 0; i < count; ++i) TRY(tree->lookup(kTop, name_of(i)));
  } else if (what == "create") {
    TRY(create(*tree, count));
  } else if (what == "append") {
    Entry made = TRY(tree->mknod(kTop, "log", S_IFREG | 0644, 0, {}));
    for (int i = 0; i < count; ++i)
      TRY(write_100(*tree, made.id, static_cast<uint64_t>(i) * 100));
  } else if (what == "scatter" || what == "marked") {
    TRY(scatter(*tree, count, what == "marked"));
  } else if (what == "unlink") {
    TRY(create(*tree, count));
    for (int i = 0; i < count; ++i) TRY(tree->unlink(kTop, name_of(i), {}));
  } else if (what == "mark") {
    for (int i = 0; i < count; ++i)
      TRY(tree->mark(MarkKind::kNamed, 0, name_of(i)));
  } else if (what == "replay") {
    TRY(create(*tree, count));
    tree.reset();
    tree = TRY(bed.open());
  } else if (what == "away" || what == "back") {
    TRY(roll(*tree, count, what == "back"));
  } else {
    return fail(Code::kUsage, "unknown operation '{}'", what);
  }
  return {};
}

}  // namespace
}  // namespace stoplog::fs

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: treecost WHAT COUNT DIR\n", stderr);
    return 2;
  }
  auto done = stoplog::fs::run(argv[1], std::atoi(argv[2]), argv[3]);
  if (!done) fmt::print(stderr, "treecost: {}\n", done.error().text());
  return done ? 0 : 1;
}
