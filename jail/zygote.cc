// SPDX-License-Identifier: Apache-2.0
#include "jail/zygote.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <optional>

#include "base/sys_file.h"
#include "base/sys_namespace.h"
#include "base/sys_process.h"
#include "base/unix_socket.h"
#include "jail/cgroup.h"
#include "jail/enter.h"
#include "jail/limits.h"
#include "jail/probe_judge.h"
#include "jail/proc_tree.h"
#include "jail/scope.h"
#include "jail/wire.h"
#include "jail/zygote_main.h"

namespace stoplog::jail {
namespace {

// What another daemon's death left behind may need a moment to be empty.
constexpr std::chrono::milliseconds kSweepPatience{1000};
// Its children die just before its own end can be seen.
constexpr int kZygoteEndMs = 100;
// How long an init is waited for by nobody but whoever ends the last command.
constexpr int kSpareMs = 1000;

uint64_t namespace_flags(const JailSpec& spec) {
  const WallSet& without = spec.test_leave_out;
  uint64_t flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWCGROUP;
  if (!without.has(Wall::kPidNs)) flags |= CLONE_NEWPID;
  if (!without.has(Wall::kIpcNs)) flags |= CLONE_NEWIPC;
  if (spec.net == Net::kNone && !without.has(Wall::kNetNs))
    flags |= CLONE_NEWNET;
  return flags;
}

Error explain_clone(Error error) {
  const int err = error.err();
  Error told = std::move(error)
                   .context("cannot make the jail's namespaces")
                   .as(Code::kUnsupported);
  if (err == ENOSPC || err == EUSERS)
    return std::move(told).with_hint(
        "raise user.max_user_namespaces with sysctl(8)");
  if (err == EPERM || err == EACCES)
    return std::move(told).with_hint(
        "user namespaces are forbidden here (sysctl "
        "kernel.unprivileged_userns_clone, or AppArmor); see 'stoplog doctor'");
  return told;
}

// Whatever wall is missing, the user is told where to look.
template <typename T>
Result<T> hinted(Result<T> result) {
  if (result || result.error().code() != Code::kUnsupported ||
      !result.error().hint().empty())
    return result;
  return std::unexpected(std::move(result.error())
                             .with_hint("'stoplog doctor' tells what this "
                                        "machine lacks"));
}

}  // namespace

struct Zygote::State {
  Fd control;
  Fd pidfd;
  pid_t pid = -1;
  WallSet leave_out;
  std::mutex mutex;  // guards the socket's turns and what follows
  bool ready = false;
  std::optional<Error> broken;
  std::vector<std::string> left_out;
  std::vector<std::shared_ptr<const Fd>> memory;
  // An init that was asked for, its reply not yet read; or one that is ready.
  std::optional<CgroupSet> pending;
  std::shared_ptr<Running> spare;
  std::optional<CgroupPlaces> places;
  uint64_t next_group = 1;
  std::string owner;  // "PID-START" in the names of our groups

