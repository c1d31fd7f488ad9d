// SPDX-License-Identifier: Apache-2.0
// What an approved git directory does not bring to the real one.
#include <sys/stat.h>

#include <filesystem>

#include "catch_shim.h"
#include "diff/git_inflate.h"
#include "repo_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

namespace {

bool is_there(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0;
}

}  // namespace

TEST_CASE("a link inside of .git is not committed with its row") {
  for (bool whole : {false, true}) {
    Repo repo;
    std::string git = repo.draft + (whole ? "/sub/.git" : "/.git");
    if (whole) {
      std::filesystem::create_directory(repo.draft + "/sub");
      repo.git(repo.draft + "/sub", "init -q -b main .");
      std::filesystem::create_directory(git + "/logs");
    } else {
      repo.git(repo.draft, "commit -q --allow-empty -m second");
    }
    for (const char* name : {"/COMMIT_EDITMSG", "/ORIG_HEAD", "/logs/HEAD"}) {
      std::filesystem::remove(git + name);
      std::filesystem::create_symlink("/outside/x", git + name);
    }
    repo.look(false);  // all but the dangers, as `commit -a` takes it
    auto result = repo.commit_now();
    INFO((result ? "" : result.error().text()));
    REQUIRE(result);
    std::string real = repo.ws + git.substr(repo.draft.size());
    for (const char* name : {"/COMMIT_EDITMSG", "/ORIG_HEAD", "/logs/HEAD"}) {
      INFO(name);
      CHECK(!std::filesystem::is_symlink(real + name));
    }
    if (!whole)
      CHECK(repo.git(repo.ws, "rev-parse main") ==
            repo.git(repo.draft, "rev-parse main"));
    CHECK(is_there(real));
    repo.check_clean();
  }
}

TEST_CASE("what git makes again from the objects is not committed") {
  for (bool whole : {false, true}) {
    Repo repo;
    std::string dir = repo.draft + (whole ? "/sub" : "");
    if (whole) {
      std::filesystem::create_directory(dir);
      repo.git(dir, "init -q -b main .");
      repo.git(dir, "config user.name T");
      repo.git(dir, "config user.email t@example.invalid");
    }
    repo.git(dir, "commit -q --allow-empty -m second");
    repo.git(dir, "repack -q -a -d --write-bitmap-index");
    repo.git(dir, "multi-pack-index write");
    repo.git(dir, "commit-graph write --reachable");
    repo.look();
    auto result = repo.commit_now();
    INFO((result ? "" : result.error().text()));
    REQUIRE(result);
    std::string real = repo.ws + (whole ? "/sub" : "");
    CHECK(is_there(dir + "/.git/objects/info/commit-graph"));
    CHECK(!is_there(real + "/.git/objects/info/commit-graph"));
    CHECK(!is_there(real + "/.git/objects/pack/multi-pack-index"));
    for (const auto& entry :
         std::filesystem::directory_iterator(real + "/.git/objects/pack")) {
      INFO(entry.path());
      CHECK((entry.path().extension() == ".pack" ||
             entry.path().extension() == ".idx"));
    }
    CHECK(repo.git(real, "log -1 --format=%s") == "second");
    repo.git(real, "fsck --strict");
    repo.check_clean();
  }
}

// git believes the names of trees in an index: its next commit has them.
TEST_CASE("a commit after an approved index has what its entries say") {
  std::string format = GENERATE("", "--object-format=sha256");
  bool whole = GENERATE(false, true);
  Repo repo(format);
  std::string dir = repo.draft + (whole ? "/sub" : "");
  if (whole) {
    std::filesystem::create_directory(dir);
    repo.git(dir, "init -q -b main " + format + " .");
    repo.git(dir, "config user.name T");
    repo.git(dir, "config user.email t@example.invalid");
  }
  put(dir + "/evil.txt", "evil\n");
  repo.git(dir, "add -A");
  std::string evil = repo.git(dir, "write-tree");
  std::filesystem::remove(dir + "/evil.txt");
  put(dir + "/new.txt", "new\n");
  repo.git(dir, "add -A");
  repo.git(dir, "commit -q -m second");
  std::string good = repo.git(dir, "rev-parse HEAD^{tree}");
  auto raw = [](const std::string& id) {
    std::string out;
    for (size_t i = 0; i + 1 < id.size(); i += 2)
      out += static_cast<char>(std::stoi(id.substr(i, 2), nullptr, 16));
    return out;
  };
  std::string index = get(dir + "/.git/index");
  size_t at = index.rfind(raw(good));
  REQUIRE(at != std::string::npos);
  size_t size = good.size() / 2;
  index.replace(at, size, raw(evil));
  diff::ObjectHash hash(format.empty() ? diff::ObjectFormat::kSha1
                                       : diff::ObjectFormat::kSha256);
  hash.update(std::string_view(index).substr(0, index.size() - size));
  index.replace(index.size() - size, size, hash.finish());
  put(dir + "/.git/index", index);
  repo.look();
  auto result = repo.commit_now();
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  CHECK(result->notes.empty());
  std::string real = repo.ws + (whole ? "/sub" : "");
  CHECK(repo.git(real, "status --porcelain").empty());
  repo.git(real, "commit -q --allow-empty -m mine");
  CHECK(repo.git(real, "rev-parse HEAD^{tree}") == good);
  repo.check_clean();
}

