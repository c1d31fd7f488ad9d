// SPDX-License-Identifier: Apache-2.0
#include "base/open_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace stoplog {

OpenFiles::OpenFiles() {
  if (::getrlimit(RLIMIT_NOFILE, &before_) < 0) return;
  rlimit wide{.rlim_cur = before_.rlim_max, .rlim_max = before_.rlim_max};
  bool raised = ::setrlimit(RLIMIT_NOFILE, &wide) == 0;
  room_ = raised ? wide.rlim_cur : before_.rlim_cur;
}

OpenFiles::~OpenFiles() {
  if (room_ != 0) (void)::setrlimit(RLIMIT_NOFILE, &before_);
}

void OpenFiles::reserve(int fd, size_t count) const {
  count = std::min<size_t>(count, room_);
  if (count == 0) return;
  int last = ::fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(count - 1));
  if (last >= 0) ::close(last);
}

}  // namespace stoplog
