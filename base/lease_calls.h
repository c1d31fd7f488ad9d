// SPDX-License-Identifier: Apache-2.0
// Does anybody wait for a read lease of ours (base/sys_attr.h)? The kernel says
// so with a signal, SIGURG, which is ignored unless one of these stands:
//
//   LeaseCalls calls;
//   TRY(sys::take_read_lease(fd));
//   TRY(sys::call_process(fd, ::getpid()));  // a thread may end before
//   if (calls.take()) ...           // somebody waits, or did
//
// A flag and no system call. One at a time in a process; any thread asks. Not
// an answer but a reason to look: signals of others set it as well.
#pragma once

#include <signal.h>

namespace stoplog {

class LeaseCalls {
 public:
  LeaseCalls();
  ~LeaseCalls();
  LeaseCalls(const LeaseCalls&) = delete;
  LeaseCalls& operator=(const LeaseCalls&) = delete;
  // Since it was made, or since the last take().
  bool any() const;
  bool take();

 private:
  struct sigaction before_{};
};

}  // namespace stoplog
