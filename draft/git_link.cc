// SPDX-License-Identifier: Apache-2.0
#include "draft/git_link.h"

#include <fcntl.h>
#include <stdlib.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>

#include "base/sys_file.h"
#include "draft/workspace.h"

namespace stoplog::draft {
namespace {

constexpr uint64_t kMaxPointer = 8 << 10;
constexpr uint64_t kMaxConfig = 1 << 20;
constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Resolved by the kernel; nullopt when it is not there.
std::optional<std::string> resolve(const std::string& base,
                                   std::string_view path) {
  if (path.empty() || path.find('\0') != path.npos) return std::nullopt;
  const std::string full = path.starts_with('/')
                               ? std::string(path)
                               : fmt::format("{}/{}", base, path);
  std::unique_ptr<char, void (*)(void*)> real(::realpath(full.c_str(), nullptr),
                                              ::free);
  if (!real) return std::nullopt;
  return std::string(real.get());
}

// The one line of a file such as commondir.
std::optional<std::string> pointer(const std::string& file) {
  auto text = sys::read_file(AT_FDCWD, file, kMaxPointer);
  if (!text) return std::nullopt;
  return std::string(trimmed(*text));
}

bool is_dir(const std::string& path) {
  auto stat = sys::statat(AT_FDCWD, path);
  return stat && S_ISDIR(stat->mode);
}

bool looks_like_git(const std::string& dir) {
  return is_dir(dir + "/objects") && is_dir(dir + "/refs") &&
         sys::statat(AT_FDCWD, dir + "/HEAD").has_value();
}

// What is to be shown of the git directory `dir`, when it is `workspace`'s.
std::optional<std::string> claimed(const std::string& dir,
                                   const std::string& workspace) {
  if (auto common = pointer(dir + "/commondir")) {
    auto top = resolve(dir, *common);
    auto back = pointer(dir + "/gitdir");
    if (!top || !back || !looks_like_git(*top)) return std::nullopt;
    // As git has it, worktrees/NAME beneath the common directory.
    const size_t slash = dir.rfind('/');
    if (dir.substr(0, slash) != *top + "/worktrees") return std::nullopt;
    auto file = resolve(dir, *back);
    if (!file || *file != workspace + "/.git") return std::nullopt;
    return top;
  }
  if (!looks_like_git(dir)) return std::nullopt;
  auto config = sys::read_file(AT_FDCWD, dir + "/config", kMaxConfig);
  if (!config) return std::nullopt;
  auto tree = resolve(dir, core_worktree(*config));
  if (!tree || *tree != workspace) return std::nullopt;
  return dir;
}

// "https://TOKEN@host" too; "ssh://git@host" is no secret.
bool has_secret_url(std::string_view text) {
  for (size_t at = text.find("://"); at != text.npos;
       at = text.find("://", at + 3)) {
    const std::string_view rest = text.substr(at + 3);
    const std::string_view host =
        rest.substr(0, rest.find_first_of("/ \t\n\""));
    const size_t user_end = host.find('@');
    if (user_end == host.npos) continue;
    const bool web = text.substr(0, at).ends_with("http") ||
                     text.substr(0, at).ends_with("https");
    if (web || host.substr(0, user_end).find(':') != host.npos) return true;
  }
  return false;
}

}  // namespace

bool tells_credential(std::string_view config) {
  const std::string text = lower(config);
  if (has_secret_url(text)) return true;
  // A URL may be cut in two by a line's end.
  std::string joined = text;
  for (size_t at; (at = joined.find("\\\n")) != std::string::npos;)
    joined.erase(at, 2);
  if (has_secret_url(joined)) return true;
  for (size_t at = 0; at < joined.size();) {
    const size_t end = std::min(joined.find('\n', at), joined.size());
    const std::string_view line = std::string_view(joined).substr(at, end - at);
    at = end + 1;
    const std::string_view key = trimmed(line.substr(0, line.find('=')));
    for (const char* word :
         {"extraheader", "pass", "password", "secret", "token"})
      if (key.ends_with(word)) return true;
  }
  return false;
}

std::string core_worktree(std::string_view config) {
  bool in_core = false;
  std::string found;
  for (size_t at = 0; at < config.size();) {
    const size_t end = std::min(config.find('\n', at), config.size());
    const std::string_view line = trimmed(config.substr(at, end - at));
    at = end + 1;
    if (line.starts_with('[')) {
      in_core = lower(line) == "[core]";
      continue;
    }
    const size_t equals = line.find('=');
    if (!in_core || equals == line.npos) continue;
    if (lower(trimmed(line.substr(0, equals))) != "worktree") continue;
    std::string_view value = trimmed(line.substr(equals + 1));
    if (value.size() >= 2 && value.starts_with('"') && value.ends_with('"'))
      value = value.substr(1, value.size() - 2);
    found = value;
  }
  return found;
}

GitLink find_git_link(const std::string& workspace,
                      const std::vector<std::string>& hidden) {
  const std::string file = workspace + "/.git";
  auto stat = sys::statat(AT_FDCWD, file);
  if (!stat || !S_ISREG(stat->mode) || stat->size > kMaxPointer) return {};
  auto text = pointer(file);
  constexpr std::string_view kPrefix = "gitdir:";
  if (!text || !text->starts_with(kPrefix)) return {};
  auto dir = resolve(workspace,
                     trimmed(std::string_view(*text).substr(kPrefix.size())));
  if (!dir) return {.refused = "it is not there"};
  auto shown = claimed(*dir, workspace);
  if (!shown) return {.refused = "it does not name this work tree in turn"};
  if (overlaps(*shown, workspace) ||
      std::ranges::any_of(hidden, [&](const std::string& path) {
        return overlaps(*shown, path);
      }))
    return {.refused = "it lies where nothing may be shown"};
  for (const std::string& config :
       {*shown + "/config", *shown + "/config.worktree",
        *dir + "/config.worktree"}) {
    auto content = sys::read_file(AT_FDCWD, config, kMaxConfig);
    if (content ? tells_credential(*content) : content.error().err() != ENOENT)
      return {.refused = "its configuration has a credential"};
  }
  return {.path = *shown};
}

}  // namespace stoplog::draft
