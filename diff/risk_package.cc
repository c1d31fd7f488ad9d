// SPDX-License-Identifier: Apache-2.0
#include "diff/risk_package.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace stoplog::diff {
namespace {

constexpr size_t kPackageLimit = 1 << 20;

using Json = nlohmann::json;

// Values nested deeper than any such file has them are left out: a million
// brackets would take as many stack frames to copy.
Json parse_shallow(std::string_view text) {
  constexpr int kDepth = 32;
  if (text.size() > kPackageLimit) return Json(Json::value_t::discarded);
  return Json::parse(
      text,
      [](int depth, Json::parse_event_t, Json&) { return depth <= kDepth; },
      false, true);
}

// Null unless it is an object with an object of that name.
Json member(const Json& from, const char* name) {
  if (!from.is_object()) return nullptr;
  auto it = from.find(name);
  return it != from.end() && it->is_object() ? *it : Json(nullptr);
}

// npm-scripts(7), "Life Cycle Operation Order" of `npm ci` and `npm install`;
// "dependencies" with its two, after anything that changes node_modules; those
// of an uninstall for npm before 7. The last one is pnpm's.
bool npm_runs(std::string_view script) {
  constexpr std::string_view kAtInstall[] = {
      "preinstall",      "install",           "postinstall",  "preprepare",
      "prepare",         "postprepare",       "prepublish",   "dependencies",
      "predependencies", "postdependencies",  "preuninstall", "uninstall",
      "postuninstall",   "pnpm:devPreinstall"};
  return std::find(std::begin(kAtInstall), std::end(kAtInstall), script) !=
         std::end(kAtInstall);
}

// `npm rebuild` and another install run these of an installed package
// (npm-scripts(7)); what its author runs to prepare or publish it is nobody's
// to run here.
bool npm_runs_installed(std::string_view script) {
  return npm_runs(script) && script.ends_with("install");
}

bool composer_runs(std::string_view script) {
  return script.starts_with("pre-") || script.starts_with("post-") ||
         script == "init" || script == "command";
}

struct Manager {
  std::string_view file;
  const char* scripts;                // the member that has them
  bool (*unasked)(std::string_view);  // what runs at install
};

constexpr Manager kManagers[] = {
    {"package.json", "scripts", npm_runs},
    {"composer.json", "scripts", composer_runs},
    {"deno.json", "tasks", [](std::string_view) { return false; }},
    {"deno.jsonc", "tasks", [](std::string_view) { return false; }},
};

// What we cannot read, the package manager perhaps can: it takes bytes that are
// no UTF-8, and "\u0073cripts" for a name.
std::vector<Risk> unread(std::string_view text) {
  if (text.size() <= kPackageLimit &&
      text.find("\"scripts\"") == std::string_view::npos &&
      text.find("\\u") == std::string_view::npos)
    return {};
  return {{Level::kDanger, "package-hook",
           text.size() > kPackageLimit
               ? "too large to be read: it may have install scripts"
               : "cannot be read as JSON: it may have install scripts"}};
}

// Of what stands there once as a name; of more nobody knows which one it is.
uint32_t line_of_member(std::string_view text, const std::string& name) {
  const std::string quoted = "\"" + name + "\"";
  const size_t at = text.find(quoted);
  if (at == text.npos || text.find(quoted, at + 1) != text.npos) return 0;
  return 1 + static_cast<uint32_t>(std::count(
                 text.begin(), text.begin() + static_cast<long>(at), '\n'));
}

constexpr size_t kEach = 3;  // more than these are told in one sentence

// Those that somebody has to call.
void add_called(const std::vector<std::pair<std::string, std::string>>& scripts,
                Level level, std::vector<Risk>& risks) {
  constexpr std::string_view kCode = "package-script";
  constexpr size_t kNamed = 8;
  if (scripts.size() <= kEach) {
    for (const auto& [name, command] : scripts)
      risks.push_back(
          {level, std::string(kCode),
           fmt::format("script \"{}\" executes on host when called: {}", name,
                       command)});
    return;
  }
  std::string names;
  for (size_t i = 0; i < std::min(scripts.size(), kNamed); ++i)
    names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", scripts[i].first);
  if (scripts.size() > kNamed)
    names += fmt::format(" and {} more", scripts.size() - kNamed);
  risks.push_back(
      {level, std::string(kCode),
       fmt::format("scripts {} execute on host when called", names)});
}

// Members of package.json by which other programs run what is named there.
struct Member {
  const char* name;
  const char* code;
  const char* means;
};
constexpr Member kMembers[] = {
    {"husky", "commit-hook", "runs at commit where husky is installed"},
    {"lint-staged", "commit-hook", "runs at commit where a hook calls it"},
    {"simple-git-hooks", "commit-hook", "becomes git's hooks at install"},
    {"gitHooks", "commit-hook", "runs at commit where yorkie is installed"},
    {"pre-commit", "commit-hook", "runs at commit where it is installed"},
    {"eslintConfig", "build-input", "names modules that ESLint runs"},
    {"prettier", "build-input", "names modules that Prettier runs"},
    {"babel", "build-input", "names modules that Babel runs"},
    {"stylelint", "build-input", "names modules that Stylelint runs"},
    {"jest", "test-input", "names modules that Jest runs"},
    {"ava", "test-input", "names modules that AVA runs"},
    {"mocha", "test-input", "names modules that Mocha runs"},
    {"imports", "build-input", "says which file an import is"}};

// A registry's versions and this workspace's own packages are not told.
bool is_from_elsewhere(std::string_view version) {
  for (const char* own : {"npm:", "workspace:", "catalog:", "patch:"})
    if (version.starts_with(own)) return false;
  return version.find(':') != version.npos || version.find('/') != version.npos;
}

void add_members(const Json& now, const Json& before,
                 std::vector<Risk>& risks) {
  auto changed = [&](const char* name) {
    return now.is_object() && now.contains(name) &&
           !(before.is_object() && before.contains(name) &&
             before[name] == now[name]);
  };
  for (const Member& known : kMembers)
    if (changed(known.name))
      risks.push_back({Level::kWarn, known.code,
                       fmt::format("\"{}\" {}", known.name, known.means)});
  if (changed("packageManager") && now["packageManager"].is_string() &&
      is_from_elsewhere(now["packageManager"].get<std::string>()))
    risks.push_back({Level::kWarn, "package-config",
                     "\"packageManager\" names a program from elsewhere: "
                     "corepack fetches and runs it"});
  size_t told = 0;
  for (const char* list : {"dependencies", "devDependencies",
                           "optionalDependencies", "peerDependencies"}) {
    if (!changed(list)) continue;
    const Json all = member(now, list), old = member(before, list);
    for (auto it = all.begin(); it != all.end(); ++it) {
      if (!it.value().is_string() || told >= kEach ||
          (old.is_object() && old.contains(it.key()) &&
           old[it.key()] == it.value()) ||
          !is_from_elsewhere(it.value().get<std::string>()))
        continue;
      ++told;
      risks.push_back(
          {Level::kWarn, "package-config",
           fmt::format("\"{}\" comes from '{}', not from a registry: what it "
                       "runs at install executes on host",
                       it.key().substr(0, 60),
                       it.value().get<std::string>().substr(0, 100))});
    }
  }
}

}  // namespace

