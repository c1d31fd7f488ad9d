// SPDX-License-Identifier: Apache-2.0
// Owners, extended attributes, POSIX ACLs and special files through a commit
// and its undo.
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "gate/gate.h"
#include "tree_fixture.h"

using namespace stoplog;
using namespace stoplog::gate;
using namespace stoplog::gate::test;

namespace {

// A file on a disk: tmpfs has user attributes only since Linux 6.6.
const char* place() { return "/var/tmp"; }

// version 2; owner rw-, user `id` r--, group r--, mask r--, others ---
std::string acl_for(uint32_t id) {
  std::string acl("\2\0\0\0", 4);
  auto entry = [&](uint16_t tag, uint16_t perm, uint32_t who) {
    acl.append(reinterpret_cast<const char*>(&tag), 2);
    acl.append(reinterpret_cast<const char*>(&perm), 2);
    acl.append(reinterpret_cast<const char*>(&who), 4);
  };
  entry(1, 6, ~0u);
  entry(2, 4, id);
  entry(4, 4, ~0u);
  entry(16, 4, ~0u);
  entry(32, 0, ~0u);
  return acl;
}

void set(const std::string& path, const char* name, const std::string& value) {
  INFO(path << " " << name);
  REQUIRE(::lsetxattr(path.c_str(), name, value.data(), value.size(), 0) == 0);
}

std::string value_of(const std::string& path, const char* name) {
  char value[256];
  ssize_t size = ::lgetxattr(path.c_str(), name, value, sizeof value);
  return size < 0 ? "none" : std::string(value, static_cast<size_t>(size));
}

constexpr const char* kAcl = "system.posix_acl_access";
constexpr const char* kDefaultAcl = "system.posix_acl_default";

// All that tree() leaves out.
std::map<std::string, std::string> attributes(const std::string& top) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
    struct stat st{};
    ::lstat(entry.path().c_str(), &st);
    std::string text =
        fmt::format("{:o} {}:{} {:x}", st.st_mode, st.st_uid, st.st_gid,
                    S_ISCHR(st.st_mode) ? st.st_rdev : 0);
    for (const char* name : {"user.note", kAcl, kDefaultAcl})
      text += " " + value_of(entry.path(), name);
    all.emplace(entry.path().string().substr(top.size()), text);
  }
  return all;
}

bool is_root() { return ::geteuid() == 0; }

// Owners only where they can be given.
void own(const std::string& path, uid_t uid, gid_t gid) {
  if (is_root()) REQUIRE(::lchown(path.c_str(), uid, gid) == 0);
}

void there_and_back(Site& site) {
  auto before = attributes(site.ws);
  auto content = tree(site.ws);
  auto result = site.commit();
  INFO((result ? "" : result.error().text()));
  REQUIRE(result);
  CHECK(result->warnings.empty());
  CHECK(attributes(site.ws) == attributes(site.draft));
  CHECK(tree(site.ws) == tree(site.draft));
  CHECK(attributes(site.ws) != before);
  auto undone = undo({.ground = site.ground(), .number = {}, .meta = {}});
  INFO((undone ? "" : undone.error().text()));
  REQUIRE(undone);
  CHECK(attributes(site.ws) == before);
  CHECK(tree(site.ws) == content);
  REQUIRE(undo({.ground = site.ground(), .number = 2, .meta = {}}));
  CHECK(attributes(site.ws) == attributes(site.draft));
}

}  // namespace

TEST_CASE("owners, extended attributes and ACLs are carried and taken back") {
  Site site(place());
  for (const char* name : {"content", "attribute", "both", "goes", "acl"})
    put(site.ws + "/" + name, "old", 0640);
  put(site.ws + "/dir/in", "in");
  set(site.ws + "/both", "user.note", "old note");
  set(site.ws + "/goes", "user.note", "goes with it");
  set(site.ws + "/content", kAcl, acl_for(1001));
  set(site.ws + "/goes", kAcl, acl_for(1002));
  own(site.ws + "/content", 1001, 1002);
  own(site.ws + "/goes", 1003, 1003);
  site.branch();
  const std::string& d = site.draft;
  put(d + "/content", "new", 0640);
  set(d + "/content", kAcl, acl_for(1001));
  set(d + "/attribute", "user.note", "added");
  put(d + "/both", "new", 0640);
  set(d + "/both", "user.note", "new note");
  set(d + "/acl", kAcl, acl_for(1004));
  set(d + "/dir", kDefaultAcl, acl_for(1005));
  std::filesystem::remove(d + "/goes");
  put(d + "/made/file", "made");
  set(d + "/made", kDefaultAcl, acl_for(1006));
  set(d + "/made/file", "user.note", "made");
  own(d + "/both", 1007, 1008);
  own(d + "/made/file", 1009, 1009);
  there_and_back(site);
}

TEST_CASE("a default ACL above the stage does not show in what is committed") {
  Site site(place());
  set(site.state_path, kDefaultAcl, acl_for(1001));
  put(site.ws + "/file", "old");
  site.branch();
  put(site.draft + "/file", "new");
  put(site.draft + "/made", "made");
  there_and_back(site);
  CHECK(value_of(site.ws + "/file", kAcl) == "none");
}

TEST_CASE("special files come and go with a commit") {
  Site site(place());
  const std::string& w = site.ws;
  REQUIRE(::mkfifo((w + "/old-fifo").c_str(), 0640) == 0);
  put(w + "/becomes-fifo", "text");
  site.branch();
  const std::string& d = site.draft;
  std::filesystem::remove(d + "/old-fifo");
  std::filesystem::remove(d + "/becomes-fifo");
  REQUIRE(::mkfifo((d + "/becomes-fifo").c_str(), 0600) == 0);
  REQUIRE(::mkfifo((d + "/fifo").c_str(), 0620) == 0);
  REQUIRE(::mknod((d + "/socket").c_str(), S_IFSOCK | 0600, 0) == 0);
  if (is_root())
    REQUIRE(::mknod((d + "/null").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0);
  there_and_back(site);
}

// A change of attributes alone is made in place, without a stage.
TEST_CASE("what cannot be set in place is told") {
  Site site;
  put(site.ws + "/f", "text", 0644);
  std::string give = "chown -R 65533:65533 " + site.top;
  if (::geteuid() == 0) REQUIRE(::system(give.c_str()) == 0);
  pid_t pid = ::fork();
  if (pid == 0) {
    if (::geteuid() == 0 && (::setresgid(65533, 65533, 65533) != 0 ||
                             ::setresuid(65533, 65533, 65533) != 0))
      ::_exit(10);
    Item item;
    item.path = *RelPath::parse("f");
    item.old = (*Disk().look(site.root.get(), "f", true))->node;
    item.fresh = item.old;
    item.fresh->mode = 0600;
    item.fresh->uid = 0;
    auto result = transact(site.ground(), {item}, CommitMeta{});
    if (!result) ::_exit(11);
    ::_exit(result->warnings.size() == 1 &&
                    result->warnings[0].find("f: owner 0:") == 0
                ? 0
                : 12);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  CHECK(WEXITSTATUS(status) == 0);
  struct stat st{};
  ::stat((site.ws + "/f").c_str(), &st);
  CHECK((st.st_mode & 07777) == 0600);
}
