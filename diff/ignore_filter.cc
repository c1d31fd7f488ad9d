// SPDX-License-Identifier: Apache-2.0
#include "diff/ignore_filter.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdlib>

#include "base/strings.h"
#include "base/sys_file.h"

namespace stoplog::diff {
namespace {

constexpr uint64_t kFileLimit = 1 << 20;

std::string folded(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return out;
}

// The text of a file; empty when there is none, unset when it is no plain file
// that we may read.
std::optional<std::string> text_of(const std::string& file) {
  auto text = sys::read_file(AT_FDCWD, file, kFileLimit);
  if (text) return std::move(*text);
  int error = text.error().err();
  if (error == ENOENT || error == ENOTDIR) return std::string();
  return std::nullopt;
}

std::string home(const char* variable, std::string_view below) {
  const char* value = ::getenv(variable);
  if (value == nullptr || *value == '\0') return "";
  return std::string(value) + std::string(below);
}

// Where the user keeps what git reads of him: $XDG_CONFIG_HOME/git/NAME.
std::string user_file(std::string_view name) {
  std::string place = home("XDG_CONFIG_HOME", "/git/");
  if (place.empty()) place = home("HOME", "/.config/git/");
  return place.empty() ? "" : place + std::string(name);
}

// Another file of rules may be named there, or in a file that it includes.
bool is_plain_config(const std::string& file) {
  if (file.empty()) return true;
  auto text = text_of(file);
  if (!text) return false;
  std::string lower = folded(*text);
  return lower.find("excludesfile") == std::string::npos &&
         lower.find("[include") == std::string::npos &&
         lower.find("worktreeconfig") == std::string::npos;
}

}  // namespace

IgnoreFilter::Rules IgnoreFilter::parse_rules(std::string_view text) {
  std::vector<Glob> globs;
  if (text.starts_with("\xEF\xBB\xBF")) return std::nullopt;
  for (std::string_view line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    // A "!" only takes back what another rule said.
    if (line.empty() || line[0] == '#' || line[0] == '!') continue;
    auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    if (space(line.front()) || space(line.back()) ||
        line.find("[:") != std::string_view::npos)
      return std::nullopt;
    auto glob = Glob::parse(folded(line));
    if (!glob) return std::nullopt;
    globs.push_back(std::move(*glob));
  }
  return globs;
}

IgnoreFilter::Rules IgnoreFilter::read_rules(const std::string& file) {
  auto text = text_of(file);
  if (!text) return std::nullopt;
  return parse_rules(*text);
}

bool IgnoreFilter::is_ordinary() const {
  auto git = sys::statat(AT_FDCWD, root_ + "/.git");
  if (!git || !S_ISDIR(git->mode)) return false;
  const std::string files[] = {root_ + "/.git/config",
                               home("HOME", "/.gitconfig"), user_file("config"),
                               "/etc/gitconfig"};
  return std::all_of(std::begin(files), std::end(files), is_plain_config);
}

const IgnoreFilter::Rules& IgnoreFilter::rules_in(std::string_view directory) {
  auto it = directories_.find(directory);
  if (it != directories_.end()) return it->second;
  std::string file = root_ + "/" + std::string(directory);
  if (!directory.empty()) file += "/";
  return directories_
      .emplace(std::string(directory), read_rules(file + ".gitignore"))
      .first->second;
}

bool IgnoreFilter::may_ignore(std::string_view path) {
  if (!ordinary_) {
    ordinary_ = is_ordinary();
    if (*ordinary_) {
      general_.push_back(read_rules(root_ + "/.git/info/exclude"));
      if (std::string own = user_file("ignore"); !own.empty())
        general_.push_back(read_rules(own));
    }
  }
  if (!*ordinary_) return true;
  std::string lower = folded(path);
  auto matches = [](const Rules& rules, std::string_view below) {
    return !rules ||
           std::any_of(rules->begin(), rules->end(), [&](const Glob& glob) {
             return glob.covers(below, true);
           });
  };
  for (const Rules& rules : general_)
    if (matches(rules, lower)) return true;
  // Each directory above speaks of what lies beneath it.
  for (size_t at = 0; at != std::string_view::npos;) {
    std::string_view directory = path.substr(0, at == 0 ? 0 : at - 1);
    if (matches(rules_in(directory), std::string_view(lower).substr(at)))
      return true;
    size_t slash = path.find('/', at);
    at = slash == std::string_view::npos ? slash : slash + 1;
  }
  return false;
}

}  // namespace stoplog::diff