bool is_installed_package(std::string_view path) {
  constexpr std::string_view kPlace = "node_modules/";
  return path.ends_with("/package.json") &&
         (path.starts_with(kPlace) ||
          path.find("/node_modules/") != std::string_view::npos);
}

std::vector<Risk> risks_of_package(std::string_view path,
                                   std::string_view old_text,
                                   std::string_view new_text) {
  auto manager = std::ranges::find(kManagers, path.substr(path.rfind('/') + 1),
                                   &Manager::file);
  if (manager == std::end(kManagers)) return {};
  const bool installed = is_installed_package(path);
  const auto unasked = installed ? npm_runs_installed : manager->unasked;
  Json now = parse_shallow(new_text);
  if (now.is_discarded()) return unread(new_text);
  Json scripts = member(now, manager->scripts);
  const Json before = parse_shallow(old_text);
  Json old_scripts = member(before, manager->scripts);
  std::vector<Risk> risks;
  std::vector<std::pair<std::string, std::string>> called;
  for (auto it = scripts.begin(); it != scripts.end(); ++it) {
    if (old_scripts.is_object() && old_scripts.contains(it.key()) &&
        old_scripts[it.key()] == it.value())
      continue;
    std::string command =
        it.value().is_string()
            ? it.value().get<std::string>()
            : it.value().dump(-1, ' ', false, Json::error_handler_t::replace);
    std::string script = it.key().substr(0, 60);
    command.resize(std::min<size_t>(command.size(), 200));
    if (unasked(it.key()))
      risks.push_back(
          {Level::kDanger, "package-hook",
           fmt::format("script \"{}\" executes on host unasked at install: {}",
                       script, command),
           line_of_member(new_text, it.key())});
    else
      called.emplace_back(std::move(script), std::move(command));
  }
  if (!installed && manager->file == "package.json")
    add_members(now, before, risks);
  add_called(called, installed ? Level::kInfo : Level::kWarn, risks);
  return risks;
}

}  // namespace stoplog::diff
