// SPDX-License-Identifier: Apache-2.0
#include "draft/daemon.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "base/sys_file.h"
#include "base/sys_process.h"
#include "base/unix_socket.h"
#include "draft/server.h"
#include "draft/store.h"
#include "draft/sweep.h"
#include "gate/gate.h"

namespace stoplog::draft {
namespace {

// Signals as a descriptor, so that they are one more event of the loop.
Result<Fd> take_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGHUP, SIG_IGN);  // the terminal it was started from may close
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return fail_errno(errno);
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return fail_errno(errno);
  return fd;
}

// A socket that is there is a dead daemon's: the lock says so.
Result<Fd> listen_at(const Layout& layout, const std::string& id) {
  Fd dir = TRY(sys::openat(AT_FDCWD, layout.run(id), O_RDONLY | O_DIRECTORY));
  Fd listener =
      TRY_CTX(listen_unix(dir.get(), kSocketFile, SOCK_SEQPACKET),
              fmt::format("cannot listen at '{}'", layout.socket(id)));
  TRY(sys::set_nonblocking(listener.get(), true));
  return listener;
}

// For whoever has another XDG_RUNTIME_DIR. Without it he waits in vain, which
// is no reason not to start on a full disk.
void tell_where(const Layout& layout, const std::string& id) {
  const std::string run = layout.run(id);
  const std::string link = layout.draft(id) + "/" + kServedAtLink;
  auto told = sys::readlinkat(AT_FDCWD, link);
  if (told && *told == run) return;
  // The lock is ours: what is there is a dead daemon's.
  if (told) {
    if (Status cleared = clear_dead_mounts_in(*told); !cleared)
      log::warn("{}", cleared.error().text());
    (void)sys::unlinkat(AT_FDCWD, *told + "/" + kSocketFile);
  }
  (void)sys::unlinkat(AT_FDCWD, link);
  if (Status made = sys::symlinkat(run, AT_FDCWD, link); !made)
    log::warn("cannot note where the daemon is: {}", made.error().text());
}

Status serve_draft(const DaemonOptions& options, const CoreFactory& factory,
                   Fd& ready) {
  Store store = TRY(Store::open(options.layout, Store::Create::kYes));
  Draft draft = TRY(store.load(options.draft));
  DraftLock lock =
      TRY(DraftLock::take(options.layout, options.draft, LockMode::kExclusive));
  TRY(make_private_dir(options.layout.run(options.draft)));
  tell_where(options.layout, options.draft);
  Fd signals = TRY(take_signals());
  // Notes are read by the jail's user; what is private says so by its mode.
  ::umask(022);
  std::unique_ptr<DaemonCore> core =
      TRY(factory(CoreContext{options.layout, draft, options.shape}));
  // What a person rejected before is there for the agent from the start.
  Fd dir = TRY(sys::openat(AT_FDCWD, options.layout.draft(options.draft),
                           O_RDONLY | O_DIRECTORY));
  if (auto plan = gate::load_plan(dir.get(), kPlanFile))
    (void)core->note(kRejectionsNote, gate::rejections_text(*plan));
  Fd listener = TRY(listen_at(options.layout, options.draft));
  if (ready) {
    (void)sys::write_full(ready.get(), std::string_view("ok\n"));
    ready.reset();
  }
  Server server(std::move(listener), *core,
                {.draft = options.draft,
                 .shape = options.shape.digest(),
                 .idle = options.idle,
                 .stop_fd = signals.get(),
                 .uid = ::geteuid()});
  Status served = server.serve();
  (void)sys::unlinkat(AT_FDCWD, options.layout.socket(options.draft));
  Status closed = core->close();
  core.reset();
  if (!served) return served;
  return closed;
}

}  // namespace

Status run_daemon(const DaemonOptions& options, const CoreFactory& factory) {
  Fd ready(options.ready_fd);
  Status ended = serve_draft(options, factory, ready);
  if (!ended && ready)
    (void)sys::write_full(ready.get(), encode(ErrorReply::from(ended.error())));
  return ended;
}

}  // namespace stoplog::draft
