// SPDX-License-Identifier: Apache-2.0
#include "cli/marks.h"

#include <algorithm>

#include "base/escape.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/strings.h"
#include "draft/ledger.h"
#include "draft/names.h"

namespace stoplog::cli {

std::string mark_name(const fs::Mark& mark) { return draft::mark_name(mark); }

Result<fs::Mark> find_mark(const std::vector<fs::Mark>& marks,
                           const std::string& name) {
  std::vector<std::string> names;
  for (const fs::Mark& mark : marks) {
    std::string n = mark_name(mark);
    if (n.empty()) continue;
    if (n == name) return mark;
    names.push_back(std::move(n));
  }
  Error error(Code::kUsage,
              fmt::format("there is no mark '{}' in this draft", escape(name)));
  std::vector<std::string_view> views(names.begin(), names.end());
  // Of commands all numbers are near, and another one is no help.
  std::string_view near = name.starts_with('@') ? "" : nearest(name, views);
  return std::unexpected(std::move(error).with_hint(
      near.empty() ? std::string("`stoplog log` lists them")
                   : fmt::format("did you mean '{}'?", escape(near))));
}

std::string free_name(const std::vector<fs::Mark>& marks,
                      std::string_view stem) {
  for (int n = 1;; ++n) {
    std::string name = fmt::format("{}{}", stem, n);
    bool taken = std::ranges::any_of(
        marks, [&](const fs::Mark& m) { return mark_name(m) == name; });
    if (!taken) return name;
  }
}

Result<fs::Mark> take_mark(Context& context, Opened& opened,
                           const std::string& name) {
  Hold hold;  // the mark and its line in the record are one
  fs::Mark mark;
  TRY(change_draft(context, opened,
                   {.daemon = [&](draft::Client& daemon) -> Status {
                      mark = TRY(daemon.snapshot(name));
                      return {};
                    },
                    .tree = [&](fs::Tree& tree) -> Status {
                      mark = TRY(tree.mark(fs::MarkKind::kNamed, 0, name));
                      return {};
                    }}));
  draft::Ledger ledger =
      TRY(draft::Ledger::open(*TRY(context.layout()), opened.draft.id));
  TRY(ledger.append(
      "snapshot",
      Json::object().set("mark", name).set("position", mark.position),
      Sync::kNo));
  return mark;
}

Result<std::unique_ptr<fs::DraftView>> view_at(const Opened& opened,
                                               fs::Position position) {
  snapshot::ObjectStore* objects = opened.door.objects.get();
  auto view = TRY(fs::open_view({.draft_dir = opened.draft_dir.get(),
                                 .base = opened.door.root.get(),
                                 .at = position,
                                 .objects = [objects](const Sha256Digest& id) {
                                   return objects->content(id);
                                 }}));
  // The present of a damaged draft is shown, and said to be; a moment of its
  // past that is not what it was would be taken for it.
  if (view->damaged() && position != opened.end)
    return fail(Code::kCorrupt, "the journal is damaged before that mark: {}",
                view->notes().empty() ? "" : view->notes().front());
  return view;
}

}  // namespace stoplog::cli
