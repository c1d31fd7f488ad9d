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
  Json old_scripts = member(parse_shallow(old_text), manager->scripts);
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
  add_called(called, installed ? Level::kInfo : Level::kWarn, risks);
  return risks;
}

}  // namespace stoplog::diff
