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

void IgnoreFilter::RuleSet::add(Glob glob, std::string pattern) {
  if (pattern.ends_with('/')) pattern.pop_back();
  constexpr std::string_view kSpecial = "*?[\\/";
  if (pattern.find_first_of(kSpecial) == std::string::npos)
    names.insert(std::move(pattern));
  else if (pattern[0] == '*' &&
           pattern.find_first_of(kSpecial, 1) == std::string::npos)
    endings.push_back(pattern.substr(1));
  else
    others.push_back(std::move(glob));
}

bool IgnoreFilter::RuleSet::may_match(std::string_view below) const {
  std::string_view name = below.substr(below.rfind('/') + 1);
  if (!names.empty() && names.contains(std::string(name))) return true;
  for (const std::string& ending : endings)
    if (name.ends_with(ending)) return true;
  return std::any_of(others.begin(), others.end(), [&](const Glob& glob) {
    return glob.covers(below, true);
  });
}

IgnoreFilter::Rules IgnoreFilter::parse_rules(std::string_view text) {
  RuleSet rules;
  if (text.starts_with("\xEF\xBB\xBF")) return std::nullopt;
  for (std::string_view line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    // A "!" only takes back what another rule said.
    if (line.empty() || line[0] == '#' || line[0] == '!') continue;
    auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    if (space(line.front()) || space(line.back()) ||
        line.find("[:") != std::string_view::npos)
      return std::nullopt;
    std::string pattern = folded(line);
    auto glob = Glob::parse(pattern);
    if (!glob) return std::nullopt;
    rules.add(std::move(*glob), std::move(pattern));
  }
  return rules;
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

bool IgnoreFilter::add_rules(Rules rules, size_t from) {
  if (!rules) return false;
  if (!rules->empty()) reaches_.push_back({std::move(*rules), from});
  return true;
}

void IgnoreFilter::start() {
  if (ordinary_) return;
  std::string own = user_file("ignore");
  ordinary_ = is_ordinary() &&
              add_rules(read_rules(root_ + "/.git/info/exclude"), 0) &&
              (own.empty() || add_rules(read_rules(own), 0)) &&
              add_rules(read_rules(root_ + "/.gitignore"), 0);
  general_ = reaches_.size();
}

bool IgnoreFilter::matches(std::string_view lower) const {
  return std::any_of(reaches_.begin(), reaches_.end(), [&](const Reach& reach) {
    return reach.rules.may_match(lower.substr(reach.from));
  });
}

// Forgets the levels that `directory` does not share with directory_.
void IgnoreFilter::leave_for(std::string_view directory) {
  auto common = static_cast<size_t>(
      std::ranges::mismatch(directory, directory_).in1 - directory.begin());
  auto is_shared = [&](const Level& level) {
    return level.end <= common &&
           (level.end == directory.size() || directory[level.end] == '/');
  };
  while (!levels_.empty() && !is_shared(levels_.back())) levels_.pop_back();
  size_t kept = levels_.empty() ? general_ : levels_.back().reaches;
  reaches_.erase(reaches_.begin() + static_cast<long>(kept), reaches_.end());
}

bool IgnoreFilter::enter(std::string_view directory) {
  if (directory_ == directory) return !directory_may_;
  leave_for(directory);
  directory_ = directory;
  directory_may_ = true;  // until all above it is known
  std::string lower = folded(directory);
  Level last = levels_.empty() ? Level() : levels_.back();
  for (size_t at = levels_.empty() ? 0 : last.end + 1; at < directory.size();) {
    size_t end = std::min(directory.find('/', at), directory.size());
    if (matches(std::string_view(lower).substr(0, end))) return false;
    std::string real = root_ + "/" + std::string(directory.substr(0, end));
    last.exists = last.exists && sys::statat(AT_FDCWD, real).has_value();
    if (last.exists && !add_rules(read_rules(real + "/.gitignore"), end + 1))
      return false;
    last.end = end;
    last.reaches = reaches_.size();
    levels_.push_back(last);
    at = end + 1;
  }
  directory_may_ = false;
  return true;
}

bool IgnoreFilter::may_ignore(std::string_view path) {
  start();
  if (!*ordinary_) return true;
  size_t slash = path.rfind('/');
  if (!enter(slash == std::string_view::npos ? "" : path.substr(0, slash)))
    return true;
  return matches(folded(path));
}

}  // namespace stoplog::diff
