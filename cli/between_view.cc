// SPDX-License-Identifier: Apache-2.0
#include "cli/between_view.h"

#include <map>

namespace stoplog::cli {
namespace {

using Changes = std::map<RelPath, uint32_t>;  // path -> last command

// Every path at which `view` may differ from the real tree: the changed ones,
// where they came from, and all that moved along with a directory.
Status collect(const fs::View& view, const fs::View& other, Changes& out);

Status add_beneath(const fs::View& view, const RelPath& dir, uint32_t command,
                   Changes& out) {
  for (const fs::DirEntry& entry : TRY(view.draft_list(dir))) {
    RelPath path = dir / entry.name;
    out.try_emplace(path, command);
    if (entry.type == fs::Type::kDir)
      TRY(add_beneath(view, path, command, out));
  }
  return {};
}

Status collect(const fs::View& view, const fs::View& other, Changes& out) {
  for (const fs::RawChange& change : TRY(view.changes())) {
    uint32_t& command = out[change.path];
    command = std::max(command, change.command);
    if (!change.from) continue;
    out.try_emplace(*change.from, change.command);
    bool dir = change.after && change.after->type == fs::Type::kDir;
    if (!dir) continue;
    TRY(add_beneath(view, change.path, change.command, out));
    // What moved away is, on the other side, perhaps still where it was.
    auto old = TRY(other.draft_state(*change.from));
    if (old && old->type == fs::Type::kDir)
      TRY(add_beneath(other, *change.from, change.command, out));
  }
  return {};
}

// The same node, for certain and without reading: two views of one draft that
// stand on the same lower file share size, mode, owner and times.
bool looks_same(const std::optional<fs::NodeState>& a,
                const std::optional<fs::NodeState>& b) {
  if (!a || !b) return !a && !b;
  return a->type == fs::Type::kDir && b->type == fs::Type::kDir &&
         a->mode == b->mode && a->uid == b->uid && a->gid == b->gid &&
         a->xattrs == b->xattrs;
}

}  // namespace

Result<std::vector<fs::RawChange>> BetweenView::changes() const {
  Changes paths;
  TRY(collect(*from_, *to_, paths));
  TRY(collect(*to_, *from_, paths));
  std::vector<fs::RawChange> out;
  for (const auto& [path, command] : paths) {
    fs::RawChange change;
    change.path = path;
    change.before = TRY(from_->draft_state(path));
    change.after = TRY(to_->draft_state(path));
    change.command = command;
    if (!looks_same(change.before, change.after))
      out.push_back(std::move(change));
  }
  return out;
}

}  // namespace stoplog::cli
