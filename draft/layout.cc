// SPDX-License-Identifier: Apache-2.0
#include "draft/layout.h"

#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>

#include "base/sys_file.h"

namespace stoplog::draft {
namespace {

std::string environment(const char* name) {
  const char* value = ::getenv(name);
  return value != nullptr ? value : "";
}

// The XDG rule: a value that is not absolute counts as unset.
std::string xdg(const char* name, const std::string& home, const char* rest) {
  std::string value = environment(name);
  if (value.starts_with('/')) return value;
  return home.starts_with('/') ? home + rest : "";
}

// A runtime directory that is not ours alone (su without a login session keeps
// the other user's) is not used.
bool is_own_dir(const std::string& path) {
  auto fd = sys::openat(AT_FDCWD, path, O_PATH | O_DIRECTORY);
  if (!fd) return false;
  auto st = sys::fstat(fd->get());
  return st && st->uid == ::geteuid() && (st->mode & 022) == 0;
}

}  // namespace

Result<Layout> Layout::from_environment() {
  std::string home = environment("HOME");
  Layout out;
  std::string state = xdg("XDG_STATE_HOME", home, "/.local/state");
  std::string config = xdg("XDG_CONFIG_HOME", home, "/.config");
  if (state.empty() || config.empty())
    return std::unexpected(
        Error(Code::kInvalid,
              "cannot find the state directory: HOME is not set")
            .with_hint("set HOME, or XDG_STATE_HOME and XDG_CONFIG_HOME"));
  out.state = state + "/stoplog";
  out.config = config + "/stoplog";
  std::string runtime = environment("XDG_RUNTIME_DIR");
  if (runtime.starts_with('/') && is_own_dir(runtime))
    out.runtime = runtime + "/stoplog";
  return out;
}

std::string Layout::draft(std::string_view id) const {
  return drafts() + "/" + std::string(id);
}
std::string Layout::journal(std::string_view id) const {
  return draft(id) + "/" + kJournalFile;
}
std::string Layout::segments(std::string_view id) const {
  return draft(id) + "/" + kSegmentsDir;
}
std::string Layout::ledger(std::string_view id) const {
  return draft(id) + "/" + kLedgerFile;
}
std::string Layout::plan(std::string_view id) const {
  return draft(id) + "/" + kPlanFile;
}
std::string Layout::daemon_log(std::string_view id) const {
  return draft(id) + "/" + kDaemonLogFile;
}

std::string Layout::run(std::string_view id) const {
  constexpr size_t kPathMax = sizeof(sockaddr_un::sun_path);
  if (!runtime.empty()) {
    std::string dir = runtime + "/" + std::string(id);
    if (dir.size() + 1 + sizeof kSocketFile <= kPathMax) return dir;
  }
  return state + "/" + kRunDir + "/" + std::string(id);
}
std::string Layout::socket(std::string_view id) const {
  return run(id) + "/" + kSocketFile;
}
std::string Layout::mount(std::string_view id) const {
  return run(id) + "/" + kMountDir;
}

namespace {

Status make_dirs(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    std::string part = path.substr(0, at);
    auto made = sys::mkdirat(AT_FDCWD, part, 0700);
    if (!made && made.error().err() != EEXIST &&
        (at == std::string::npos || made.error().err() != EROFS))
      return fail_errno(made.error().err(), "cannot make directory '{}'", part);
    if (at == std::string::npos) return {};
  }
}

}  // namespace

Status make_private_dir(const std::string& path) {
  // Mostly it is there.
  auto there = sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!there) {
    TRY(make_dirs(path));
    there = sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  }
  Fd fd = TRY_CTX(std::move(there),
                  fmt::format("cannot open directory '{}'", path));
  sys::Stat st = TRY(sys::fstat(fd.get()));
  if (st.uid != ::geteuid())
    return std::unexpected(
        Error(Code::kRefused,
              fmt::format("cannot use '{}': it belongs to user id {}, not {}",
                          path, st.uid, ::geteuid()))
            .with_hint("with sudo, set HOME too (sudo -H), or run as that "
                       "user"));
  if ((st.mode & 077) != 0)
    TRY_CTX(sys::fchmod(fd.get(), 0700),
            fmt::format("cannot make '{}' private", path));
  return {};
}

Status make_state_dir(const std::string& path) {
  Status made = make_private_dir(path);
  if (made || !made.error().hint().empty()) return made;
  return std::unexpected(std::move(made).error().with_hint(kStateHint));
}

}  // namespace stoplog::draft
