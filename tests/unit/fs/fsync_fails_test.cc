// SPDX-License-Identifier: Apache-2.0
// A journal's directory that cannot be synced: it goes on with the generation
// it had, and housekeeping that fails keeps nobody from working. And when a new
// draft's journal is synced at all.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "catch_shim.h"
#include "fs/gc.h"
#include "fs/journal.h"
#include "fs/layout.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;
namespace stdfs = std::filesystem;

namespace {

// While it lives, no directory can be synced in which the journal's generation
// of this number stands.
std::atomic<int> failed = 0;
std::atomic<int> directories = 0;  // synced
std::string fails_with;
struct Failing {
  Failing(const TreeFixture& f, uint32_t generation) {
    failed = 0;
    fails_with = path(f, generation);
  }
  ~Failing() { fails_with.clear(); }
  static std::string path(const TreeFixture& f, uint32_t generation) {
    return f.draft / "journal" / layout::generation_name(generation);
  }
};

}  // namespace

// In place of libc's, for all of this program.
extern "C" int fsync(int fd) {
  struct stat st{};
  const bool is_dir = ::fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
  if (is_dir) ++directories;
  if (is_dir && !fails_with.empty() && stdfs::exists(fails_with)) {
    ++failed;
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

TEST_CASE("a generation whose directory cannot be synced is taken back") {
  TreeFixture f;
  f.base.write("edit", "v0");
  f.open();
  f.write("edit", "v1");
  auto mark = f.tree->mark(MarkKind::kNamed, 0, "one");
  REQUIRE(mark);
  f.write("edit", "v2");
  {
    Failing fail(f, 2);
    auto back = f.tree->rollback(mark->position);
    REQUIRE_FALSE(back);
    CHECK(back.error().err() == EIO);
    CHECK(failed > 0);
  }
  // It goes on with the first one, and nobody finds the other.
  CHECK(f.read("edit") == "v2");
  CHECK_FALSE(stdfs::exists(Failing::path(f, 2)));
  f.create("later", "l");
  f.reopen();
  CHECK(f.read("edit") == "v2");
  CHECK(f.read("later") == "l");
  CHECK_FALSE(stdfs::exists(Failing::path(f, 2)));
  REQUIRE(f.tree->rollback(mark->position));
  CHECK(f.read("edit") == "v1");
  f.reopen();
  CHECK(f.read("edit") == "v1");
  CHECK(f.at("later") == 0);
}

TEST_CASE("a gc that fails keeps no commit waiting") {
  TreeFixture f;
  f.base.write("edit", "v0");
  {
    auto journal = Journal::create(f.draft.fd(), {.draft = 7}, 0);
    REQUIRE(journal);
    Mark old{.id = 1,
             .kind = MarkKind::kCommandEnd,
             .position = 0,
             .command = 1,
             .time = {.tv_sec = 1000, .tv_nsec = 0},
             .name = {}};
    REQUIRE((*journal)->append(std::vector<Record>{MarkRecord{old}}, 0));
    REQUIRE((*journal)->publish());
  }
  f.open();
  f.write("edit", "v1");
  f.tree->set_history({.max_age = 3600});
  auto reviewed = f.tree->mark(MarkKind::kCommandEnd, 2, "");
  REQUIRE(reviewed);
  {
    Failing fail(f, 2);
    REQUIRE(f.tree->settle());
    CHECK(failed > 0);
  }
  CHECK(f.tree->marks().size() == 2);  // nothing went
  BaseChange change;
  change.path = *RelPath::parse("edit");
  change.before = sys::statat(f.base.fd(), "edit").value();
  f.base.write("edit", "v1");
  change.now = sys::statat(f.base.fd(), "edit").value();
  REQUIRE(f.tree->commit_base(reviewed->position, {{change}}));
  CHECK(f.read("edit") == "v1");
  f.reopen();
  CHECK(f.read("edit") == "v1");
}

TEST_CASE("who opens a new draft does not wait for the disk") {
  TreeFixture f;
  directories = 0;
  f.open();
  f.create("file", "text");
  CHECK(directories == 0);
  CHECK_FALSE(stdfs::is_symlink(f.draft / "journal" / layout::kNewest));
  // What was written is promised now, and the journal's name with it.
  REQUIRE(f.tree->fsync());
  CHECK(directories >= 1);
  CHECK(stdfs::is_symlink(f.draft / "journal" / layout::kNewest));
  directories = 0;
  f.create("other", "text");
  REQUIRE(f.tree->fsync());
  CHECK(directories <= 1);  // that of the segments
}

TEST_CASE("a new draft whose journal cannot be synced says so") {
  TreeFixture f;
  f.open();
  f.create("file", "text");
  Failing fail(f, 1);
  CHECK_FALSE(f.tree->fsync());
  CHECK(failed > 0);
  CHECK_FALSE(stdfs::is_symlink(f.draft / "journal" / layout::kNewest));
}
