// SPDX-License-Identifier: Apache-2.0
// A git repository under a draft: git itself says what is right.
#pragma once

#include "gate/gate.h"
#include "tree_fixture.h"

namespace stoplog::gate::test {

inline RelPath path(std::string_view text) { return *RelPath::parse(text); }

struct Repo : Site {
  diff::ChangeSet set;
  Plan plan;
  std::unique_ptr<fs::View> view;
  std::string base;
  Fd base_fd;

  // `init`: options of git init; `then`: commands of git before the draft.
  explicit Repo(const std::string& init = "",
                const std::vector<std::string>& then = {}) {
    git(ws, "init -q -b main " + init + " .");
    git(ws, "config user.name T");
    git(ws, "config user.email t@example.invalid");
    put(ws + "/a.txt", "one\n");
    put(ws + "/b.txt", "one\n");
    git(ws, "add -A");
    git(ws, "commit -q -m first");
    for (const std::string& command : then) git(ws, command);
    branch();
    // The base as the draft saw it, aside, so that the real tree may move on.
    base = top + "/base";
    std::string copy = "cp -a " + ws + " " + base;
    REQUIRE(::system(copy.c_str()) == 0);
    base_fd = open_dir(base);
  }
  static std::string git(const std::string& dir, const std::string& args) {
    std::string command =
        "GIT_CONFIG_GLOBAL=/dev/null git -C " + dir + " " + args + " 2>&1";
    FILE* pipe = ::popen(command.c_str(), "r");
    std::string out;
    char buffer[4096];
    while (size_t n = ::fread(buffer, 1, sizeof buffer, pipe))
      out.append(buffer, n);
    INFO(command << "\n" << out);
    REQUIRE(::pclose(pipe) == 0);
    while (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
  }
  // With `danger` all is approved by its name, as --danger does.
  void look(bool danger = true) {
    view = fs::view_of_directories(base_fd.get(), side.get());
    auto built = diff::build_change_set(*view, {});
    INFO((built ? "" : built.error().text()));
    REQUIRE(built);
    set = std::move(*built);
    ApproveRequest all;
    all.all = true;
    all.danger = danger;
    REQUIRE(approve(plan, set, all));
  }
  Result<CommitResult> undo_now(std::optional<uint64_t> number = {}) {
    return gate::undo({.ground = ground(), .number = number, .meta = {}});
  }
  Result<CommitResult> commit_now() {
    return gate::commit(
        {.ground = ground(), .set = &set, .plan = &plan, .meta = {}});
  }
};

inline bool has_note(const CommitResult& result, std::string_view word) {
  for (const auto& note : result.notes)
    if (note.find(word) != std::string::npos) return true;
  return false;
}

}  // namespace stoplog::gate::test
