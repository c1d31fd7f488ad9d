// SPDX-License-Identifier: Apache-2.0
#include "jail/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/sys_file.h"
#include "base/sys_process.h"
#include "jail/channel.h"

namespace stoplog::jail {
namespace {

constexpr std::array kSignals = {SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGUSR1,
                                 SIGUSR2, SIGTSTP, SIGWINCH, SIGCONT};

}  // namespace

bool Streams::any_terminal() const {
  return std::find(kind.begin(), kind.end(), StreamKind::kTerminal) !=
         kind.end();
}

Streams look_at_streams() {
  Streams streams;
  for (int fd = 0; fd < 3; ++fd) {
    StreamKind& kind = streams.kind[static_cast<size_t>(fd)];
    if (::fcntl(fd, F_GETFD) < 0) {
      kind = StreamKind::kClosed;
      // The lowest free number is this one.
      if (::open("/dev/null", O_RDWR | O_CLOEXEC) != fd) continue;
    } else {
      kind = ::isatty(fd) == 1 ? StreamKind::kTerminal : StreamKind::kOther;
    }
  }
  return streams;
}

// Three streams, and with a terminal the keyboard and the screen.
enum : size_t { kStdin, kStdout, kStderr, kKeyboard, kScreen, kChannels };
constexpr std::array<size_t, 3> kOutputs = {kStdout, kStderr, kScreen};

struct Relay::State {
  Streams streams;
  std::array<Fd, 3> command;  // the command's ends, until sent()
  std::array<Channel, kChannels> channels;
  Fd master;
  std::optional<Terminal> terminal;
  int screen = -1;
  AskWatch asks;
  RelayResult result;
  bool ended = false;

