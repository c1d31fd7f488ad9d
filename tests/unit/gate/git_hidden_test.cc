// SPDX-License-Identifier: Apache-2.0
// What an approved git directory does not bring to the real one.
#include <sys/stat.h>

#include <filesystem>

#include "catch_shim.h"
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
