// SPDX-License-Identifier: Apache-2.0
#include "base/sys_fuse.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <string_view>

#include "base/sys_file.h"
#include "base/sys_mount.h"

namespace stoplog::sys {
namespace {

// "\040" and its like, as the kernel writes space, tab, newline and backslash.
std::string unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    bool octal = text[i] == '\\' && i + 3 < text.size() && text[i + 1] >= '0' &&
                 text[i + 1] <= '3';
    if (octal) {
      int value = (text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                  (text[i + 3] - '0');
      out += static_cast<char>(value);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    size_t at = text.find(by);
    out.push_back(text.substr(0, at));
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
  }
  return out;
}

template <typename Number>
Number number(std::string_view text) {
  Number value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Result<Fd> receive_fd(int socket) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = 0;
  do {
    n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return fail_errno(errno);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET ||
      header->cmsg_type != SCM_RIGHTS)
    return fail_errno(EPROTO);
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return Fd(fd);
}

// What fusermount3 said, on one line and bounded.
std::string complaint(int fd) {
  auto said = read_all(fd, 4096);
  std::string text = said ? *said : std::string();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

Result<int> wait_for(pid_t pid) {
  int status = 0;
  pid_t done = 0;
  do {
    done = ::waitpid(pid, &status, 0);
  } while (done < 0 && errno == EINTR);
  if (done < 0) return fail_errno(errno);
  return status;
}

struct SpawnActions {
  SpawnActions() { ::posix_spawn_file_actions_init(&actions); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t actions;
};

// The child's end of the socket becomes fd 3, its stderr our pipe; its
// environment is ours plus _FUSE_COMMFD.
Result<pid_t> spawn_fusermount(const std::vector<std::string>& arguments,
                               int socket, int error_pipe) {
  SpawnActions spawn;
  ::posix_spawn_file_actions_adddup2(&spawn.actions, error_pipe, 2);
  if (socket >= 0)
    ::posix_spawn_file_actions_adddup2(&spawn.actions, socket, 3);
  std::vector<std::string> words{"fusermount3"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string comm = "_FUSE_COMMFD=3";
  std::string path = "PATH=/usr/local/bin:/usr/bin:/bin";
  char* env[] = {path.data(), comm.data(), nullptr};
  if (socket < 0) env[1] = nullptr;
  pid_t pid = 0;
  for (const char* program : kFusermountPlaces) {
    int err =
        ::posix_spawn(&pid, program, &spawn.actions, nullptr, argv.data(), env);
    if (err == 0) return pid;
    if (err != ENOENT) return fail_errno(err, "cannot run {}", program);
  }
  return fail_errno(ENOENT, "fusermount3 is not installed");
}

}  // namespace

Result<Fd> open_fuse_device() {
  auto fd = openat(AT_FDCWD, "/dev/fuse", O_RDWR);
  if (!fd) return fail_errno(fd.error().err(), "cannot open /dev/fuse");
  return fd;
}

Result<Fd> clone_fuse_device(int device) {
  Fd clone = TRY(open_fuse_device());
  auto original = static_cast<uint32_t>(device);
  if (::ioctl(clone.get(), FUSE_DEV_IOC_CLONE, &original) < 0)
    return fail_errno(errno);
  return clone;
}

Status mount_fuse(int target, const std::string& type,
                  const std::string& source, unsigned long flags,
                  const std::string& options) {
  std::string path = "/proc/self/fd/" + std::to_string(target);
  if (::mount(source.c_str(), path.c_str(), type.c_str(), flags,
              options.c_str()) < 0)
    return fail_errno(errno);
  return {};
}

Status umount(const std::string& path, int flags) {
  if (::umount2(path.c_str(), flags | UMOUNT_NOFOLLOW) < 0)
    return fail_errno(errno);
  return {};
}

Result<Fd> run_fusermount(const std::vector<std::string>& arguments,
                          bool wants_device) {
  int pair[2] = {-1, -1};
  if (wants_device &&
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
    return fail_errno(errno);
  Fd ours(pair[0]);
  Fd theirs(pair[1]);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) < 0) return fail_errno(errno);
  Fd error_read(ends[0]);
  Fd error_write(ends[1]);
  pid_t pid = TRY(spawn_fusermount(arguments, theirs.get(), error_write.get()));
  theirs.reset();
  error_write.reset();
  Result<Fd> device = Fd();
  if (wants_device) device = receive_fd(ours.get());
  std::string said = complaint(error_read.get());
  int status = TRY(wait_for(pid));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail_errno(EPERM, "{}",
                      said.empty() ? "fusermount3 failed" : said.c_str());
  return device;
}

std::vector<MountEntry> parse_mountinfo(const std::string& text) {
  std::vector<MountEntry> out;
  for (std::string_view line : split(text, '\n')) {
    size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    auto left = split(line.substr(0, dash), ' ');
    auto right = split(line.substr(dash + 3), ' ');
    if (left.size() < 6 || right.size() < 2) continue;
    auto device = split(left[2], ':');
    if (device.size() != 2) continue;
    out.push_back({.id = number<uint64_t>(left[0]),
                   .major = number<unsigned>(device[0]),
                   .minor = number<unsigned>(device[1]),
                   .root = unescape(left[3]),
                   .path = unescape(left[4]),
                   .type = unescape(right[0]),
                   .source = unescape(right[1])});
  }
  return out;
}

Result<std::vector<MountEntry>> list_mounts() {
  Fd fd = TRY(openat(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY));
  return parse_mountinfo(TRY(read_all(fd.get(), uint64_t{64} << 20)));
}

Result<Fd> open_fuse_abort(unsigned minor) {
  std::string name = fmt::format("{}/abort", minor);
  auto shown = openat(AT_FDCWD, "/sys/fs/fuse/connections/" + name, O_WRONLY);
  if (shown) return shown;
  auto own = new_mount("fusectl", {}, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (!own) return shown;
  return openat(own->get(), name, O_WRONLY);
}

Status abort_fuse_connection(unsigned minor) {
  Fd fd = TRY(open_fuse_abort(minor));
  return write_full(fd.get(), "1");
}

Status keep_only_fd(int kept) {
  if (::unshare(CLONE_FILES) < 0) return fail_errno(errno);
  auto fd = static_cast<unsigned>(kept);
  if (fd > 0 && ::close_range(0, fd - 1, 0) < 0) return fail_errno(errno);
  if (::close_range(fd + 1, ~0u, 0) < 0) return fail_errno(errno);
  return {};
}

Status set_read_ahead(unsigned minor, unsigned kilobytes) {
  std::string path = fmt::format("/sys/class/bdi/0:{}/read_ahead_kb", minor);
  Fd fd = TRY(openat(AT_FDCWD, path, O_WRONLY));
  return write_full(fd.get(), std::to_string(kilobytes));
}

Result<uint64_t> fs_magic(int fd) {
  struct statfs s{};
  if (::fstatfs(fd, &s) < 0) return fail_errno(errno);
  return static_cast<uint64_t>(s.f_type);
}

}  // namespace stoplog::sys
