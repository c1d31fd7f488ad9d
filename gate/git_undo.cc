// SPDX-License-Identifier: Apache-2.0
#include "gate/git_undo.h"

#include <algorithm>

#include "base/clock.h"
#include "base/dir.h"
#include "base/escape.h"
#include "base/shown_path.h"
#include "base/strings.h"
#include "diff/content_hash.h"
#include "diff/git_object.h"
#include "diff/git_split_index.h"
#include "fs/beneath.h"
#include "gate/git_paths.h"
#include "snapshot/content_digest.h"

namespace stoplog::gate {
namespace {

bool is_loose_ref(const RelPath& path) {
  std::string_view relative = within_git(path);
  return is_git_ref(relative) && relative != "packed-refs";
}

bool is_file(const std::optional<Node>& node) {
  return node && node->is_file();
}

// A new file in a git directory, owned as that is.
Node file_like(const Node& git) {
  Node node = git;
  node.type = fs::Type::kFile;
  node.mode = 0644;
  node.xattrs.clear();
  node.mtime = Clock::real().now();
  return node;
}

}  // namespace

Item text_item(const RelPath& path, const std::optional<Node>& old, Node like,
               std::string text) {
  Item item;
  item.path = path;
  item.old = old;
  like.sha256 = sha256(text);
  like.size = text.size();
  item.fresh = std::move(like);
  item.content = snapshot::memory_content(std::move(text));
  return item;
}

std::optional<std::string> without_refs(std::string_view packed,
                                        const std::set<std::string>& refs) {
  std::string kept;
  bool dropped = false, skip_peeled = false;
  for (std::string_view line : split(packed, '\n')) {
    if (line.empty()) continue;
    bool peeled = line.starts_with("^");
    size_t space = std::min(line.find(' '), line.size() - 1);
    bool this_one =
        !peeled && refs.contains(std::string(line.substr(space + 1)));
    if (this_one || (peeled && skip_peeled)) {
      dropped = skip_peeled = true;
      continue;
    }
    skip_peeled = false;
    kept += line;
    kept += '\n';
  }
  if (!dropped) return std::nullopt;
  return kept;
}

// Not in a directory that goes: that a running git has none there is seen by
// removing it.
std::vector<RelPath> GitUndo::locks(const std::vector<Item>& items) {
  std::set<RelPath> goes, locks;
  for (const Item& item : items)
    if (item.old && item.old->is_dir() && !(item.fresh && item.fresh->is_dir()))
      goes.insert(item.path);
  for (const Item& item : items) {
    bool in_one = false;
    for (RelPath p = item.path.parent(); !p.is_root(); p = p.parent())
      in_one = in_one || goes.contains(p);
    if (auto lock = git_lock_for(item.path); lock && !in_one)
      locks.insert(std::move(*lock));
    // It may have been packed since.
    if (is_loose_ref(item.path) && is_file(item.old) && !is_file(item.fresh))
      locks.insert(git_directory_of(item.path) / "packed-refs.lock");
  }
  return {locks.begin(), locks.end()};
}

Result<std::optional<Standing>> GitUndo::real(const RelPath& path) const {
  auto dir = disk_.open_dir(root_, path.parent());
  if (!dir && fs::is_absence(dir.error())) return std::nullopt;
  if (!dir) return std::unexpected(std::move(dir.error()));
  return disk_.look(dir->get(), std::string(path.name()), true);
}

Result<bool> GitUndo::is_as_left(const Item& item) const {
  auto now = TRY(real(item.base_path()));
  if (!item.old) return !now.has_value();
  return now && difference(*item.old, now->node).empty();
}

Result<GitUndo::Packed*> GitUndo::packed_of(const RelPath& git) {
  auto [at, is_new] = packed_.try_emplace(git);
  if (is_new) {
    auto text =
        TRY(text_beneath(root_, git / "packed-refs", diff::kPackedRefsLimit));
    at->second.text = text.value_or("");
    at->second.refs = TRY(diff::parse_packed_refs(at->second.text));
  }
  return &at->second;
}

Result<bool> GitUndo::follow_index(Item& item,
                                   std::vector<std::string>& notes) {
  if (!item.old || !item.old->sha256) return true;
  std::string expected =
      TRY(objects_.get(*item.old->sha256, diff::kIndexLimit));
  auto now = TRY(real(item.path));
  auto text = TRY(text_beneath(root_, item.path, diff::kIndexLimit));
  const RelPath git = item.path.parent();
  auto shared = shared_beneath(root_, git);
  if (now && now->node.is_file() && text) {
    auto delta = diff::compare_indexes({expected, shared}, {*text, shared},
                                       TRY(format_beneath(root_, git)));
    if (delta && !delta->any()) {
      item.old = now->node;
      return true;
    }
  }
  notes.push_back(quote_name(shown_path(item.path)) +
                  " has other entries now and was left");
  return false;
}

// The packed-refs that the commit found: what it changed, or only looked at.
Status GitUndo::read_before(const Item& item) {
  if (within_git(item.path) != "packed-refs" || !is_file(item.fresh)) return {};
  auto text = objects_.get(*item.fresh->sha256, diff::kPackedRefsLimit);
  if (!text) return {};
  Packed& packed = *TRY(packed_of(item.path.parent()));
  packed.before = TRY(diff::parse_packed_refs(*text));
  return {};
}

// As the commit left it, in a file or packed since? Then it goes back to what
// it was, which may have been packed as well.
Result<bool> GitUndo::follow_ref(Item& item) {
  if (!item.old) return true;
  // A directory of refs, which git removes when all in it are packed.
  if (item.old->is_dir()) {
    if (item.fresh && !TRY(real(item.path))) item.old.reset();
    return true;
  }
  const RelPath git = git_directory_of(item.path);
  const std::string name(within_git(item.path));
  Packed& packed = *TRY(packed_of(git));
  auto now = packed.refs.find(name);
  const bool is_packed = now != packed.refs.end();
  auto loose = TRY(real(item.path));
  if (loose ? !difference(*item.old, loose->node).empty()
            : !is_packed || sha256(now->second + "\n") != *item.old->sha256)
    return true;  // drift, which is told where all is verified
  auto before = packed.before.find(name);
  const bool makes_way = item.fresh && item.fresh->is_dir();
  if (makes_way || (!item.fresh && before == packed.before.end())) {
    if (is_packed) packed.drop.insert(name);
    if (makes_way && !loose) item.old.reset();
    return makes_way || loose;
  }
  bool shows = loose && is_packed && before != packed.before.end() &&
               now->second == before->second;
  if (!item.fresh && !shows)
    item = text_item(item.path, item.old, file_like(*item.old),
                     before->second + "\n");
  if (!loose) item.old.reset();
  return true;
}

// The commit took refs out of it; git may have written it anew since.
Result<bool> GitUndo::follow_packed(Item& item) {
  if (!is_file(item.old) || !is_file(item.fresh) || !item.content ||
      TRY(is_as_left(item)))
    return true;
  auto left = objects_.get(*item.old->sha256, diff::kPackedRefsLimit);
  // Of a commit from before they were kept.
  if (!left) return true;
  auto after = TRY(diff::parse_packed_refs(*left));
  auto before = TRY(diff::parse_packed_refs(
      TRY(diff::read_content(*item.content, diff::kPackedRefsLimit))));
  const RelPath git = item.path.parent();
  auto top = TRY(real(git));
  Packed& packed = *TRY(packed_of(git));
  std::vector<Item> back;
  for (const auto& [name, value] : before) {
    if (after.contains(name)) continue;
    auto path = RelPath::parse(git.str() + "/" + name);
    // Somebody made it anew.
    if (!path || !top || packed.refs.contains(name)) return true;
    back.push_back(text_item(*path, {}, file_like(top->node), value + "\n"));
  }
  for (Item& one : back) more_.push_back(std::move(one));
  return false;
}

Result<bool> GitUndo::follow(Item& item, std::vector<std::string>& notes) {
  std::string_view relative = within_git(item.path);
  if (relative.empty()) return true;
  if (relative == "index") return follow_index(item, notes);
  if (relative == "packed-refs" && item.stays()) return false;
  if (relative == "packed-refs") return follow_packed(item);
  if (is_git_ref(relative)) return follow_ref(item);
  bool is_dir =
      (item.old && item.old->is_dir()) || (item.fresh && item.fresh->is_dir());
  if (is_git_note(relative) && !is_dir) return is_as_left(item);
  return true;
}

// The ref may have made way for refs beneath its name.
Status GitUndo::bring_back(std::vector<Item>& items, Item ref) const {
  auto at = std::ranges::find(items, ref.path, &Item::path);
  if (at == items.end()) {
    items.push_back(std::move(ref));
    return {};
  }
  if (at->fresh || !at->old || !at->old->is_dir())
    return fail(Code::kDrift, "{} has other content now",
                quote_name(shown_path(ref.path)));
  if (TRY(real(ref.path))) ref.old = at->old;
  *at = std::move(ref);
  return {};
}

Status GitUndo::drop_packed(std::vector<Item>& items) {
  for (const auto& [git, packed] : packed_) {
    auto text = without_refs(packed.text, packed.drop);
    if (!text) continue;
    RelPath path = git / "packed-refs";
    auto now = TRY(real(path));
    // Written by this undo as well, or gone just now.
    if (!now || std::ranges::find(items, path, &Item::path) != items.end())
      return fail(Code::kDrift, "{} has other content now",
                  quote_name(shown_path(path)));
    items.push_back(text_item(path, now->node, now->node, std::move(*text)));
  }
  return {};
}

// Those that came with the commit, and in which something is that stays; and
// those that git removed.
Status GitUndo::keep_directories(std::vector<Item>& items) const {
  std::set<RelPath> leaving;
  std::map<RelPath, size_t> dirs;
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    if (!item.old || item.fresh) continue;
    leaving.insert(item.path);
    if (item.old->is_dir() && !within_git(item.path).empty())
      dirs.emplace(item.path, i);
  }
  std::set<size_t> keep;
  for (auto at = dirs.rbegin(); at != dirs.rend(); ++at) {
    auto dir = disk_.open_dir(root_, at->first);
    bool stays = !dir;
    if (dir)
      for (const std::string& name : TRY(list_names(dir->get(), ".")))
        stays = stays || !leaving.contains(at->first / name);
    if (!stays) continue;
    keep.insert(at->second);
    leaving.erase(at->first);
  }
  size_t i = 0;
  std::erase_if(items, [&](const Item&) { return keep.contains(i++); });
  return {};
}

