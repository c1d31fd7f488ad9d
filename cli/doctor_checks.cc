// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_checks.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/sys_file.h"
#include "base/sys_fuse.h"
#include "base/sys_kernel.h"
#include "base/temp_file.h"
#include "base/units.h"
#include "cli/words.h"
#include "draft/store.h"
#include "fs/watch.h"

namespace stoplog::cli {

using jail::Check;
using jail::Verdict;

namespace {

// The nearest directory that exists, for a state directory that is not there.
std::string existing(std::string path) {
  while (path.size() > 1 && !sys::statat(AT_FDCWD, path))
    path.erase(std::max<size_t>(path.rfind('/'), 1));
  return path;
}

bool in_path(const char* program) {
  for (const char* dir : {"/usr/bin/", "/bin/", "/usr/local/bin/"})
    if (::access((std::string(dir) + program).c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace

Check check_kernel() {
  sys::KernelVersion version = sys::kernel_version();
  Check check{
      .name = "kernel",
      .detail = fmt::format("Linux {}.{}", version.major, version.minor),
      .hint = {}};
  if (auto new_enough = sys::need_kernel(); !new_enough) {
    check.verdict = Verdict::kFail;
    check.detail += ": too old";
    check.hint = new_enough.error().hint();
  }
  return check;
}

Check check_fuse() {
  Check check{
      .name = "fuse", .verdict = Verdict::kOk, .detail = "", .hint = ""};
  auto device = sys::open_fuse_device();
  if (!device) {
    check.verdict = Verdict::kFail;
    check.detail = device.error().text();
    check.hint = device.error().err() == EACCES
                     ? "sudo chmod 666 /dev/fuse"
                     : "sudo modprobe fuse, or install the fuse3 package";
    return check;
  }
  if (::geteuid() != 0 && !in_path("fusermount3")) {
    check.verdict = Verdict::kFail;
    check.detail = "fusermount3 is not installed";
    check.hint = "install the fuse3 package";
    return check;
  }
  check.detail = ::geteuid() == 0 ? "/dev/fuse opens; mounts by itself"
                                  : "/dev/fuse opens; mounts by fusermount3";
  return check;
}

Check check_watches() {
  Check check{
      .name = "inotify", .verdict = Verdict::kOk, .detail = "", .hint = ""};
  auto text =
      sys::read_file(AT_FDCWD, "/proc/sys/fs/inotify/max_user_watches", 64);
  uint64_t most = text ? ::strtoull(text->c_str(), nullptr, 10) : 0;
  check.detail =
      fmt::format("{} watches a user, a quarter of them for a draft", most);
  if (most < 65536) {
    check.verdict = Verdict::kWarn;
    check.detail +=
        "; in larger trees, edits of the real files show after a second";
    check.hint = "sudo sysctl fs.inotify.max_user_watches=524288";
  }
  return check;
}

Check check_reflink(const draft::Layout& layout) {
  Check check{
      .name = "reflink", .verdict = Verdict::kOk, .detail = "", .hint = ""};
  auto dir =
      sys::openat(AT_FDCWD, existing(layout.state), O_RDONLY | O_DIRECTORY);
  Result<TempFile> a = dir ? TempFile::create(dir->get(), 0600)
                           : std::unexpected(Error(dir.error().err()));
  Result<TempFile> b = a ? TempFile::create(dir->get(), 0600)
                         : std::unexpected(Error(a.error().err()));
  if (a && b && sys::write_full(a->fd(), std::string_view("x")) &&
      sys::clone_file(a->fd(), b->fd()))
    check.detail = "large files are pinned without copying";
  else
    check.detail =
        "not here: a large file that an agent changes is copied in the "
        "background";
  return check;
}

Check check_space(const draft::Layout& layout) {
  Check check{
      .name = "space", .verdict = Verdict::kOk, .detail = "", .hint = ""};
  struct statvfs st{};
  std::string place = existing(layout.state);
  if (::statvfs(place.c_str(), &st) != 0) {
    check.verdict = Verdict::kWarn;
    check.detail = fmt::format("cannot tell the room at '{}'", escape(place));
    return check;
  }
  uint64_t room = st.f_bavail * st.f_frsize;
  check.detail =
      fmt::format("{} free at '{}'", print_size(room), escape(place));
  if (room < (uint64_t{1} << 30)) {
    check.verdict = Verdict::kWarn;
    check.hint = "`stoplog gc` frees what no draft needs";
  }
  return check;
}

Check check_state(const draft::Layout& layout) {
  Check check{
      .name = "state", .verdict = Verdict::kOk, .detail = "", .hint = ""};
  auto store = draft::Store::open(layout, draft::Store::Create::kNo);
  if (!store) {
    check.verdict = Verdict::kFail;
    check.detail = store.error().text();
    check.hint = store.error().hint();
    return check;
  }
  auto drafts = store->list();
  auto damaged = store->list_damaged();
  check.detail =
      fmt::format("{} in '{}'", plural(drafts ? drafts->size() : 0, "draft"),
                  escape(layout.state));
  if (damaged && !damaged->empty()) {
    check.verdict = Verdict::kWarn;
    check.detail += fmt::format("; {} without a readable draft.json: {}",
                                damaged->size(), escape(damaged->front()));
  }
  return check;
}

Check check_workspace_fs(const std::string& path) {
  Check check{
      .name = "workspace", .verdict = Verdict::kOk, .detail = "", .hint = ""};
  auto dir = sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  auto magic = dir ? sys::fs_magic(dir->get())
                   : std::unexpected(Error(dir.error().err()));
  if (!magic) {
    check.verdict = Verdict::kFail;
    check.detail =
        fmt::format("cannot open '{}': {}", escape(path), magic.error().text());
    return check;
  }
  if (fs::reports_changes(*magic)) {
    check.detail = fmt::format("'{}' tells of changes", escape(path));
  } else {
    check.verdict = Verdict::kWarn;
    check.detail = fmt::format(
        "the file system of '{}' does not tell of changes: edits of the real "
        "files show after a second",
        escape(path));
  }
  return check;
}

}  // namespace stoplog::cli
