// SPDX-License-Identifier: Apache-2.0
#include "base/sys_namespace.h"

#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include "base/fd.h"
#include "base/sys_file.h"

namespace stoplog::sys {
namespace {

Status write_proc(const std::string& path, const std::string& text) {
  Fd fd = TRY(openat(AT_FDCWD, path, O_WRONLY));
  return write_full(fd.get(), text);
}

}  // namespace

Status write_id_maps(pid_t pid, IdMap user, IdMap group, bool deny_setgroups) {
  const std::string proc = fmt::format("/proc/{}/", pid);
  if (deny_setgroups) TRY(write_proc(proc + "setgroups", "deny"));
  TRY(write_proc(proc + "gid_map",
                 fmt::format("{} {} 1\n", group.inside, group.outside)));
  return write_proc(proc + "uid_map",
                    fmt::format("{} {} 1\n", user.inside, user.outside));
}

Status loopback_up() {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return fail_errno(errno);
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) < 0)
    return fail_errno(errno);
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) < 0)
    return fail_errno(errno);
  return {};
}

Status set_host_name(const std::string& name) {
  if (::sethostname(name.data(), name.size()) < 0) return fail_errno(errno);
  return {};
}

Status scrub_arguments() {
  // Fields 48-51 of stat(5): arg_start, arg_end, env_start, env_end. Field 2
  // may hold blanks and parentheses, so count from the last ')'.
  std::string stat = TRY(read_file(AT_FDCWD, "/proc/self/stat", 1 << 16));
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string skipped;
  for (int i = 3; i < 48; ++i) fields >> skipped;
  uintptr_t arg_start = 0, arg_end = 0, env_start = 0, env_end = 0;
  fields >> arg_start >> arg_end >> env_start >> env_end;
  if (!fields || arg_start == 0 || arg_end < arg_start || env_end < env_start)
    return fail(Code::kInternal, "cannot read /proc/self/stat");
  std::memset(reinterpret_cast<void*>(arg_start), 0, arg_end - arg_start);
  std::memset(reinterpret_cast<void*>(env_start), 0, env_end - env_start);
  static char* nothing[] = {nullptr};
  environ = nothing;
  return {};
}

}  // namespace stoplog::sys
