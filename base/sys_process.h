// SPDX-License-Identifier: Apache-2.0
// Process calls: pidfds, clone3, close_range, prctl, pipes, random bytes. As in
// sys_file.h, EINTR is handled here and every new fd is O_CLOEXEC.
//
// A pid can be reused while we hold it; a pidfd cannot. Nothing in the program
// sends a signal to a bare pid.
#pragma once

#include <linux/sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog::sys {

Result<Fd> pidfd_open(pid_t pid);
// ESRCH when it has been reaped.
Status pidfd_send_signal(int pidfd, int signal);

// How a process ended: `signal` is 0 and `code` its exit code, or `signal` is
// what killed it. The code that a shell would show is 128 + signal.
struct ExitStatus {
  int code = 0;
  int signal = 0;
  bool ok() const { return code == 0 && signal == 0; }
  int shell_code() const { return signal != 0 ? 128 + signal : code; }
};
struct Exited {
  ExitStatus status;
  rusage usage{};  // of the process and of the children that it waited for
};
// waitid(P_PIDFD, WEXITED). With kNow, nullopt while it still runs.
enum class Wait { kBlock, kNow };
Result<std::optional<Exited>> wait_pidfd(int pidfd, Wait wait);

// clone3(2) with fork semantics (no CLONE_VM): 0 in the child. With threads
// alive the child may only make async-signal-safe calls until it execs.
// `pidfd` takes CLONE_PIDFD; pass exit_signal and namespace flags in `args`.
Result<pid_t> clone3(clone_args args, Fd* pidfd);

// Closes first..last; with kMarkOnExec they are closed at exec instead.
enum class CloseRange { kNow, kMarkOnExec };
Status close_range(unsigned first, unsigned last, CloseRange how);

// PR_SET_PDEATHSIG; racy by nature, so callers check getppid() afterwards.
Status set_parent_death_signal(int signal);
Status set_no_new_privs();
Status set_dumpable(bool dumpable);
Status set_child_subreaper();
Status set_process_name(const char* name);  // the first 15 bytes count

struct Pipe {
  Fd read;
  Fd write;
};
Result<Pipe> pipe(int flags = 0);

// O_NONBLOCK of the open file description (shared with every duplicate).
Status set_nonblocking(int fd, bool on);
// To be called before anything is opened: a standard stream that the caller
// closed is held by one that can be neither read nor written (EBADF, as if it
// were closed), so that no file of ours takes its number, and with it our words
// or the command's. False: it cannot be held.
bool hold_standard_streams();

Status getrandom(std::span<std::byte> out);

// poll(2) for one fd: true when it is ready, false at the timeout. A negative
// timeout waits for ever.
Result<bool> wait_ready(int fd, short events, int timeout_ms);

}  // namespace stoplog::sys
