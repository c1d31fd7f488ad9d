// SPDX-License-Identifier: Apache-2.0
#include "jail/home.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "jail/toolchains.h"

namespace stoplog::jail {
namespace {

constexpr std::array kCaches = {
    ".bun/install/cache", ".cache/ccache",         ".cache/deno",
    ".cache/go-build",    ".cache/node-gyp",       ".cache/pip",
    ".cache/pnpm",        ".cache/pypoetry/cache", ".cache/uv",
    ".cache/yarn",        ".cargo/git/db",         ".cargo/registry",
    ".gradle/caches",     ".gradle/wrapper",       ".ivy2/cache",
    ".m2/repository",     ".npm/_cacache",         ".nuget/packages",
    ".sbt/boot",          ".yarn/berry/cache",     "go/pkg/mod",
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text[0])))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return out;
}

bool wanted(const std::string& section, const std::string& key) {
  if (section == "user")
    return key == "name" || key == "email" || key == "useconfigonly";
  if (section == "init") return key == "defaultbranch";
  return section == "core" && key == "autocrlf";
}

}  // namespace

std::string choose_home(const std::string& real_home,
                        const std::string& workspace) {
  for (const std::string& home :
       {real_home, std::string("/home/user"), std::string("/var/home/user")})
    if (home.starts_with('/') && home != "/" && !is_within(home, workspace))
      return home;
  return "/mnt/home";
}

std::span<const char* const> home_caches() { return kCaches; }

HomePath home_path(std::string_view path) {
  auto beneath = [](std::string_view inner, std::string_view outer) {
    return outer.empty() ||
           (inner.starts_with(outer) && inner.size() > outer.size() &&
            inner[outer.size()] == '/');
  };
  for (std::string_view cache : kCaches) {
    if (beneath(path, cache)) return HomePath::kCache;
    if (path == cache || beneath(cache, path)) return HomePath::kWay;
  }
  return HomePath::kHidden;
}

std::string filter_git_config(std::string_view text) {
  std::string out, section, written;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('[')) {
      const size_t close = line.find(']');
      if (close == std::string_view::npos) {
        section.clear();
        continue;
      }
      // [section "sub"] becomes a name that nothing is wanted of.
      section = lower(trim(line.substr(1, close - 1)));
      line = trim(line.substr(close + 1));
    }
    // A value that goes on in the next line is none of those wanted.
    if (line.empty() || line[0] == '#' || line[0] == ';' || line.back() == '\\')
      continue;
    const std::string key = lower(trim(line.substr(0, line.find('='))));
    if (!wanted(section, key)) continue;
    if (written != section) out += "[" + section + "]\n";
    written = section;
    out += "\t" + std::string(line) + "\n";
  }
  return out;
}

}  // namespace stoplog::jail
