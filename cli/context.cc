// SPDX-License-Identifier: Apache-2.0
#include "cli/context.h"

#include <cstdlib>

#include "base/escape.h"
#include "base/sys_kernel.h"
#include "cli/interrupted.h"

namespace stoplog::cli {

using draft::Draft;

Result<const draft::Layout*> Context::layout() {
  if (!layout_) layout_ = TRY(draft::Layout::from_environment());
  return &*layout_;
}

Result<const draft::Workspace*> Context::workspace() {
  if (!workspace_) {
    TRY(sys::need_kernel());
    workspace_ =
        TRY(draft::find_workspace({.given = globals_.workspace, .cwd = "."}));
  }
  return &*workspace_;
}

Result<draft::Store*> Context::store() {
  if (!store_)
    store_ = TRY(draft::Store::open(*TRY(layout()), draft::Store::Create::kNo));
  return &*store_;
}

std::optional<std::string> Context::wanted_draft() const {
  if (globals_.draft) return globals_.draft;
  const char* name = ::getenv("STOPLOG_DRAFT");
  if (name != nullptr && *name != '\0') return name;
  return std::nullopt;
}

std::string Context::no_draft_hint() {
  if (draft::inside_jail())
    return "this is the inside of a stoplog jail: what is written here is "
           "held, and decided upon outside";
  auto ws = workspace();
  auto drafts = store();
  auto near = ws && drafts ? (*drafts)->overlapping(**ws)
                           : Result<std::optional<Draft>>(std::nullopt);
  if (!near || !*near) return "`stoplog run -- COMMAND` starts one";
  std::string top = escape((*near)->workspace);
  return fmt::format(
      "draft '{}' is over '{}': go there, or say `stoplog --workspace '{}'`",
      (*near)->name, top, top);
}

Result<std::optional<Draft>> Context::find_draft() {
  const draft::Workspace& ws = *TRY(workspace());
  draft::Store& drafts = *TRY(store());
  if (auto name = wanted_draft()) return TRY(drafts.find(ws, *name));
  return drafts.current(ws);
}

Result<Draft> Context::need_draft() {
  std::optional<Draft> found = TRY(find_draft());
  if (found) return std::move(*found);
  if (!draft::inside_jail()) TRY(finish_interrupted(*this));
  return std::unexpected(
      Error(Code::kUsage, fmt::format("there is no draft over '{}'",
                                      escape(TRY(workspace())->path)))
          .with_hint(no_draft_hint()));
}

Result<Context::Made> Context::find_or_make_draft(bool force, bool always_new) {
  const draft::Workspace& ws = *TRY(workspace());
  draft::Store& drafts = *TRY(store());
  std::optional<std::string> name = wanted_draft();
  if (!always_new) {
    if (!name) {
      if (auto current = TRY(drafts.current(ws)))
        return Made{std::move(*current), false};
    } else if (auto found = drafts.find(ws, *name)) {
      if (found->state != draft::DraftState::kDiscarded)
        return Made{std::move(*found), false};
      // Its name is free again; what it held must not come back with it.
      const std::string aside = fmt::format("{}-{}", found->name, found->id);
      TRY(drafts.update(found->id, [&](Draft& d) { d.name = aside; }));
      out.note(fmt::format("the draft '{}' that was discarded is '{}' now",
                           found->name, aside));
    } else if (found.error().code() != Code::kUsage) {
      return std::unexpected(std::move(found).error());
    }
  }
  for (const Draft& old : TRY(drafts.list(ws)))
    if (old.state == draft::DraftState::kOpen && !old.stands_over(ws))
      out.note(fmt::format(
          "draft '{}' stands over the directory that was here before this one",
          old.name));
  std::optional<Draft> other = TRY(drafts.overlapping(ws));
  draft::WorkspaceCheck check{.force = force};
  if (other) check.other = other->workspace;
  TRY(draft::check_workspace(ws, *TRY(layout()), check));
  store_ = TRY(draft::Store::open(*TRY(layout()), draft::Store::Create::kYes));
  return Made{TRY(store_->create({.workspace = ws,
                                  .name = name,
                                  .forked_from = "",
                                  .or_existing = !always_new})),
              true};
}

Result<std::vector<RelPath>> Context::paths(
    const std::vector<std::string>& arguments) {
  const draft::Workspace& ws = *TRY(workspace());
  std::vector<RelPath> found;
  for (const std::string& argument : arguments)
    found.push_back(TRY(draft::workspace_path(ws, argument)));
  return found;
}

Result<std::optional<draft::Client>> Context::daemon(
    const Draft& draft, draft::OtherVersion other) {
  return draft::Client::connect(*TRY(layout()), draft.id, other);
}

}  // namespace stoplog::cli
