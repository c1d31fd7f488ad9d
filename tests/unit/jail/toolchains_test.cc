// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "catch_shim.h"
#include "jail/home.h"
#include "jail/toolchains.h"

using namespace stoplog::jail;

namespace {

ToolchainPlan plan(const std::string& path, const std::set<std::string>& dirs,
                   std::vector<std::string> hidden = {}) {
  return plan_toolchains({.path = path,
                          .home = "/home/ann",
                          .workspace = "/home/ann/proj",
                          .hidden = std::move(hidden)},
                         [&](const std::string& at) {
                           return dirs.contains(at) ? PathKind::kDir
                                                    : PathKind::kNone;
                         });
}

std::vector<std::string> targets(const ToolchainPlan& plan) {
  std::vector<std::string> out;
  for (const Bind& bind : plan.binds) out.push_back(bind.target);
  return out;
}

}  // namespace

TEST_CASE("a version manager comes with its versions and no credentials") {
  const auto p = plan(
      "/home/ann/.cargo/bin:/home/ann/.pyenv/shims:/home/ann/.pyenv/bin:"
      "/home/ann/.nvm/versions/node/v20/bin:/usr/bin",
      {"/home/ann/.cargo/bin", "/home/ann/.rustup", "/home/ann/.cargo",
       "/home/ann/.pyenv", "/home/ann/.pyenv/shims", "/home/ann/.pyenv/bin",
       "/home/ann/.nvm", "/home/ann/.nvm/versions/node/v20/bin"});
  CHECK(targets(p) ==
        std::vector<std::string>{"/home/ann/.cargo/bin", "/home/ann/.nvm",
                                 "/home/ann/.pyenv", "/home/ann/.rustup"});
  CHECK(p.path.size() == 5);
  CHECK(p.left_out.empty());
}

TEST_CASE("no PATH entry shows the home or the workspace or what is hidden") {
  const auto p = plan(
      "/home/ann:/home:/:.::rel/bin:/home/ann/proj/bin:"
      "/home/ann/state/bin:/home/ann/bin",
      {"/home/ann", "/home", "/", "/home/ann/state", "/home/ann/state/bin",
       "/home/ann/bin"},
      {"/home/ann/state"});
  CHECK(targets(p) == std::vector<std::string>{"/home/ann/bin"});
  CHECK(p.path ==
        std::vector<std::string>{"/home/ann/proj/bin", "/home/ann/bin"});
  CHECK(p.left_out == std::vector<std::string>{"/home/ann", "/home", "/", ".",
                                               "rel/bin",
                                               "/home/ann/state/bin"});
}

TEST_CASE("an entry that does not exist is dropped without a word") {
  const auto p = plan("/home/ann/gone/bin:/usr/bin", {});
  CHECK(p.path == std::vector<std::string>{"/usr/bin"});
  CHECK(p.left_out.empty());
}

TEST_CASE("programs of opt come with their whole directory") {
  const auto p = plan("/opt/jdk/bin:/opt/jdk/jre/bin",
                      {"/opt/jdk", "/opt/jdk/bin", "/opt/jdk/jre/bin"});
  CHECK(targets(p) == std::vector<std::string>{"/opt/jdk"});
  CHECK(p.path.size() == 2);
}

TEST_CASE("home moves away when it would lie in the workspace") {
  CHECK(choose_home("/home/ann", "/home/ann/proj") == "/home/ann");
  CHECK(choose_home("/home/ann", "/home/ann") == "/home/user");
  CHECK(choose_home("/home/ann", "/home") == "/var/home/user");
  CHECK(choose_home("", "/w") == "/home/user");
}

TEST_CASE("of a git configuration only the names pass") {
  CHECK(filter_git_config("[user]\n\tname = Ann\n\tsigningkey = X\n"
                          "[core]\n\tpager = evil\n\tautocrlf = input\n"
                          "[include]\n\tpath = /etc/x\n"
                          "[init] defaultBranch = main\n"
                          "[user \"sub\"]\n\tname = no\n"
                          "[credential]\n\thelper = store\n") ==
        "[user]\n\tname = Ann\n[core]\n\tautocrlf = input\n"
        "[init]\n\tdefaultBranch = main\n");
}

TEST_CASE("nothing that holds credentials comes with PATH") {
  const auto p = plan(
      "/home/ann/.ssh:/home/ann/.cargo:/home/ann/.config:/home/ann/.config/bin:"
      "/home/ann/.docker:/home/ann/.docker/bin:/home/ann/.npm-global/bin",
      {"/home/ann/.ssh", "/home/ann/.cargo", "/home/ann/.config",
       "/home/ann/.config/bin", "/home/ann/.docker", "/home/ann/.docker/bin",
       "/home/ann/.npm-global", "/home/ann/.npm-global/bin",
       "/home/ann/.npm-global/etc", "/home/ann/.npm-global/lib"});
  CHECK(targets(p) == std::vector<std::string>{"/home/ann/.config/bin",
                                               "/home/ann/.docker/bin",
                                               "/home/ann/.npm-global/bin",
                                               "/home/ann/.npm-global/lib"});
  CHECK(p.left_out ==
        std::vector<std::string>{"/home/ann/.ssh", "/home/ann/.cargo",
                                 "/home/ann/.config", "/home/ann/.docker"});
}

TEST_CASE("a tool's directory does not cover its package cache") {
  const auto p = plan("/home/ann/go/bin:/home/ann/.bun/bin",
                      {"/home/ann/go", "/home/ann/go/bin", "/home/ann/.bun",
                       "/home/ann/.bun/bin"});
  CHECK(targets(p) ==
        std::vector<std::string>{"/home/ann/.bun/bin", "/home/ann/go/bin"});
  // Go itself, unpacked there, is whole or nothing.
  const auto whole =
      plan("/home/ann/go/bin",
           {"/home/ann/go", "/home/ann/go/bin", "/home/ann/go/VERSION"});
  CHECK(targets(whole) == std::vector<std::string>{"/home/ann/go"});
}

TEST_CASE("of the real HOME the package caches show and nothing else") {
  CHECK(home_path("") == HomePath::kWay);
  CHECK(home_path(".npm") == HomePath::kWay);
  CHECK(home_path(".npm/_cacache") == HomePath::kWay);
  CHECK(home_path(".npm/_cacache/index-v5/00") == HomePath::kCache);
  CHECK(home_path(".cargo/registry/cache") == HomePath::kCache);
  for (const char* path : {".npmrc",
                           ".npm/_logs",
                           ".npm/_cacachex",
                           ".npm/_cacache2/x",
                           ".cargo/credentials",
                           ".cargo/credentials.toml",
                           ".cargo/config.toml",
                           ".cargo/bin",
                           ".config",
                           ".config/gh/hosts.yml",
                           ".ssh",
                           ".ssh/id_rsa",
                           ".cache/x",
                           ".cach",
                           ".m2/settings.xml",
                           ".gradle/gradle.properties",
                           ".ivy2/.credentials",
                           ".netrc",
                           "go/pkg/sumdb",
                           ".bash_history",
                           ".local/share/keyrings",
                           "Documents"})
    CHECK(home_path(path) == HomePath::kHidden);
  // Whatever is called a secret by the other table is hidden by this one.
  for (const char* cache : home_caches()) {
    CHECK(home_path(cache) == HomePath::kWay);
    CHECK(home_path(std::string(cache) + "/x") == HomePath::kCache);
  }
}
