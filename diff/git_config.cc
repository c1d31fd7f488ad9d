// SPDX-License-Identifier: Apache-2.0
#include "diff/git_config.h"

#include <algorithm>

#include "base/strings.h"

namespace stoplog::diff {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return out;
}

// [section], [section "sub"], [section.sub]; empty when it is none.
std::string section_of(std::string_view line) {
  size_t close = line.rfind(']');
  if (close == std::string_view::npos) return "";
  std::string_view inside = trim(line.substr(1, close - 1));
  size_t quote = inside.find('"');
  if (quote == std::string_view::npos) return lower(inside);
  std::string_view sub = inside.substr(quote + 1);
  if (!sub.empty() && sub.back() == '"') sub.remove_suffix(1);
  return lower(trim(inside.substr(0, quote))) + "." + std::string(sub);
}

// What `git init`, `git commit` and `git switch` write by themselves, and what
// names neither a command nor a place. An allow list: all else is a danger.
bool is_harmless(std::string_view key) {
  constexpr std::string_view kKeys[] = {"core.repositoryformatversion",
                                        "core.filemode",
                                        "core.bare",
                                        "core.logallrefupdates",
                                        "core.symlinks",
                                        "core.ignorecase",
                                        "core.precomposeunicode",
                                        "core.autocrlf",
                                        "init.defaultbranch",
                                        "pull.rebase",
                                        "push.default",
                                        "user.name",
                                        "user.email"};
  if (std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys))
    return true;
  return key.starts_with("branch.") &&
         (key.ends_with(".merge") || key.ends_with(".remote") ||
          key.ends_with(".rebase") || key.ends_with(".description"));
}

}  // namespace

std::map<std::string, std::string> parse_git_config(std::string_view text) {
  std::map<std::string, std::string> out;
  std::string section = "?";
  std::string joined;  // a line that ends in a backslash goes on
  for (std::string_view raw : split(text, '\n')) {
    if (raw.ends_with('\\')) {
      joined += raw.substr(0, raw.size() - 1);
      continue;
    }
    joined += raw;
    std::string whole = std::move(joined);
    joined.clear();
    std::string_view line = trim(whole);
    if (line.starts_with('[')) {
      section = section_of(line);
      // A key may follow on the same line.
      size_t close = line.find(']');
      line =
          close == std::string_view::npos ? "" : trim(line.substr(close + 1));
    }
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    size_t equals = line.find('=');
    std::string key = section + "." + lower(trim(line.substr(0, equals)));
    out[key] += equals == std::string_view::npos
                    ? "true\n"
                    : std::string(trim(line.substr(equals + 1))) + "\n";
  }
  return out;
}

Risk risk_of_git_config(std::string_view old_text, std::string_view new_text) {
  auto before = parse_git_config(old_text);
  auto after = parse_git_config(new_text);
  std::vector<std::string> changed;
  for (const auto& [key, value] : after) {
    auto it = before.find(key);
    if (it == before.end() || it->second != value) changed.push_back(key);
  }
  for (const auto& [key, value] : before)
    if (!after.contains(key)) changed.push_back(key);
  std::stable_partition(
      changed.begin(), changed.end(),
      [](const std::string& key) { return !is_harmless(key); });
  bool danger = !changed.empty() && !is_harmless(changed.front());
  std::string names;
  for (size_t i = 0; i < changed.size() && i < 8; i++)
    names += (i > 0 ? ", " : "") + changed[i].substr(0, 100);
  if (changed.size() > 8)
    names += fmt::format(" and {} more", changed.size() - 8);
  if (danger)
    return {Level::kDanger, "git-config",
            "executes on host unasked: git's configuration can name commands "
            "to run; changes " +
                names};
  return {Level::kWarn, "git-config",
          names.empty() ? "rewrites git's configuration without a change of it"
                        : "changes git's configuration: " + names};
}

}  // namespace stoplog::diff
