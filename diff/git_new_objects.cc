// SPDX-License-Identifier: Apache-2.0
#include "diff/git_new_objects.h"

#include "diff/content_hash.h"
#include "diff/git_pack_index.h"
#include "diff/git_sort.h"

namespace stoplog::diff {

void NewObjects::add(std::string_view rel) {
  GitSort sort = git_sort(rel);
  if (sort == GitSort::kObject) loose_.emplace_back(rel);
  if (sort == GitSort::kPack || sort == GitSort::kPackIndex)
    stems_.emplace(rel.substr(0, rel.rfind('.')));
}

Result<std::optional<fs::NodeState>> NewObjects::state(
    const std::string& rel) const {
  auto path = TRY(RelPath::parse(directory_.str() + "/" + rel));
  auto state = TRY(view_.draft_state(path));
  if (!state || state->type != fs::Type::kFile || !state->content)
    return std::nullopt;
  return state;
}

void NewObjects::note(Verdict verdict, const std::string& rel) {
  if (verdict == Verdict::kTrue) return;
  (verdict == Verdict::kFalse ? forged_ : unknown_).push_back(rel);
}

void NewObjects::check() {
  for (const std::string& rel : loose_) {
    auto id = loose_object_id(within_objects(rel));
    auto at = state(rel);
    note(!at || !*at || !id ? Verdict::kUnknown
                            : check_loose(*(*at)->content, *id, format_, left_),
         rel);
  }
  for (const std::string& stem : stems_) note(check_pack(stem), stem + ".pack");
}

Verdict NewObjects::check_pack(const std::string& stem) {
  auto pack = state(stem + ".pack"), index = state(stem + ".idx");
  if (!pack || !index) return Verdict::kUnknown;
  if (!*pack || !*index) return Verdict::kTrue;  // git does not look at half
  auto bytes = read_content(*(*index)->content, kPackIndexLimit);
  if (!bytes || bytes->size() > left_) return Verdict::kUnknown;
  left_ -= bytes->size();
  auto opened = Pack::open((*pack)->content, std::move(*bytes), format_);
  if (!opened)
    return opened.error().code() == Code::kInvalid ? Verdict::kFalse
                                                   : Verdict::kUnknown;
  return opened->check(left_);
}

}  // namespace stoplog::diff