  bool is_terminal(int stream) const {
    return streams.kind[static_cast<size_t>(stream)] == StreamKind::kTerminal;
  }
  // The terminal that is used for all three; -1: none.
  int own_terminal() const {
    for (int fd : {0, 1, 2})
      if (is_terminal(fd)) return fd;
    return -1;
  }
  void read_signals(int fd, const RelayHooks& hooks);
  void handle_event(const RelayHooks& hooks);
  void stop_together(const RelayHooks& hooks);
  void count(const RelayHooks& hooks);
  void turn(int signals, const RelayHooks& hooks);
  void drain(const RelayHooks& hooks);
};

Relay::Relay(std::unique_ptr<State> state) : state_(std::move(state)) {}
Relay::Relay(Relay&&) noexcept = default;
Relay::~Relay() = default;

Result<Relay> Relay::open(const Streams& streams) {
  auto state = std::make_unique<State>();
  state->streams = streams;
  for (int i = 0; i < 3; ++i) {
    if (state->is_terminal(i)) continue;
    const auto at = static_cast<size_t>(i);
    sys::Pipe pipe = TRY(sys::pipe());
    Fd& ours = i == 0 ? pipe.write : pipe.read;
    state->command[at] = std::move(i == 0 ? pipe.read : pipe.write);
    ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
    // A closed stream reads as empty, or takes what is written and forgets it.
    const bool closed = streams.kind[at] == StreamKind::kClosed;
    if (i != 0)
      state->channels[at] = Channel::output(
          std::move(ours), closed ? Fd() : own_stream(i, O_WRONLY));
    else if (!closed)
      state->channels[at] =
          Channel::input(own_stream(i, O_RDONLY), std::move(ours));
    if (i == 0 && !closed)
      state->channels[at].give_back(state->command[at].get());
  }
  return Relay(std::move(state));
}

std::array<int, 3> Relay::command_fds() const {
  return {state_->command[0].get(), state_->command[1].get(),
          state_->command[2].get()};
}

Result<std::string> Relay::terminal_shape() const {
  const int own = state_->own_terminal();
  if (own < 0) return std::string();
  return jail::terminal_shape(own);
}

void Relay::sent() {
  for (Fd& fd : state_->command) fd.reset();
}

Status Relay::use_terminal(Fd master) {
  State& s = *state_;
  s.master = std::move(master);
  const int own = s.own_terminal();
  if (own < 0) return fail(Code::kInternal, "no terminal to use");
  s.screen = s.is_terminal(1) ? 1 : s.is_terminal(2) ? 2 : 0;
  ::fcntl(s.master.get(), F_SETFL, O_NONBLOCK);
  s.channels[kKeyboard] =
      Channel::input(own_stream(own, O_RDONLY), TRY(sys::dup(s.master.get())));
  s.channels[kScreen] = Channel::output(TRY(sys::dup(s.master.get())),
                                        own_stream(s.screen, O_WRONLY));
  s.channels[kScreen].watch(&s.asks);
  using Output = Terminal::Output;
  s.terminal.emplace(TRY(Terminal::take(
      own, s.master.get(), s.screen == 1 ? Output::kRaw : Output::kKept)));
  return {};
}

void Relay::State::stop_together(const RelayHooks& hooks) {
  // What it wrote before it stopped (the key itself, echoed) stands before
  // what the shell says of it.
  for (size_t i : kOutputs) {
    if (channels[i].wants_read() >= 0) channels[i].read();
    if (channels[i].wants_write() >= 0) channels[i].write();
  }
  if (terminal) terminal->release();
  // The whole job stops, as it would had the key gone to it. Not by SIGSTOP:
  // where no shell could wake us again, the kernel ignores SIGTSTP.
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  ::kill(0, SIGTSTP);
  // Here again after SIGCONT.
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
  if (terminal) {
    (void)terminal->retake();
    terminal->resize();
  }
  if (hooks.on_signal) hooks.on_signal(SIGCONT);
}

void Relay::State::handle_event(const RelayHooks& hooks) {
  switch (hooks.on_event()) {
    case Event::kGoOn:
      return;
    case Event::kStopped:
      if (terminal) stop_together(hooks);
      return;
    case Event::kEnded:
      ended = true;
      return;
  }
}

void Relay::State::read_signals(int fd, const RelayHooks& hooks) {
  signalfd_siginfo info{};
  while (::read(fd, &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGWINCH) {
      if (terminal) terminal->resize();
      continue;
    }
    if (number == SIGCONT) {
      if (terminal) (void)terminal->retake();
      if (hooks.on_signal) hooks.on_signal(number);
      continue;
    }
    result.last_signal = number;
    if (hooks.on_signal) hooks.on_signal(number);
    // Without a terminal of its own the command cannot tell us; stop with it.
    if (number == SIGTSTP && !terminal) stop_together(hooks);
  }
}

void Relay::State::count(const RelayHooks& hooks) {
  uint64_t total = 0;
  for (size_t i : kOutputs) total += channels[i].delivered();
  result.output_bytes = total;
  if (!hooks.output_limit || result.output_limited) return;
  const uint64_t limit = *hooks.output_limit;
  // What there is beyond the limit has been read, and cannot be delivered.
  uint64_t over = 0;
  for (size_t i : kOutputs) {
    channels[i].allow(limit > total ? limit - total : 0);
    over += channels[i].beyond();
  }
  if (over == 0 && total <= limit) return;
  result.output_limited = true;
  for (size_t i : kOutputs) channels[i].discard();
  if (hooks.on_output_limit) hooks.on_output_limit(total + over);
}

void Relay::State::turn(int signals, const RelayHooks& hooks) {
  std::array<pollfd, 2 + 2 * kChannels> fds{};
  size_t used = 0;
  auto watch = [&](int fd, short events) -> size_t {
    fds[used] = {fd, events, 0};
    return used++;
  };
  const size_t event = watch(hooks.event_fd, POLLIN);
  std::array<size_t, kChannels> in{}, out{};
  for (size_t i = 0; i < kChannels; ++i) {
    // In the background the keyboard is not ours; reading it would stop us.
    const bool ours = i != kKeyboard || (terminal && terminal->taken());
    in[i] = watch(ours ? channels[i].wants_read() : -1, POLLIN);
    out[i] = watch(channels[i].wants_write(), POLLOUT);
  }
  // Looked at last, handled first: poll(2) goes through its list in order, so a
  // new size that came before a key is seen when the key is.
  const size_t signal = watch(signals, POLLIN);
  auto has_event = [&] { return hooks.has_event && hooks.has_event(); };
  if (::poll(fds.data(), used, has_event() ? 0 : -1) < 0) return;
  if (fds[signal].revents != 0) read_signals(signals, hooks);
  for (size_t i = 0; i < kChannels; ++i) {
    if (fds[in[i]].revents != 0) channels[i].read();
    if (fds[out[i]].revents == 0) continue;
    channels[i].write();
    count(hooks);  // the limit is of both together
  }
  count(hooks);
  if (fds[event].revents != 0 || has_event()) handle_event(hooks);
}

void Relay::State::drain(const RelayHooks& hooks) {
  // Everything inside is dead, so what is in the pipes is all there will be.
  channels[kStdin].close();
  channels[kKeyboard].close();
  for (size_t i : kOutputs) {
    channels[i].drain();
    count(hooks);
  }
}

RelayResult Relay::run(const RelayHooks& hooks) {
  sigset_t mask, before;
  sigemptyset(&mask);
  for (int number : kSignals) sigaddset(&mask, number);
  ::sigprocmask(SIG_BLOCK, &mask, &before);
  ::signal(SIGPIPE, SIG_IGN);
  Fd signals(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  State& s = *state_;
  // It may have changed before SIGWINCH was ours to see.
  if (s.terminal) s.terminal->resize();
  s.count(hooks);
  while (!s.ended) s.turn(signals.get(), hooks);
  s.drain(hooks);
  if (s.result.output_limited)
    for (size_t i : kOutputs) s.result.output_bytes += s.channels[i].beyond();
  s.result.open_line = s.terminal && s.asks.open_line();
  if (s.terminal && s.asks.asked()) s.terminal->await_answers(s.screen);
  s.terminal.reset();
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return s.result;
}

}  // namespace stoplog::jail
