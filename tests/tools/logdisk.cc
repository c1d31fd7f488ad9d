// SPDX-License-Identifier: Apache-2.0
// logdisk: a disk for tests that remembers the order of what was written.
//
//   logdisk LOG SIZE DIR
//
// Serves DIR/disk, a file of SIZE bytes for a loop device to stand on, until it
// is unmounted; prints "ready" first. Each write is appended to LOG as offset
// and length (8 bytes each, of this machine) and its bytes, each flush as an
// offset of all ones and length 0. What a disk that loses its power has is any
// such beginning, less any of the writes since its last flush:
// tests/power_loss.py makes these.
#define FUSE_USE_VERSION 314
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr fuse_ino_t kDisk = 2;
constexpr const char* kName = "disk";

struct Disk {
  int log = -1;
  int data = -1;  // a file without a name
  off_t size = 0;
};
Disk* disk_of(fuse_req_t request) {
  return static_cast<Disk*>(fuse_req_userdata(request));
}

struct stat stat_of(const Disk& disk, fuse_ino_t node) {
  struct stat st{};
  st.st_ino = node;
  st.st_nlink = 1;
  st.st_mode = node == kDisk ? S_IFREG | 0600 : S_IFDIR | 0700;
  if (node == kDisk) st.st_size = disk.size;
  return st;
}

bool note(const Disk& disk, uint64_t offset, const char* bytes, size_t length) {
  const uint64_t head[2] = {offset, length};
  std::string entry(reinterpret_cast<const char*>(head), sizeof head);
  entry.append(bytes, length);
  auto size = static_cast<ssize_t>(entry.size());
  return ::write(disk.log, entry.data(), entry.size()) == size;
}

void lookup(fuse_req_t request, fuse_ino_t, const char* name) {
  if (std::strcmp(name, kName) != 0) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_entry_param entry{};
  entry.ino = kDisk;
  entry.attr = stat_of(*disk_of(request), kDisk);
  fuse_reply_entry(request, &entry);
}

void getattr(fuse_req_t request, fuse_ino_t node, fuse_file_info*) {
  struct stat st = stat_of(*disk_of(request), node);
  fuse_reply_attr(request, &st, 3600);
}

void open(fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
  info->direct_io = 1;  // what is written comes here before it is answered
  fuse_reply_open(request, info);
}

void read(fuse_req_t request, fuse_ino_t, size_t size, off_t offset,
          fuse_file_info*) {
  std::string bytes(size, '\0');
  ssize_t n = ::pread(disk_of(request)->data, bytes.data(), size, offset);
  if (n < 0)
    fuse_reply_err(request, errno);
  else
    fuse_reply_buf(request, bytes.data(), static_cast<size_t>(n));
}

void write(fuse_req_t request, fuse_ino_t, const char* bytes, size_t size,
           off_t offset, fuse_file_info*) {
  const Disk& disk = *disk_of(request);
  if (::pwrite(disk.data, bytes, size, offset) != static_cast<ssize_t>(size) ||
      !note(disk, static_cast<uint64_t>(offset), bytes, size))
    fuse_reply_err(request, EIO);
  else
    fuse_reply_write(request, size);
}

void fsync(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) {
  fuse_reply_err(request, note(*disk_of(request), UINT64_MAX, "", 0) ? 0 : EIO);
}

int serve(Disk& disk, const char* dir) {
  fuse_lowlevel_ops operations{};
  operations.lookup = lookup;
  operations.getattr = getattr;
  operations.open = open;
  operations.read = read;
  operations.write = write;
  operations.fsync = fsync;
  char name[] = "logdisk";
  char* argv[] = {name, nullptr};
  fuse_args arguments = FUSE_ARGS_INIT(1, argv);
  fuse_session* session =
      fuse_session_new(&arguments, &operations, sizeof operations, &disk);
  if (session == nullptr || fuse_session_mount(session, dir) != 0) return 1;
  std::puts("ready");
  std::fflush(stdout);
  int status = fuse_session_loop(session);
  fuse_session_unmount(session);
  fuse_session_destroy(session);
  return status < 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: logdisk LOG SIZE DIR\n", stderr);
    return 2;
  }
  std::string log = argv[1];
  Disk disk;
  disk.log = ::open(argv[1],
                    O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  std::string beside = log.substr(0, log.rfind('/') + 1);
  disk.data = ::open(beside.empty() ? "." : beside.c_str(),
                     O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  disk.size = std::atoll(argv[2]);
  if (disk.log < 0 || disk.data < 0 || ::ftruncate(disk.data, disk.size) != 0) {
    std::perror("logdisk");
    return 1;
  }
  return serve(disk, argv[3]);
}
