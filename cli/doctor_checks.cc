// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_checks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/escape.h"
#include "base/sys_file.h"
#include "base/sys_fuse.h"
#include "base/sys_inotify.h"
#include "base/sys_mount.h"
#include "base/sys_process.h"
#include "base/sys_uring.h"
#include "base/temp_file.h"
#include "draft/store.h"
#include "draft/sweep.h"

namespace stoplog::cli {

using jail::Check;

namespace {

// The nearest directory that exists, for a state directory that is not there.
std::string existing(std::string path) {
  while (path.size() > 1 && !sys::statat(AT_FDCWD, path))
    path.erase(std::max<size_t>(path.rfind('/'), 1));
  return path;
}

// Whether drafts can be made there, as `run` would.
Status can_use(const std::string& state) {
  std::string place = existing(state);
  Fd dir = TRY_CTX(sys::openat(AT_FDCWD, place, O_RDONLY | O_DIRECTORY),
                   fmt::format("cannot open directory '{}'", escape(place)));
  sys::Stat st = TRY(sys::fstat(dir.get()));
  if (place == state && st.uid != ::geteuid())
    return std::unexpected(
        Error(Code::kRefused,
              fmt::format("cannot use '{}': it belongs to user id {}, not {}",
                          escape(place), st.uid, ::geteuid()))
            .with_hint("with sudo, set HOME too (sudo -H), or run as that "
                       "user"));
  if (::faccessat(AT_FDCWD, place.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return fail_errno(errno, "cannot write in '{}'", escape(place));
  return {};
}

// A file with something in it at the top of the workspace.
Fd any_file(const std::string& workspace) {
  auto dir = sys::openat(AT_FDCWD, workspace, O_RDONLY | O_DIRECTORY);
  auto names = dir ? list_names(dir->get(), ".")
                   : std::unexpected(Error(dir.error().err()));
  if (!names) return {};
  for (const std::string& name : *names) {
    auto st = sys::statat(dir->get(), name);
    if (!st || !S_ISREG(st->mode) || st->size == 0) continue;
    auto file = sys::openat(dir->get(), name,
                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file) return std::move(*file);
  }
  return {};
}

bool clones(const std::string& state, const std::string& workspace) {
  auto dir = sys::openat(AT_FDCWD, existing(state), O_RDONLY | O_DIRECTORY);
  if (!dir) return false;
  auto to = TempFile::create(dir->get(), 0600);
  if (!to) return false;
  if (Fd from = any_file(workspace)) {
    return sys::clone_file(from.get(), to->fd()).has_value();
  }
  auto from = TempFile::create(dir->get(), 0600);
  return from && sys::write_full(from->fd(), std::string_view("x")) &&
         sys::clone_file(from->fd(), to->fd());
}

uint64_t number_in(const char* path) {
  auto text = sys::read_file(AT_FDCWD, path, 64);
  return text ? ::strtoull(text->c_str(), nullptr, 10) : 0;
}

// As a daemon of root's does it.
int mount_by_oneself(int device) {
  auto error_of = [](const Status& s) {
    return s ? 0 : s.error().errno_or_eio();
  };
  if (int error = error_of(sys::own_mount_namespace())) return error;
  auto root = sys::openat(AT_FDCWD, "/", O_PATH | O_DIRECTORY);
  if (!root) return root.error().errno_or_eio();
  return error_of(sys::mount_fuse(
      root->get(), "fuse", "stoplog", MS_NOSUID | MS_NODEV,
      fmt::format("fd={},rootmode=40000,user_id=0,group_id=0", device)));
}

// In a child, with which the mount goes. 0: well, or told of by another check.
int try_root_mount() {
  auto device = sys::open_fuse_device();
  if (!device) return 0;
  clone_args args{};
  args.exit_signal = SIGCHLD;
  Fd pidfd;
  auto pid = sys::clone3(args, &pidfd);
  if (!pid) return pid.error().errno_or_eio();
  if (*pid == 0) ::_exit(mount_by_oneself(device->get()));
  auto ended = sys::wait_pidfd(pidfd.get(), sys::Wait::kBlock);
  if (!ended || !*ended) return 0;
  return (*ended)->status.signal != 0 ? EPERM : (*ended)->status.code;
}

}  // namespace

Check check_kernel() { return judge_kernel(sys::kernel_version()); }

Check check_fuse() {
  auto device = sys::open_fuse_device();
  return judge_fuse({.error = device ? 0 : device.error().errno_or_eio()});
}

Check check_fusermount() {
  FusermountFacts facts{.root = ::geteuid() == 0};
  if (facts.root) facts.root_error = try_root_mount();
  for (const char* path : sys::kFusermountPlaces) {
    struct stat st{};
    if (::stat(path, &st) != 0) continue;
    facts.there = true;
    facts.setuid = (st.st_mode & S_ISUID) != 0 && st.st_uid == 0;
    break;
  }
  return judge_fusermount(facts);
}

Check check_watches() {
  auto watches = sys::inotify_max_watches();
  return judge_watches(
      {.watches = watches ? *watches : 0,
       .instances = number_in("/proc/sys/fs/inotify/max_user_instances")});
}

Check check_rings() {
  constexpr uint64_t kFusectl = 0x65735543;
  struct statfs st{};
  bool fusectl = ::statfs("/sys/fs/fuse/connections", &st) == 0 &&
                 static_cast<uint64_t>(st.f_type) == kFusectl;
  return judge_rings(
      {.there = ::access("/sys/module/fuse/parameters/enable_uring", F_OK) == 0,
       .on = sys::fuse_offers_uring(),
       .can_abort = fusectl || ::geteuid() == 0});
}

Check check_reflink(const draft::Layout& layout, const std::string& workspace) {
  return judge_reflink(clones(layout.state, workspace));
}

Check check_space(const draft::Layout& layout) {
  SpaceFacts facts{.place = existing(layout.state), .files = {}};
  struct statvfs st{};
  if (::statvfs(facts.place.c_str(), &st) != 0) {
    facts.error = errno;
    return judge_space(facts);
  }
  facts.bytes = st.f_bavail * st.f_frsize;
  if (st.f_files != 0) facts.files = st.f_favail;
  return judge_space(facts);
}

Check check_state(const draft::Layout& layout) {
  StateFacts facts{.place = layout.state,
                   .error = {},
                   .hint = {},
                   .damaged = {},
                   .dead_mounts = {}};
  auto look = [&]() -> Status {
    TRY(can_use(layout.state));
    draft::Store store =
        TRY(draft::Store::open(layout, draft::Store::Create::kNo));
    facts.drafts = TRY(store.list()).size();
    facts.damaged = TRY(store.list_damaged());
    facts.unfinished = TRY(store.count_unfinished());
    facts.dead_mounts = TRY(draft::list_dead_mounts(layout));
    return {};
  };
  if (auto looked = look(); !looked) {
    facts.error = looked.error().text();
    facts.hint = looked.error().hint();
  }
  return judge_state(facts);
}

WorkspaceFacts look_at_workspace(const std::string& path) {
  WorkspaceFacts facts{.path = path};
  auto dir = sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  auto magic = dir ? sys::fs_magic(dir->get())
                   : std::unexpected(Error(dir.error().err()));
  if (magic)
    facts.magic = *magic;
  else
    facts.error = magic.error().errno_or_eio();
  return facts;
}

}  // namespace stoplog::cli
