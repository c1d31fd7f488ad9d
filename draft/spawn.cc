// SPDX-License-Identifier: Apache-2.0
#include "draft/spawn.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/sys_file.h"
#include "base/sys_process.h"
#include "draft/protocol.h"

namespace stoplog::draft {
namespace {

constexpr uint64_t kMaxLog = 1u << 20;

Result<Fd> open_log(const Layout& layout, const std::string& id) {
  Fd log = TRY(sys::openat(AT_FDCWD, layout.daemon_log(id),
                           O_WRONLY | O_CREAT | O_APPEND, 0600));
  if (TRY(sys::fstat(log.get())).size > kMaxLog)
    TRY(sys::ftruncate(log.get(), 0));
  return log;
}

// Only async-signal-safe calls: between fork and exec.
[[noreturn]] void become_daemon(char* const* argv, int null, int log,
                                int ready) {
  if (::setsid() < 0) ::_exit(125);
  // The parent's death must not be waited for: fork once more.
  pid_t pid = ::fork();
  if (pid != 0) ::_exit(pid < 0 ? 125 : 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int s : {SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE})
    ::signal(s, SIG_DFL);
  if (::chdir("/") != 0 || ::dup2(null, 0) < 0 || ::dup2(log, 1) < 0 ||
      ::dup2(log, 2) < 0)
    ::_exit(125);
  // dup2 onto itself would keep O_CLOEXEC.
  if (ready == 3 ? ::fcntl(3, F_SETFD, 0) < 0 : ::dup2(ready, 3) < 0)
    ::_exit(125);
  (void)sys::close_range(4, ~0u, sys::CloseRange::kNow);
  ::execv(argv[0], argv);
  ::_exit(125);
}

std::string last_words(const Layout& layout, const std::string& id) {
  auto text = sys::read_file(AT_FDCWD, layout.daemon_log(id), kMaxLog * 2);
  if (!text || text->empty()) return "";
  while (text->ends_with('\n')) text->pop_back();
  return text->substr(text->rfind('\n') + 1);
}

}  // namespace

Status start_daemon(const Layout& layout, const std::string& id,
                    const StartOptions& options) {
  Fd null = TRY(sys::openat(AT_FDCWD, "/dev/null", O_RDWR));
  Fd log = TRY_CTX(open_log(layout, id), "cannot open the daemon's log");
  sys::Pipe ready = TRY(sys::pipe());
  std::vector<std::string> words = {options.program, "daemon", "--serve", id,
                                    "--ready-fd",    "3"};
  if (options.shape) {
    words.push_back("--shape");
    words.push_back(options.shape->to_text());
  }
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = ::fork();
  if (pid < 0) return fail_errno(errno, "cannot fork");
  if (pid == 0)
    become_daemon(argv.data(), null.get(), log.get(), ready.write.get());
  ready.write.reset();
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  bool answered = TRY(sys::wait_ready(
      ready.read.get(), POLLIN, static_cast<int>(options.patience.count())));
  if (!answered)
    return std::unexpected(
        Error(Code::kErrno, "it is not ready after a long while", ETIMEDOUT)
            .with_hint(fmt::format("see '{}'", layout.daemon_log(id))));
  std::string words_back = TRY(sys::read_all(ready.read.get(), 1u << 20));
  if (words_back == "ok\n") return {};
  if (words_back.empty())
    return std::unexpected(
        Error(Code::kInternal,
              fmt::format("it ended at once ({})", last_words(layout, id)))
            .with_hint(fmt::format("see '{}'", layout.daemon_log(id))));
  return std::unexpected(TRY(decode<ErrorReply>(words_back)).error());
}

}  // namespace stoplog::draft