  Status wait_ready_locked();
  Result<Packet> receive_reply(Message message);
  Status request_spare();
  Status receive_spare();
  CgroupSet make_groups();
};

Zygote::Zygote(std::unique_ptr<State> state) : state_(std::move(state)) {}
Zygote::Zygote(Zygote&&) noexcept = default;
Zygote& Zygote::operator=(Zygote&&) noexcept = default;

Zygote::~Zygote() {
  if (!state_) return;
  (void)sys::pidfd_send_signal(state_->pidfd.get(), SIGKILL);
  state_->control.reset();
  (void)sys::wait_pidfd(state_->pidfd.get(), sys::Wait::kBlock);
  // Nobody is left in the groups of an init that was never used.
  state_->spare.reset();
  if (state_->pending) state_->pending->remove(kSweepPatience);
  if (state_->places) sweep_cgroups(*state_->places, kSweepPatience);
}

Result<Zygote> Zygote::start(const JailSpec& spec) {
  return hinted(start_now(spec));
}

Result<Zygote> Zygote::start_now(const JailSpec& spec) {
  const bool privileged = ::geteuid() == 0;
  const Identity& id = spec.identity;
  if (id.host_uid == 0 && !spec.test_leave_out.has(Wall::kIdentity))
    return fail(Code::kInternal, "a jail must not run as host root");
  const HostFacts facts = gather_facts(spec);
  ZygotePlan plan{.spec = spec,
                  .root = TRY(plan_root(spec, facts)),
                  .proc = plan_proc(spec, facts),
                  .counts = plan_user_counts(read_user_counts()),
                  .privileged = privileged};
  SocketPair pair = TRY(socket_pair(SOCK_SEQPACKET));
  auto state = std::make_unique<State>();
  clone_args args{};
  args.exit_signal = SIGCHLD;
  args.flags = namespace_flags(spec) | CLONE_CLEAR_SIGHAND;
  auto pid = sys::clone3(args, &state->pidfd);
  if (pid && spec.test_fail.has(Wall::kIdentity) && *pid == 0) ::_exit(0);
  if (!pid) return std::unexpected(explain_clone(std::move(pid).error()));
  if (*pid == 0) {
    pair.first.reset();
    run_zygote(std::move(plan), std::move(pair.second));
  }
  pair.second.reset();
  state->pid = *pid;
  state->control = std::move(pair.first);
  state->leave_out = spec.test_leave_out;
  state->owner = process_mark(::getpid());
  Zygote zygote(std::move(state));
  const Packet hello = TRY(receive(zygote.state_->control.get()));
  if (hello.data.empty())
    return fail(Code::kUnsupported, "the jail's first process died at once");
  if (Reader(hello.data).kind() != Message::kHello)
    return std::unexpected(decode_error(hello.data));
  auto mapped = sys::write_id_maps(
      *pid, {.inside = id.uid, .outside = id.host_uid},
      {.inside = id.gid, .outside = id.host_gid}, !privileged);
  if (!mapped) {
    Error error = std::move(mapped.error())
                      .context("cannot map the jail's user")
                      .as(Code::kUnsupported);
    if (privileged && error.err() == EPERM)
      return std::unexpected(std::move(error).with_hint(kFewIdsHint));
    return std::unexpected(std::move(error));
  }
  TRY(send_message(zygote.state_->control.get(), Writer(Message::kGo).data()));
  return zygote;
}

Status Zygote::State::wait_ready_locked() {
  if (broken) return std::unexpected(*broken);
  if (ready) return {};
  auto packet = receive(control.get());
  if (packet && !packet->data.empty() &&
      Reader(packet->data).kind() == Message::kReady) {
    Reader reader(packet->data);
    (void)reader.kind();
    left_out = reader.list();
    for (Fd& fd : packet->fds)
      memory.push_back(std::make_shared<const Fd>(std::move(fd)));
    ready = true;
    return {};
  }
  if (packet && !packet->data.empty())
    broken = decode_error(packet->data);
  else
    broken = Error(Code::kUnsupported, "the jail died while it was built");
  return std::unexpected(*broken);
}

Status Zygote::wait_ready() {
  std::lock_guard lock(state_->mutex);
  return hinted(state_->wait_ready_locked());
}

Result<Packet> Zygote::State::receive_reply(Message message) {
  Packet packet = TRY(receive(control.get()));
  // No command was handed over yet: another jail can be asked.
  if (packet.data.empty()) return fail_errno(EPIPE, "the jail is gone");
  if (Reader(packet.data).kind() != message || packet.fds.size() != 2)
    return std::unexpected(decode_error(packet.data).as(Code::kUnsupported));
  return packet;
}

CgroupSet Zygote::State::make_groups() {
  if (!places) {
    places = find_cgroups();
    sweep_cgroups(*places);
  }
  if (places->empty()) return {};
  const std::string name = fmt::format("stoplog-{}-{}", owner, next_group++);
  CgroupSet set = CgroupSet::create(*places, name);
  // Our session's group is not ours to divide; the user's systemd has others.
  if (set.version() == 0 && !places->v2.empty() &&
      enter_scope(find_scope_means())) {
    places = find_cgroups();
    set = CgroupSet::create(*places, name);
  }
  if (set.version() == 0) *places = {};  // not ours to use: ask no more
  if (set.version() == 1) places->v2.clear();
  return set;
}

Status Zygote::State::request_spare() {
  if (spare || pending || broken) return {};
  CgroupSet groups = make_groups();
  std::vector<Fd> joins;
  std::vector<int> fds;
  if (groups.version() == 1) {
    joins = TRY(groups.join_fds());
    for (const Fd& fd : joins) fds.push_back(fd.get());
  } else if (groups.clone_fd() >= 0) {
    fds.push_back(groups.clone_fd());
  }
  const auto version = static_cast<uint64_t>(groups.version());
  TRY_CTX(send_message(control.get(),
                       Writer(Message::kMakeInit).number(version).data(), fds),
          "the jail is gone");
  pending = std::move(groups);
  return {};
}

Status Zygote::State::receive_spare() {
  TRY(wait_ready_locked());
  if (!pending) return {};
  auto made = std::make_shared<Running>();
  made->cgroup_ = std::move(*pending);
  pending.reset();
  Packet packet = TRY(receive_reply(Message::kMakeInit));
  made->control_ = std::move(packet.fds[0]);
  made->pidfd_ = std::move(packet.fds[1]);
  auto init = pid_of(made->pidfd_.get());
  if (!init) {
    // It died before anybody asked it for anything: its last words say why.
    auto words = receive(made->control_.get());
    if (words && !words->data.empty())
      return std::unexpected(decode_error(words->data));
    // With the zygote, when that was killed: another jail can be asked.
    pollfd zygote{pidfd.get(), POLLIN, 0};
    if (::poll(&zygote, 1, kZygoteEndMs) == 1)
      return fail_errno(EPIPE, "the jail is gone");
    return fail(Code::kUnsupported, "the jail's init died at once");
  }
  made->pid_ = *init;
  if (made->cgroup_.clone_fd() >= 0)
    made->group_ = TRY(sys::dup(made->cgroup_.clone_fd()));
  spare = std::move(made);
  return {};
}

Result<Pty> Zygote::open_pty() {
  std::lock_guard lock(state_->mutex);
  // Replies come in the order of requests.
  TRY(state_->receive_spare());
  TRY_CTX(send_message(state_->control.get(), Writer(Message::kOpenPty).data()),
          "the jail is gone");
  Packet packet = TRY(state_->receive_reply(Message::kOpenPty));
  return Pty{std::move(packet.fds[0]), std::move(packet.fds[1])};
}

void Zygote::prepare_first() {
  std::lock_guard lock(state_->mutex);
  // Should the zygote be dead already, wait_ready() tells what it died of.
  (void)state_->request_spare();
}

void Zygote::prepare_next() {
  std::lock_guard lock(state_->mutex);
  // What goes wrong here goes wrong again, and is told, at the next spawn().
  if (!state_->request_spare() || !state_->pending) return;
  auto made = sys::wait_ready(state_->control.get(), POLLIN, kSpareMs);
  if (made && *made) (void)state_->receive_spare();
}

Result<std::shared_ptr<Running>> Zygote::spawn(const CommandSpec& command,
                                               const Stdio& stdio) {
  return hinted(spawn_now(command, stdio));
}

Result<std::shared_ptr<Running>> Zygote::spawn_now(const CommandSpec& command,
                                                   const Stdio& stdio) {
  if (command.argv.empty()) return fail(Code::kInvalid, "no command given");
  std::shared_ptr<Running> running;
  {
    std::lock_guard lock(state_->mutex);
    TRY(state_->wait_ready_locked());
    TRY(state_->request_spare());
    TRY(state_->receive_spare());
    running = std::move(state_->spare);
    running->memory_ = state_->memory;
  }
  running->argv_ = command.argv;
  running->limits_ = command.limits;
  TRY(running->start(command, {stdio.in, stdio.out, stdio.err}));
  return running;
}

Status Zygote::write_note(const std::string& name, const std::string& content) {
  std::lock_guard lock(state_->mutex);
  return send_large(state_->control.get(),
                    Writer(Message::kNote).text(name).text(content).data(), {});
}

pid_t Zygote::pid() const { return state_->pid; }
int Zygote::pidfd() const { return state_->pidfd.get(); }
const std::vector<std::string>& Zygote::left_out() const {
  return state_->left_out;
}

}  // namespace stoplog::jail
