// SPDX-License-Identifier: Apache-2.0
#include "cli/change_count.h"

#include "cli/opened.h"

namespace stoplog::cli {
namespace {

Result<diff::ChangeSet> quick_set(Context& context, const draft::Draft& draft,
                                  uint32_t* commands = nullptr) {
  // A draft of another workspace is opened as if we stood there.
  Globals globals = context.globals();
  globals.workspace = draft.workspace;
  Context there(globals, context.out);
  Opened opened = TRY(open_draft(there, draft, {}));
  if (commands != nullptr)
    for (const fs::Mark& mark : opened.view->marks())
      *commands = std::max(*commands, mark.command);
  return changes_of(opened, TRY(load_policy(there)),
                    {.digest = false, .count_lines = false, .risks = false});
}

// `path` as seen from the directory `cwd`, both beneath the workspace.
std::string seen_from(const RelPath& path, const RelPath& cwd) {
  std::string up;
  RelPath top = cwd;
  while (!path.is_within(top)) {
    top = top.parent();
    up += "../";
  }
  std::string rest = path.str().substr(top.str().size());
  if (rest.starts_with('/')) rest.erase(0, 1);
  return up + rest;
}

}  // namespace

std::optional<std::vector<RelPath>> held_paths(Context& context,
                                               const draft::Draft& draft,
                                               uint32_t* commands) {
  auto set = quick_set(context, draft, commands);
  if (!set) return std::nullopt;
  std::vector<RelPath> paths;
  for (const diff::Change& change : set->changes) paths.push_back(change.path);
  return paths;
}

std::optional<uint64_t> count_changes(Context& context,
                                      const draft::Draft& draft,
                                      uint32_t* commands) {
  auto set = quick_set(context, draft, commands);
  if (!set) return std::nullopt;
  return set->changes.size();
}

std::vector<std::string> changed_paths(Context& context) {
  std::vector<std::string> out;
  auto draft = context.find_draft();
  auto ws = context.workspace();
  if (!draft || !*draft || !ws) return out;
  auto set = quick_set(context, **draft);
  if (!set) return out;
  RelPath cwd = (*ws)->cwd.value_or(RelPath());
  for (const diff::Change& change : set->changes)
    out.push_back(seen_from(change.path, cwd));
  return out;
}

}  // namespace stoplog::cli