// git removes directories of refs when all in them are packed.
Status GitUndo::add_parents(std::vector<Item>& items) const {
  std::set<RelPath> have;
  for (const Item& item : items)
    if (item.fresh && item.fresh->is_dir()) have.insert(item.path);
  std::vector<Item> made;
  for (const Item& item : items) {
    if (!item.fresh || item.old || !is_loose_ref(item.path)) continue;
    const RelPath git = git_directory_of(item.path);
    auto top = TRY(real(git));
    if (!top) continue;
    for (RelPath dir = item.path.parent(); dir != git; dir = dir.parent()) {
      if (have.contains(dir) || TRY(real(dir))) break;
      have.insert(dir);
      Item parent;
      parent.path = dir;
      parent.fresh = top->node;
      parent.fresh->mode = 0755;
      parent.fresh->xattrs.clear();
      made.push_back(std::move(parent));
    }
  }
  for (Item& item : made) items.push_back(std::move(item));
  return {};
}

Status GitUndo::prepare(std::vector<Item>& items,
                        std::vector<std::string>& notes) {
  for (const Item& item : items) TRY(read_before(item));
  std::vector<Item> kept;
  for (Item& item : items)
    if (TRY(follow(item, notes))) kept.push_back(std::move(item));
  items = std::move(kept);
  for (Item& item : more_) TRY(bring_back(items, std::move(item)));
  more_.clear();
  TRY(drop_packed(items));
  TRY(keep_directories(items));
  return add_parents(items);
}

}  // namespace stoplog::gate
