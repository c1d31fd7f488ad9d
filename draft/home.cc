// SPDX-License-Identifier: Apache-2.0
#include "draft/home.h"

#include "base/sys_file.h"
#include "draft/layout.h"

namespace stoplog::draft {
namespace {

Result<Fd> make_dir(int parent, const char* name) {
  Status made = sys::mkdirat(parent, name, 0700);
  if (!made && made.error().err() != EEXIST)
    return std::unexpected(std::move(made).error());
  return sys::openat(parent, name, O_RDONLY | O_DIRECTORY);
}

}  // namespace

Result<Home> open_home(int draft_dir) {
  Home home;
  home.dir = TRY_CTX(make_dir(draft_dir, kHomeDir), "the draft's HOME");
  home.base = TRY_CTX(make_dir(home.dir.get(), kHomeBase), "the draft's HOME");
  return home;
}

Status fork_home(fs::Tree& tree, int to_draft_dir) {
  Home to = TRY(open_home(to_draft_dir));
  fs::Mark mark = TRY(tree.mark(fs::MarkKind::kBarrier, 0, ""));
  return tree.fork_into(to.dir.get(), mark.position);
}

Status fork_home(int from_draft_dir, int to_draft_dir) {
  auto there = sys::statat(from_draft_dir, kHomeDir);
  if (!there && there.error().err() == ENOENT) return {};
  Home from = TRY(open_home(from_draft_dir));
  auto tree = TRY(fs::Tree::open({.draft_dir = from.dir.get(),
                                  .base = from.base.get(),
                                  .background = false}));
  TRY(fork_home(*tree, to_draft_dir));
  return tree->fsync();
}

}  // namespace stoplog::draft
