// SPDX-License-Identifier: Apache-2.0
// Random operations on a tree and on a plain directory; both must answer with
// the same error and look the same. Reopening, marks, rollbacks and
// checkpoints are mixed in. A failure prints its seed:
//   STOPLOG_MODEL_SEED=17 STOPLOG_MODEL_RUNS=1 build/tests/test_fs "*model*"
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <random>

#include "catch_shim.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using stoplog::test::TempDir;
using stoplog::test::TreeFixture;
namespace stdfs = std::filesystem;

namespace {

int sys_err(int result) { return result < 0 ? errno : 0; }

class Model {
 public:
  explicit Model(unsigned seed) : random_(seed) {
    f.options.take_whole = 300;
    f.caller = {.uid = 0, .gid = 0, .umask = 0};
    build_base();
    copy(f.base.path(), plain());
    f.open();
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      if (i % 25 == 24) compare();
    }
    compare();
  }
  std::string log;

 private:
  uint64_t below(uint64_t n) { return random_() % n; }
  stdfs::path plain() const { return work.path() / "now"; }

  void build_base() {
    for (const char* dir : {"a", "b", "a/c", "a/c/d"}) f.base.mkdir(dir);
    size_t n = 0;
    for (const char* name : {"x", "a/x", "a/y", "b/x", "a/c/x", "a/c/d/y"}) {
      ++n;  // the third is above take_whole
      f.base.write(name,
                   std::string(37 * n + (n == 3 ? 900 : 0), char('a' + n)));
    }
    stdfs::create_hard_link(f.base / "x", f.base / "b/z");
    stdfs::create_symlink("x", f.base / "a/z");
  }
  static void copy(const stdfs::path& from, const stdfs::path& to) {
    stdfs::remove_all(to);
    std::string command = "cp -a " + from.string() + " " + to.string();
    REQUIRE(std::system(command.c_str()) == 0);
  }

  std::string any_path() {
    static const char* names[] = {"a", "b", "c", "d", "x", "y", "z"};
    std::string path;
    for (uint64_t depth = 1 + below(4); depth > 0; --depth)
      path += (path.empty() ? "" : "/") + std::string(names[below(7)]);
    return path;
  }
  std::string on(const std::string& path) const {
    return (plain() / path).string();
  }
  // Paths go through directories only: an intermediate symlink or file is
  // another question than the one asked here.
  bool parents_are_directories(const std::string& path) {
    stdfs::path at = plain();
    stdfs::path parent = stdfs::path(path).parent_path();
    for (const auto& part : parent) {
      at /= part;
      if (stdfs::symlink_status(at).type() != stdfs::file_type::directory)
        return false;
    }
    return true;
  }

  void check(const std::string& what, int tree, int plain_err) {
    log += what + "\n";
    if (tree == plain_err) return;
    FAIL(what << ": the tree says " << strerror(tree) << ", the directory "
              << strerror(plain_err) << "\n"
              << log);
  }

  void step() {
    std::string p = any_path(), q = any_path();
    if (!parents_are_directories(p) || !parents_are_directories(q)) return;
    struct stat st;
    bool exists = ::lstat(on(p).c_str(), &st) == 0;
    switch (below(20)) {
      case 0:
      case 1:
        return check("create " + p, f.create(p),
                     sys_err(::mknod(on(p).c_str(), S_IFREG | 0644, 0)));
      case 2:
        return check("mkdir " + p, f.mkdir(p),
                     sys_err(::mkdir(on(p).c_str(), 0755)));
      case 3:
      case 4:
        return check("unlink " + p, f.unlink(p),
                     sys_err(::unlink(on(p).c_str())));
      case 5:
        return check("rmdir " + p, f.rmdir(p), sys_err(::rmdir(on(p).c_str())));
      case 6:
      case 7:
      case 8:
        return rename(p, q);
      case 9:
        if (exists && !S_ISDIR(st.st_mode))
          check("link " + p + " " + q, f.link(p, q),
                sys_err(::linkat(AT_FDCWD, on(p).c_str(), AT_FDCWD,
                                 on(q).c_str(), 0)));
        return;
      case 10:
        if (!exists) {
          auto [dir, name] = f.place(p);
          check("symlink " + p, f.err(f.tree->symlink(dir, name, q, f.caller)),
                sys_err(::symlink(q.c_str(), on(p).c_str())));
        }
        return;
      case 11:
      case 12:
      case 13:
        if (exists && S_ISREG(st.st_mode)) write(p);
        return;
      case 14:
        if (exists && S_ISREG(st.st_mode)) {
          uint64_t size = below(2000);
          check("truncate " + p + " " + std::to_string(size),
                f.truncate(p, size),
                sys_err(::truncate(on(p).c_str(), off_t(size))));
        }
        return;
      case 15:
        if (exists && !S_ISLNK(st.st_mode)) {
          mode_t mode = mode_t(below(01000));
          check("chmod " + p,
                f.err(f.tree->setattr(f.at(p), {.set = kSetMode, .mode = mode},
                                      f.caller)),
                sys_err(::chmod(on(p).c_str(), mode)));
        }
        return;
      case 16:
        if (exists && S_ISREG(st.st_mode)) punch(p);
        return;
      case 17:
        log += "reopen\n";
        return f.reopen();
      case 18:
        return mark();
      default:
        return back();
    }
  }

