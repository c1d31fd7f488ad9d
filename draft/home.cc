// SPDX-License-Identifier: Apache-2.0
#include "draft/home.h"

#include "base/sys_file.h"
#include "draft/layout.h"
#include "fs/gc.h"

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

Result<GcDone> collect(const std::vector<fs::Tree*>& trees, const Gc& how) {
  GcDone done;
  for (fs::Tree* tree : trees) {
    fs::GcReport report = TRY(tree->gc({.max_age = how.max_age,
                                        .max_bytes = how.max_bytes,
                                        .dry_run = how.dry_run}));
    done.marks += report.marks;
    done.generations += report.generations;
    done.segments += report.segments;
    done.bytes += report.bytes;
  }
  return done;
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
