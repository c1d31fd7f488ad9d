// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_device.h"

#include <sys/stat.h>

#include "catch_shim.h"

using namespace stoplog;
using namespace stoplog::fs;

TEST_CASE("mount options always ask the kernel for permission checks") {
  MountSpec spec{.path = "/m", .uid = 1000, .gid = 100, .allow_other = false};
  CHECK(mount_options(spec, 7, S_IFDIR | 0755) ==
        "fd=7,rootmode=40000,user_id=1000,group_id=100,default_permissions");
  spec.allow_other = true;
  CHECK(mount_options(spec, 9, S_IFDIR)
            .ends_with(",default_permissions,allow_other"));
}

TEST_CASE("fusermount3 gets nosuid nodev and a guarded mount point") {
  MountSpec spec{.path = "/run/user/1000/m",
                 .way = Way::kFusermount,
                 .allow_other = false};
  auto words = fusermount_arguments(spec);
  REQUIRE(words.size() == 4);
  CHECK(words[1] ==
        "rw,nosuid,nodev,fsname=stoplog,subtype=stoplog,default_permissions");
  CHECK(words[2] == "--");
  CHECK(words[3] == "/run/user/1000/m");
  spec.read_only = true;
  CHECK(fusermount_arguments(spec)[1].starts_with("ro,"));
}

TEST_CASE("a mount point that is not absolute is refused") {
  CHECK(mount_at({.path = "m"}).error().code() == Code::kInvalid);
  CHECK(mount_at({.path = "/m", .source = "a,b"}).error().code() ==
        Code::kInvalid);
}

TEST_CASE("mountinfo lines are parsed with their escapes undone") {
  auto mounts = sys::parse_mountinfo(
      "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - ext3 /dev/root rw\n"
      "garbage\n"
      "40 35 0:52 / /m rw,nosuid shared:3 - fuse.stoplog stoplog rw\n");
  REQUIRE(mounts.size() == 2);
  CHECK(mounts[0].path == "/mnt 2");
  CHECK(mounts[0].root == "/mnt1");
  CHECK(mounts[0].major == 98);
  CHECK(mounts[1].minor == 52);
  CHECK(mounts[1].id == 40);
  CHECK(mounts[1].type == "fuse.stoplog");
}

TEST_CASE("only our own mounts on top of a path are ours to clear") {
  auto mount = [](uint64_t id, std::string type) {
    return sys::MountEntry{.id = id,
                           .major = 0,
                           .minor = 50,
                           .root = "/",
                           .path = "/m",
                           .type = std::move(type),
                           .source = "s"};
  };
  using List = std::vector<sys::MountEntry>;
  CHECK(our_mounts(List{mount(1, "ext4")}, "/m").empty());
  auto two = our_mounts(
      List{mount(1, "ext4"), mount(2, kMountType), mount(3, kMountType)}, "/m");
  REQUIRE(two.size() == 2);
  CHECK(two[0].id == 3);
  CHECK(
      our_mounts(List{mount(2, kMountType), mount(3, "tmpfs")}, "/m").empty());
  CHECK(our_mounts(List{mount(2, kMountType)}, "/other").empty());
}
