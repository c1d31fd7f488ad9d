// SPDX-License-Identifier: Apache-2.0
// What tests of the timeline and of commits ask of a TreeFixture.
#pragma once

#include "base/sys_file.h"
#include "fs/draft_view.h"
#include "tree_fixture.h"

namespace stoplog::test {

using namespace stoplog::fs;

inline Result<std::vector<RawChange>> raw_changes(TreeFixture& f,
                                                  Position at = kEnd) {
  auto view = TRY(
      open_view({.draft_dir = f.draft.fd(), .base = f.base.fd(), .at = at}));
  return view->changes();
}

inline std::string changed_paths(TreeFixture& f, Position at = kEnd) {
  auto list = raw_changes(f, at);
  if (!list) return "<" + list.error().text() + ">";
  std::string paths;
  for (const RawChange& change : *list)
    paths += (paths.empty() ? "" : " ") + change.path.str();
  return paths;
}

inline std::string state_text(TreeFixture& f, Position at,
                              std::string_view path) {
  auto view =
      open_view({.draft_dir = f.draft.fd(), .base = f.base.fd(), .at = at});
  auto state = (*view)->draft_state(*RelPath::parse(path));
  if (!state || !*state) return "<absent>";
  std::string text((*state)->size, '\0');
  auto n = (*state)->content->read(0, std::as_writable_bytes(std::span(text)));
  return n ? text : "<" + n.error().text() + ">";
}

inline Position marked(TreeFixture& f) {
  return f.tree->mark(MarkKind::kNamed, 0, "")->position;
}

inline sys::Stat stat_of(TreeFixture& f, const std::string& path) {
  return *sys::statat(f.base.fd(), path);
}

// What a commit of one file does to the real tree, and says about it.
inline BaseChange commit_file(TreeFixture& f, const std::string& path,
                              const std::string& text) {
  BaseChange change;
  change.path = *RelPath::parse(path);
  if (std::filesystem::exists(f.base / path)) change.before = stat_of(f, path);
  f.base.write("stage", text);
  std::filesystem::rename(f.base / "stage", f.base / path);
  change.now = stat_of(f, path);
  return change;
}

}  // namespace stoplog::test
