// SPDX-License-Identifier: Apache-2.0
// A workspace with a draft over it and a plan: approve, commit, undo.
#pragma once

#include "gate/gate.h"
#include "tree_fixture.h"

namespace stoplog::gate::test {

inline RelPath path(std::string_view text) { return *RelPath::parse(text); }

struct Desk : Site {
  Plan plan;
  std::unique_ptr<fs::View> view;
  diff::ChangeSet set;

  // Takes the change set of the draft's side as it is now.
  void look(std::map<std::string, std::string> moved = {}) {
    view = fs::view_of_directories(root.get(), side.get(), moved);
    auto built = diff::build_change_set(*view, diff::DiffOptions{});
    INFO((built ? "" : built.error().text()));
    REQUIRE(built);
    set = std::move(*built);
  }
  Result<ApproveReport> approve_paths(std::vector<std::string> names) {
    ApproveRequest request;
    for (const auto& name : names) request.paths.push_back(path(name));
    return approve(plan, set, request);
  }
  Result<ApproveReport> approve_all(bool danger = false) {
    ApproveRequest request;
    request.all = true;
    request.danger = danger;
    return approve(plan, set, request);
  }
  Result<CommitResult> commit_now(bool merge = false) {
    return gate::commit({.ground = ground(),
                         .set = &set,
                         .plan = &plan,
                         .meta = {},
                         .merge = merge});
  }
  Result<CommitResult> undo_now(std::optional<uint64_t> number = {}) {
    return gate::undo({.ground = ground(), .number = number, .meta = {}});
  }
};

inline std::string numbered_lines(int count,
                                  std::map<int, std::string> other = {}) {
  std::string text;
  for (int i = 1; i <= count; ++i)
    text += other.contains(i) ? other[i] + "\n" : fmt::format("line {}\n", i);
  return text;
}

inline void change_three_lines(Desk& desk) {
  put(desk.ws + "/f", numbered_lines(100));
  desk.branch();
  put(desk.draft + "/f",
      numbered_lines(100, {{10, "TEN"}, {50, "FIFTY"}, {90, "NINETY"}}));
  desk.look();
}

}  // namespace stoplog::gate::test
