// SPDX-License-Identifier: Apache-2.0
#include "cli/marks.h"

#include "base/escape.h"
#include "base/strings.h"
#include "diff/between.h"
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
  std::string_view near = nearest(name, views);
  return std::unexpected(std::move(error).with_hint(
      near.empty() ? std::string("`stoplog log` lists them")
                   : fmt::format("did you mean '{}'?", escape(near))));
}

Result<std::unique_ptr<fs::DraftView>> view_at(const Opened& opened,
                                               fs::Position position) {
  snapshot::ObjectStore* objects = opened.door.objects.get();
  return fs::open_view({.draft_dir = opened.draft_dir.get(),
                        .base = opened.door.root.get(),
                        .at = position,
                        .objects = [objects](const Sha256Digest& id) {
                          return objects->content(id);
                        }});
}

Result<std::unique_ptr<fs::View>> view_between(const Opened& opened,
                                               fs::Position from,
                                               fs::Position to) {
  std::shared_ptr<const fs::View> before = TRY(view_at(opened, from));
  std::shared_ptr<const fs::View> after = TRY(view_at(opened, to));
  return diff::view_between(std::move(before), std::move(after));
}

}  // namespace stoplog::cli