// What we cannot read was compared with nothing; git may read it.
TEST_CASE("refs and an index that cannot be read are left") {
  bool whole = GENERATE(false, true);
  Repo repo;
  std::string dir = repo.draft + (whole ? "/sub" : "");
  if (whole) {
    std::filesystem::create_directory(dir);
    repo.git(dir, "init -q -b main .");
    repo.git(dir, "config user.name T");
    repo.git(dir, "config user.email t@example.invalid");
  }
  put(dir + "/new.txt", "new\n");
  put(dir + "/old.txt", "old\n");
  repo.git(dir, "add -A");
  repo.git(dir, "commit -q -m second");
  std::string head = repo.git(dir, "rev-parse HEAD");
  put(dir + "/.git/refs/heads/junk", head + " junk\n");
  put(dir + "/.git/packed-refs", head + " refs/heads/packed\njunk\n");
  // The last two entries change places.
  repo.git(dir, "update-index --index-version 2");
  std::string index = get(dir + "/.git/index");
  size_t a = index.find(std::string("new.txt\0", 8)) - 62;
  size_t b = index.find(std::string("old.txt\0", 8)) - 62;
  std::string one = index.substr(a, 72), other = index.substr(b, 72);
  index.replace(a, 72, other).replace(b, 72, one);
  diff::ObjectHash hash(diff::ObjectFormat::kSha1);
  hash.update(std::string_view(index).substr(0, index.size() - 20));
  index.replace(index.size() - 20, 20, hash.finish());
  put(dir + "/.git/index", index);
  repo.look();
  std::string real = repo.ws + (whole ? "/sub" : "");
  std::string was = whole ? "" : get(real + "/.git/index");
  auto result = repo.commit_now();
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  CHECK(has_note(*result, "junk"));
  CHECK(has_note(*result, "index"));
  CHECK(!is_there(real + "/.git/refs/heads/junk"));
  CHECK(!is_there(real + "/.git/packed-refs"));
  if (whole)
    CHECK(!is_there(real + "/.git/index"));
  else
    CHECK(get(real + "/.git/index") == was);
  CHECK(repo.git(real, "rev-parse refs/heads/main") == head);
  repo.check_clean();
}

TEST_CASE("what a tag is said to be a tag of is not committed") {
  Repo repo;
  std::string dir = repo.draft + "/sub";
  std::filesystem::create_directory(dir);
  repo.git(dir, "init -q -b main .");
  repo.git(dir, "config user.name T");
  repo.git(dir, "config user.email t@example.invalid");
  repo.git(dir, "commit -q --allow-empty -m one");
  repo.git(dir, "tag -a -m t v1");
  repo.git(dir, "pack-refs --all");
  CHECK(get(dir + "/.git/packed-refs").find('^') != std::string::npos);
  repo.look();
  REQUIRE(repo.commit_now());
  std::string real = repo.ws + "/sub";
  CHECK(get(real + "/.git/packed-refs").find('^') == std::string::npos);
  CHECK(repo.git(real, "show-ref -d") == repo.git(dir, "show-ref -d"));
  repo.check_clean();
}

TEST_CASE("a commit of git's with a rejected move is refused") {
  bool directory = GENERATE(false, true);
  Repo repo("", {});
  std::string from = directory ? "d" : "a.txt", to = directory ? "e" : "z.txt";
  if (directory) {
    for (const std::string& tree : {repo.ws, repo.base, repo.draft}) {
      std::filesystem::create_directories(tree + "/d");
      put(tree + "/d/x", "x\n");
      put(tree + "/d/y", "y\n");
      repo.git(tree, "add -A");
      repo.git(tree, "-c user.name=t commit -q --date=1 -m d");
    }
  }
  repo.git(repo.draft, "mv " + from + " " + to);
  repo.git(repo.draft, "commit -q -m moved");
  repo.view = fs::view_of_directories(repo.base_fd.get(), repo.side.get());
  auto built = diff::build_change_set(*repo.view, {});
  REQUIRE(built);
  repo.set = std::move(*built);
  ApproveRequest only;
  only.paths = {path(".git")};
  only.danger = true;
  REQUIRE(approve(repo.plan, repo.set, only));
  auto result = repo.commit_now();
  REQUIRE(!result);
  INFO(result.error().text());
  CHECK(result.error().code() == Code::kRefused);
  CHECK(result.error().text().find(to) != std::string::npos);
  CHECK(repo.git(repo.ws, "status --porcelain").empty());
}
