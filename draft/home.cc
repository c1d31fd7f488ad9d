// SPDX-License-Identifier: Apache-2.0
#include "draft/home.h"

#include "base/sys_file.h"
#include "draft/layout.h"
#include "fs/gc.h"
#include "jail/home.h"

namespace stoplog::draft {
namespace {

Result<Fd> make_dir(int parent, const char* name) {
  Status made = sys::mkdirat(parent, name, 0700);
  if (!made && made.error().err() != EEXIST)
    return std::unexpected(std::move(made).error());
  return sys::openat(parent, name, O_RDONLY | O_DIRECTORY);
}

// Of an empty directory nothing shows either.
fs::Shown shown(std::string_view path) {
  switch (jail::home_path(path)) {
    case jail::HomePath::kHidden:
      return fs::Shown::kNothing;
    case jail::HomePath::kWay:
      return fs::Shown::kDirectory;
    case jail::HomePath::kCache:
      return fs::Shown::kAll;
  }
  return fs::Shown::kNothing;
}

}  // namespace

Result<Home> open_home(int draft_dir, const std::string& real) {
  Home home;
  home.dir = TRY_CTX(make_dir(draft_dir, kHomeDir), "the draft's HOME");
  home.base = TRY_CTX(make_dir(home.dir.get(), kHomeBase), "the draft's HOME");
  if (!real.starts_with('/')) return home;
  auto theirs = sys::openat(AT_FDCWD, real, O_RDONLY | O_DIRECTORY);
  if (!theirs) return home;
  // HOME's top has the owner of what it stands over: another's could not be
  // written inside (root with a user's HOME), and is not ours to show.
  if (TRY(sys::fstat(theirs->get())).uid == ::geteuid())
    home.base = std::move(*theirs);
  return home;
}

std::string caller_home() {
  const char* home = ::getenv("HOME");
  return home != nullptr ? home : "";
}

fs::TreeOptions Home::options() const {
  return {.draft_dir = dir.get(), .base = base.get(), .base_shows = shown};
}

Status fork_home(fs::Tree& tree, int to_draft_dir) {
  Home to = TRY(open_home(to_draft_dir, ""));
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

Status fork_home(int from_draft_dir, int to_draft_dir,
                 const std::string& real) {
  auto there = sys::statat(from_draft_dir, kHomeDir);
  if (!there && there.error().err() == ENOENT) return {};
  Home from = TRY(open_home(from_draft_dir, real));
  fs::TreeOptions options = from.options();
  options.background = false;
  auto tree = TRY(fs::Tree::open(options));
  TRY(fork_home(*tree, to_draft_dir));
  return tree->fsync();
}

}  // namespace stoplog::draft
