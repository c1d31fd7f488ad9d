// SPDX-License-Identifier: Apache-2.0
// A base with a repository that git made, and a draft that starts as its copy.
#pragma once

#include "catch_shim.h"
#include "diff/git_meta.h"
#include "memory_view.h"
#include "two_trees.h"

namespace stoplog::diff {

class Repository : public TwoTrees {
 public:
  Repository() {
    git(base(), "init -q -b main");
    write(base() + "/a.c", "int a;\n");
    write(base() + "/.gitignore", "*.o\nnode_modules/\n.env\n");
    git(base(), "add -A");
    git(base(), "commit -qm first");
    copy_base();
  }
  static void git(const std::string& where, const std::string& what) {
    REQUIRE(run("cd '" + where +
                "' && HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 git -c "
                "user.name=t -c user.email=t@t -c gc.auto=0 " +
                what + " >/dev/null 2>&1") == 0);
  }
  void in_draft(const std::string& what) { git(draft(), what); }
  ChangeSet build(DiffOptions options = {}) {
    view_ = view();
    options.real_root = base();
    auto set = build_change_set(*view_, options);
    REQUIRE(set);
    return std::move(*set);
  }

 private:
  std::unique_ptr<fs::View> view_;
};

inline const GitChange& git_row(const ChangeSet& set) {
  const Change* row = set.find(path(".git"));
  REQUIRE(row != nullptr);
  REQUIRE(row->git != nullptr);
  CHECK(row->shown_path() == ".git/");
  return *row->git;
}

}  // namespace stoplog::diff
