// SPDX-License-Identifier: Apache-2.0
#include "diff/git_config.h"

#include <algorithm>
#include <set>

namespace stoplog::diff {
namespace {

bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_key(char c) {
  return is_alpha(c) || (c >= '0' && c <= '9') || c == '-';
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' ||
         c == '\f';
}
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

// Byte by byte as git's own (config.c): a reader by lines can be made to take
// for a comment or a value what git takes for a key.
class ConfigReader {
 public:
  explicit ConfigReader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  GitConfig run() {
    while (at_ < text_.size()) {
      size_t start = at_;
      char c = take();
      if (is_space(c)) continue;
      bool fine = true;
      if (c == '#' || c == ';') {
        skip_line();
      } else if (c == '[') {
        section_.clear();
        fine = take_section();
      } else {
        fine = is_alpha(c) && take_entry(c);
      }
      if (fine) continue;
      // git stops here and refuses to work; what follows may be anything.
      keys_["?"].emplace_back(text_.substr(start));
      break;
    }
    return std::move(keys_);
  }

 private:
  // The end of the text is the end of a line, too.
  char take() {
    if (at_ >= text_.size()) return ended_ = true, '\n';
    char c = text_[at_++];
    if (c == '\r' && at_ < text_.size() && text_[at_] == '\n') c = text_[at_++];
    return c;
  }

  void skip_line() {
    while (take() != '\n') continue;
  }

  // [section], [section.sub], [section "sub"]
  bool take_section() {
    for (;;) {
      char c = take();
      if (ended_) return false;
      if (c == ']') return true;
      if (is_space(c)) return take_subsection(c);
      if (!is_key(c) && c != '.') return false;
      section_ += lower(c);
    }
  }

  bool take_subsection(char c) {
    while (is_space(c)) {
      if (c == '\n') return false;
      c = take();
    }
    if (c != '"') return false;
    section_ += '.';
    for (c = take(); c != '"'; c = take()) {
      if (c == '\\') c = take();
      if (c == '\n') return false;
      section_ += c;
    }
    return take() == ']';
  }

  bool take_entry(char first) {
    std::string name = section_ + "." + lower(first);
    char c = take();
    for (; is_key(c); c = take()) name += lower(c);
    while (c == ' ' || c == '\t') c = take();
    if (c == '\n') {
      keys_[name].emplace_back("true");
      return true;
    }
    std::string value;
    if (c != '=' || !take_value(value)) return false;
    keys_[name].push_back(std::move(value));
    return true;
  }

  bool take_value(std::string& value) {
    bool quoted = false;
    size_t spaces = 0;  // kept only when something follows
    for (;;) {
      char c = take();
      if (c == '\n') return !quoted;
      if (!quoted && is_space(c)) {
        spaces += !value.empty();
        continue;
      }
      if (!quoted && (c == '#' || c == ';')) {
        skip_line();
        return true;
      }
      if (c == '"') {
        quoted = !quoted;
        continue;
      }
      if (c == '\\') {
        c = take();
        if (c == '\n' && !ended_) continue;
        if (std::string_view("tbn\\\"").find(c) == std::string_view::npos)
          return false;
        value += '\\';  // "\n" is not "n"
      }
      value.append(spaces, ' ');
      spaces = 0;
      value += c;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  bool ended_ = false;
  std::string section_;
  GitConfig keys_;
};

// A remote by its name: a URL or a path there decides where to push to.
bool is_remote_name(const std::string& value) {
  return !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return is_key(c) || c == '_' || c == '.';
  });
}

// What `git init`, `git commit` and `git switch` write by themselves, and what
// names neither a command nor a place. An allow list: all else is a danger.
bool is_harmless(std::string_view key, const std::vector<std::string>& values) {
  static const std::set<std::string_view> kKeys = {
      "core.repositoryformatversion",
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
  if (kKeys.contains(key)) return true;
  if (!key.starts_with("branch.")) return false;
  if (key.ends_with(".remote"))
    return std::all_of(values.begin(), values.end(), is_remote_name);
  return key.ends_with(".merge") || key.ends_with(".rebase") ||
         key.ends_with(".description");
}

}  // namespace

GitConfig parse_git_config(std::string_view text) {
  return ConfigReader(text).run();
}

Risk risk_of_git_config(std::string_view old_text, std::string_view new_text) {
  GitConfig before = parse_git_config(old_text);
  GitConfig after = parse_git_config(new_text);
  std::vector<std::string> dangers, changed;
  auto sort_in = [&](const std::string& key,
                     const std::vector<std::string>& values) {
    (is_harmless(key, values) ? changed : dangers).push_back(key);
  };
  for (const auto& [key, values] : after) {
    auto it = before.find(key);
    if (it == before.end() || it->second != values) sort_in(key, values);
  }
  for (const auto& [key, values] : before)
    if (!after.contains(key)) sort_in(key, values);
  bool danger = !dangers.empty();
  changed.insert(changed.begin(), dangers.begin(), dangers.end());
  std::string names;
  for (size_t i = 0; i < changed.size() && i < 8; i++)
    names +=
        (i > 0 ? ", " : "") + (changed[i] == "?" ? "a line that cannot be read"
                                                 : changed[i].substr(0, 100));
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
