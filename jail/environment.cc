// SPDX-License-Identifier: Apache-2.0
#include "jail/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace stoplog::jail {
namespace {

// Names only of things that say how to talk to a person or where a toolchain
// is; no name that could carry a credential. LC_* passes too.
constexpr std::array kPassed = {
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "AR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CC",
    "CFLAGS",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "CMAKE_BUILD_PARALLEL_LEVEL",
    "CMAKE_GENERATOR",
    "COLORFGBG",
    "COLORTERM",
    "COLUMNS",
    "CONDA_DEFAULT_ENV",
    "CONDA_PREFIX",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "DENO_INSTALL",
    "EDITOR",
    "FORCE_COLOR",
    "GOFLAGS",
    "GOMODCACHE",
    "GOPATH",
    "GOPROXY",
    "GOROOT",
    "GOTOOLCHAIN",
    "GRADLE_HOME",
    "JAVA_HOME",
    "JDK_HOME",
    "LANG",
    "LANGUAGE",
    "LD",
    "LDFLAGS",
    "LESS",
    "LINES",
    "MAKEFLAGS",
    "MANPAGER",
    "MAVEN_HOME",
    "NODE_ENV",
    "NODE_VERSION",
    "NO_COLOR",
    "NVM_BIN",
    "NVM_DIR",
    "NVM_INC",
    "PAGER",
    "PKG_CONFIG_PATH",
    "PNPM_HOME",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "SDKMAN_DIR",
    "SOURCE_DATE_EPOCH",
    "TERM",
    "TERM_PROGRAM",
    "TZ",
    "VIRTUAL_ENV",
    "VISUAL",
    "VOLTA_HOME",
};

std::string_view name_of(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

// "https://user:secret@host": a proxy or an index with its password.
bool holds_credential(std::string_view value) {
  for (size_t at = value.find("://"); at != std::string_view::npos;
       at = value.find("://", at + 3)) {
    const std::string_view rest = value.substr(at + 3);
    if (rest.substr(0, rest.find_first_of("/ ,")).find('@') !=
        std::string_view::npos)
      return true;
  }
  return false;
}

}  // namespace

bool passes(std::string_view name) {
  if (name.starts_with("LC_")) return true;
  return std::find(kPassed.begin(), kPassed.end(), name) != kPassed.end();
}

std::vector<std::string> build_environment(const JailSpec& spec,
                                           const EnvironmentInput& input) {
  std::map<std::string, std::string> env;
  auto set = [&](std::string_view name, std::string value) {
    env[std::string(name)] = std::move(value);
  };
  auto take = [&](std::string_view entry) {
    const size_t at = entry.find('=');
    if (at == 0 || at == std::string_view::npos) return;
    set(entry.substr(0, at), std::string(entry.substr(at + 1)));
  };
  const bool all = spec.test_leave_out.has(Wall::kEnvironment);
  for (const std::string& entry : input.caller)
    if (all || (passes(name_of(entry)) && !holds_credential(entry)))
      take(entry);
  std::string path;
  for (const std::string& dir : input.path) {
    if (!path.empty()) path += ':';
    path += dir;
  }
  set("PATH", path.empty() ? "/usr/local/bin:/usr/bin:/bin" : path);
  set("HOME", spec.home);
  set("USER", spec.identity.user);
  set("LOGNAME", spec.identity.user);
  set("SHELL", input.shell.empty() ? "/bin/sh" : input.shell);
  set("PWD", input.cwd);
  set("TMPDIR", "/tmp");
  set("XDG_RUNTIME_DIR", fmt::format("/run/user/{}", spec.identity.uid));
  set("STOPLOG", "1");
  for (const std::string& entry : input.extra) {
    if (entry.find('=') != std::string::npos) {
      take(entry);
      continue;
    }
    for (const std::string& theirs : input.caller)
      if (name_of(theirs) == entry) take(theirs);
  }
  std::vector<std::string> out;
  for (const auto& [name, value] : env) out.push_back(name + "=" + value);
  return out;
}

}  // namespace stoplog::jail
