// SPDX-License-Identifier: Apache-2.0
// Leave to have more files open at once than a shell gives its programs (1,024
// as a rule), for as long as it stands: the soft limit becomes the hard one,
// and again what it was. Of the process: not for one that starts others
// meanwhile.
//
//   OpenFiles leave;
//   if (count < leave.room()) ...
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace stoplog {

class OpenFiles {
 public:
  OpenFiles();
  ~OpenFiles();
  OpenFiles(const OpenFiles&) = delete;
  OpenFiles& operator=(const OpenFiles&) = delete;
  // How many there may be, those that are open already included; 0: not known.
  size_t room() const { return room_; }
  // Makes room for `count` at once, with any open `fd`. The kernel's table
  // grows by doubling, and waits each time (synchronize_rcu, 10 ms and more)
  // when there are threads: before these are started.
  void reserve(int fd, size_t count) const;

 private:
  rlimit before_{};
  size_t room_ = 0;
};

}  // namespace stoplog