  void rename(const std::string& p, const std::string& q) {
    static const unsigned flags[] = {0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE};
    unsigned flag = flags[below(4)];
    if (p == q) return;
    int want = sys_err(int(::syscall(SYS_renameat2, AT_FDCWD, on(p).c_str(),
                                     AT_FDCWD, on(q).c_str(), flag)));
    int got = f.rename(p, q, flag);
    // Inside out is refused by the kernel before a file system sees it.
    if (want == ENOTEMPTY && got != 0) got = want;
    if (want == EINVAL && got != 0) got = want;
    check("rename " + p + " " + q + " " + std::to_string(flag), got, want);
  }

  void write(const std::string& p) {
    uint64_t offset = below(1500);
    std::string data(1 + below(700), char('A' + below(26)));
    Fd fd(::open(on(p).c_str(), O_WRONLY));
    int want = ::pwrite(fd.get(), data.data(), data.size(), off_t(offset)) ==
                       ssize_t(data.size())
                   ? 0
                   : errno;
    check("write " + p + " " + std::to_string(offset) + " " +
              std::to_string(data.size()),
          f.write(p, data, offset), want);
  }

  void punch(const std::string& p) {
    int mode = below(2) ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE : 0;
    uint64_t offset = below(1500), length = 1 + below(600);
    Fd fd(::open(on(p).c_str(), O_WRONLY));
    int want =
        sys_err(::fallocate(fd.get(), mode, off_t(offset), off_t(length)));
    check("fallocate " + p,
          f.err(f.tree->fallocate(f.at(p), mode, offset, length)), want);
  }

  void mark() {
    log += "mark\n";
    if (marks.size() > 6) return;
    auto made = f.tree->mark(MarkKind::kNamed, 0, "");
    REQUIRE(made);
    marks.push_back(made->position);
    copy(plain(), work.path() / ("mark" + std::to_string(marks.size())));
    if (below(3) == 0) REQUIRE(f.tree->settle());
  }
  void back() {
    if (below(4) == 0) {
      log += "checkpoint\n";
      REQUIRE(f.tree->checkpoint());
      return;
    }
    if (marks.empty() || below(3) != 0) return;
    uint64_t which = below(marks.size());
    log += "rollback " + std::to_string(which + 1) + "\n";
    auto done = f.tree->rollback(marks[which]);
    if (!done) FAIL(done.error().text() << "\n" << log);
    copy(work.path() / ("mark" + std::to_string(which + 1)), plain());
  }

  // Every name with type, mode, links, size and content.
  void compare() {
    std::string tree, directory;
    walk_tree("", tree);
    walk_plain("", directory);
    if (tree != directory)
      FAIL("the tree\n" << tree << "differs from\n" << directory << log);
  }
  void line(std::string& out, const std::string& path, mode_t mode,
            uint64_t nlink, const std::string& content) {
    out += path + " " + std::to_string(mode) + " " + std::to_string(nlink) +
           " " + std::to_string(content.size()) + " " +
           xxh3(std::as_bytes(std::span(content))).hex() + "\n";
  }
  void walk_tree(const std::string& dir, std::string& out) {
    std::istringstream names(f.list(dir));
    for (std::string name; names >> name;) {
      std::string path = dir.empty() ? name : dir + "/" + name;
      Attr attr = f.attr(path);
      bool is_dir = S_ISDIR(attr.mode);
      std::string content;
      if (S_ISREG(attr.mode)) content = f.read(path);
      if (S_ISLNK(attr.mode)) content = *f.tree->readlink(f.at(path));
      line(out, path, attr.mode, attr.nlink, content);
      if (is_dir) walk_tree(path, out);
    }
  }
  void walk_plain(const std::string& dir, std::string& out) {
    std::vector<std::string> names;
    for (const auto& e : stdfs::directory_iterator(plain() / dir))
      names.push_back(e.path().filename());
    std::ranges::sort(names);
    for (const std::string& name : names) {
      std::string path = dir.empty() ? name : dir + "/" + name;
      struct stat st;
      REQUIRE(::lstat(on(path).c_str(), &st) == 0);
      std::string content;
      if (S_ISREG(st.st_mode)) {
        std::ostringstream text;
        text << std::ifstream(on(path), std::ios::binary).rdbuf();
        content = text.str();
      }
      if (S_ISLNK(st.st_mode)) content = stdfs::read_symlink(on(path));
      line(out, path, st.st_mode, st.st_nlink, content);
      if (S_ISDIR(st.st_mode)) walk_plain(path, out);
    }
  }

  TreeFixture f;
  TempDir work;
  std::mt19937 random_;
  std::vector<Position> marks;
};

unsigned number(const char* name, unsigned otherwise) {
  const char* text = ::getenv(name);
  return text ? unsigned(std::atoi(text)) : otherwise;
}

}  // namespace

TEST_CASE("the tree behaves like the model of a plain directory") {
  unsigned first = number("STOPLOG_MODEL_SEED", 1);
  unsigned runs = number("STOPLOG_MODEL_RUNS", 8);
  for (unsigned seed = first; seed < first + runs; ++seed) {
    INFO("seed " << seed);
    Model model(seed);
    model.run(int(number("STOPLOG_MODEL_STEPS", 300)));
  }
}
