// SPDX-License-Identifier: Apache-2.0
#include "gate/git_rule.h"

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/escape.h"
#include "base/shown_path.h"
#include "diff/content_hash.h"
#include "diff/git_object.h"
#include "diff/git_sort.h"
#include "diff/git_split_index.h"
#include "fs/beneath.h"
#include "gate/git_paths.h"
#include "gate/git_undo.h"
#include "gate/select_items.h"

namespace stoplog::gate {
namespace {

// A ref of these is above it, as refs/heads/a is above refs/heads/a/b.
bool above(const std::set<std::string_view>& refs, std::string_view name) {
  for (size_t at = name.rfind('/'); at != name.npos && at > 0;
       at = name.rfind('/', at - 1))
    if (refs.contains(name.substr(0, at))) return true;
  return false;
}

}  // namespace

GitRule::GitRule(const Disk& disk, int root, const diff::Change& row)
    : disk_(disk), root_(root), row_(row) {}

std::string_view GitRule::relative(const RelPath& path) const {
  std::string_view text = path.str();
  return text.size() > row_.path.str().size()
             ? text.substr(row_.path.str().size() + 1)
             : std::string_view();
}

// The root when the name is no path: refs are named by an agent.
RelPath GitRule::beneath(std::string_view rel) const {
  auto path = RelPath::parse(row_.path.str() + "/" + std::string(rel));
  return path ? std::move(*path) : RelPath();
}

// A commit-graph, an index of several packs: git believes them without a look
// at the objects, and makes them again. Of a repository that goes they go too.
bool GitRule::is_rebuilt(const diff::Change& part) const {
  return part.after && part.after->type == fs::Type::kFile &&
         diff::git_sort(relative(part.path)) == diff::GitSort::kRebuilt;
}

bool GitRule::is_whole() const {
  return std::any_of(row_.git->parts.begin(), row_.git->parts.end(),
                     [&](const diff::Change& part) {
                       return part.path == row_.path &&
                              (!part.before || !part.after);
                     });
}

std::vector<RelPath> GitRule::locks() const {
  std::vector<RelPath> locks;
  if (is_whole()) return locks;
  if (row_.git->index_changed) locks.push_back(beneath("index.lock"));
  bool deletes = false;
  std::set<std::string_view> comes;
  for (const diff::RefMove& move : row_.git->refs)
    if (move.to) comes.insert(move.name);
  for (const diff::RefMove& move : row_.git->refs) {
    RelPath lock = beneath(move.name + ".lock");
    // It would stand in a directory that goes; that a running git has none
    // there is seen by removing it.
    bool goes = !move.to && above(comes, move.name);
    if (!lock.is_root() && !goes) locks.push_back(std::move(lock));
    deletes = deletes || !move.to;
  }
  if (deletes) locks.push_back(beneath("packed-refs.lock"));
  return locks;
}

Result<std::optional<Standing>> GitRule::real(const RelPath& path) const {
  auto dir = disk_.open_dir(root_, path.parent());
  if (!dir && fs::is_absence(dir.error())) return std::nullopt;
  if (!dir) return std::unexpected(std::move(dir.error()));
  return disk_.look(dir->get(), std::string(path.name()), true);
}

Result<std::optional<std::string>> GitRule::real_text(const RelPath& path,
                                                      uint64_t limit) const {
  return text_beneath(root_, path, limit);
}

Node GitRule::plain_node() const {
  Node node = owner_;
  node.type = fs::Type::kFile;
  node.mode = 0644;
  node.xattrs.clear();
  return node;
}

// Nothing here can be approved by its own name: what needs that is left. A
// directory of the git directory may come already, with a hook that was.
void GitRule::tame(std::vector<Item>& items, size_t first) {
  std::set<RelPath> taken;
  for (size_t i = 0; i < first; ++i) taken.insert(items[i].path);
  auto is_left = [&](Item& item) {
    if (taken.contains(item.path)) return true;
    if (!item.fresh) return false;
    fs::Type type = item.fresh->type;
    if (type != fs::Type::kFile && type != fs::Type::kDir) {
      notes_.push_back(fmt::format(
          "{} is a {} and was left", quote_name(shown_path(item.path)),
          type == fs::Type::kSymlink ? "link" : "special file"));
      return true;
    }
    // Access lists of a directory hold for all that git makes in it.
    item.fresh->xattrs =
        item.old ? item.old->xattrs : decltype(item.fresh->xattrs)();
    mode_t mode = tame_mode(*item.fresh, item.old);
    if (mode == item.fresh->mode) return false;
    notes_.push_back(fmt::format("{}: mode {:04o} instead of {:04o}",
                                 quote_name(shown_path(item.path)), mode,
                                 item.fresh->mode));
    item.fresh->mode = mode;
    item.rest_held = true;
    return false;
  };
  auto added = items.begin() + static_cast<std::ptrdiff_t>(first);
  items.erase(std::remove_if(added, items.end(), is_left), items.end());
}

Status GitRule::prepare(std::vector<Item>& items,
                        const std::set<RelPath>& unlocked) {
  const size_t first = items.size();
  if (is_whole()) {
    for (const diff::Change& part : row_.git->parts)
      if (!is_rebuilt(part)) {
        auto item = whole_item(part);
        if (item)
          items.push_back(std::move(*item));
        else if (item.error().code() == Code::kInvalid)
          notes_.push_back(item.error().text() + " and was left");
        else
          return std::unexpected(std::move(item.error()));
      }
    tame(items, first);
    return {};
  }
  auto top = TRY(real(row_.path));
  if (!top || !top->node.is_dir())
    return fail(Code::kDrift, "{} is gone", quote_name(shown_path(row_.path)));
  owner_ = top->node;
  owner_.mtime = Clock::real().now();

  TRY(prepare_refs(items, unlocked));
  for (const diff::Change& part : row_.git->parts) {
    std::string_view rel = relative(part.path);
    if (rel.empty() || is_git_ref(rel) || rel.ends_with(".lock") ||
        is_rebuilt(part))
      continue;
    if (rel == "index")
      TRY(prepare_index(items, part, unlocked));
    else
      TRY(prepare_plain(items, part));
  }
  tame(items, first);
  return add_parents(items);
}

Status GitRule::prepare_index(std::vector<Item>& items,
                              const diff::Change& part,
                              const std::set<RelPath>& unlocked) {
  if (!row_.git->index_changed || !part.after) return {};
  auto left = [&](std::string_view why) -> Status {
    notes_.push_back(fmt::format("the index {} and was left", why));
    return {};
  };
  if (unlocked.contains(beneath("index.lock")))
    return left("is locked by a running git");
  std::string base;
  if (part.before && part.before->content)
    base = TRY(diff::read_content(*part.before->content, diff::kIndexLimit));
  auto now = TRY(real_text(part.path, diff::kIndexLimit));
  auto shared = shared_beneath(root_, row_.path);
  auto of_base = [this](const std::string& name) {
    return shared_of(Side::kBase, name);
  };
  auto delta =
      diff::compare_indexes({base, of_base}, {now.value_or(""), shared},
                            TRY(format_beneath(root_, row_.path)));
  if (!delta) return left("cannot be read");
  if (delta->any()) return left("has other entries in the real repository");
  auto item = index_item(part);
  if (!item) return left("cannot be read");
  auto old = TRY(real(part.path));
  item->old = old ? std::optional(old->node) : std::nullopt;
  items.push_back(std::move(*item));
  return {};
}

// The draft may have taken the base's shared part away, or brought its own.
Result<std::string> GitRule::shared_of(Side side,
                                       const std::string& name) const {
  for (const diff::Change& other : row_.git->parts) {
    const auto& state = side == Side::kBase ? other.before : other.after;
    if (relative(other.path) == name && state && state->content)
      return diff::read_content(*state->content, diff::kIndexLimit);
  }
  return shared_beneath(root_, row_.path)(name);
}

// Of a new repository what git reads otherwise than we do would be there
// without having been compared with anything.
Result<Item> GitRule::whole_item(const diff::Change& part) {
  std::string_view rel = relative(part.path);
  bool file = part.after && part.after->type == fs::Type::kFile &&
              part.after->content != nullptr;
  if (!file) return item_of(part);
  if (rel == "index") return index_item(part);
  if (rel == "packed-refs") return packed_item(part);
  return is_git_ref(rel) ? ref_item(part) : item_of(part);
}

Result<Item> GitRule::ref_item(const diff::Change& part) {
  auto text = diff::read_content(*part.after->content, diff::kRefFile);
  auto ref = text ? diff::parse_ref(*text)
                  : Result<std::string>(std::unexpected(text.error()));
  if (!ref)
    return fail(Code::kInvalid, "{} is no ref",
                quote_name(shown_path(part.path)));
  Item item = TRY(item_of(part));
  return text_item(part.path, item.old, *item.fresh, *ref + "\n");
}

Result<Item> GitRule::packed_item(const diff::Change& part) {
  auto text = diff::read_content(*part.after->content, diff::kPackedRefsLimit);
  auto refs = text ? diff::parse_packed_refs(*text)
                   : Result<std::map<std::string, std::string>>(
                         std::unexpected(text.error()));
  if (!refs)
    return fail(Code::kInvalid, "{} cannot be read",
                quote_name(shown_path(part.path)));
  Item item = TRY(item_of(part));
  return text_item(part.path, item.old, *item.fresh,
                   diff::packed_refs_text(*refs));
}

// Of an index the entries are what was compared; the rest is made again by git.
// One that cannot be read to its end was compared with nothing.
Result<Item> GitRule::index_item(const diff::Change& part) {
  Item item = TRY(item_of(part));
  if (!item.fresh || !item.fresh->is_file() || !part.after->content)
    return item;
  std::string bytes =
      TRY(diff::read_content(*part.after->content, diff::kIndexLimit));
  auto of_draft = [this](const std::string& name) {
    return shared_of(Side::kDraft, name);
  };
  auto made = [&](diff::ObjectFormat format) -> Result<std::string> {
    TRY(diff::compare_indexes({}, {bytes, of_draft}, format));
    return diff::index_without_extras(bytes, format);
  };
  if (!is_whole())
    return text_item(part.path, item.old, *item.fresh,
                     TRY(made(TRY(format_beneath(root_, row_.path)))));
  // A new repository's format is in its configuration, which is another row:
  // the index is of the one format in which it can be read.
  auto one = made(diff::ObjectFormat::kSha1);
  auto other = made(diff::ObjectFormat::kSha256);
  if (one.has_value() == other.has_value())
    return fail(Code::kInvalid, "the index of {} cannot be read",
                quote_name(row_.path.str()));
  return text_item(part.path, item.old, *item.fresh,
                   std::move(one ? *one : *other));
}

Status GitRule::prepare_plain(std::vector<Item>& items,
                              const diff::Change& part) {
  bool lasting = relative(part.path).starts_with("objects/") ||
                 is_shared_index(relative(part.path));
  if (lasting && part.before && !part.from) return {};  // only added
  auto now = TRY(real(part.path));
  Item item = TRY(item_of(part));
  // Moved inside the git directory: made anew, the old name left.
  if (part.from) item.old.reset();
  item.from.reset();
  if (!item.old) {
    if (!now && item.fresh) items.push_back(std::move(item));
    return {};
  }
  bool is_base = now && difference(*item.old, now->node).empty();
  if (is_base && !item.old->is_dir()) {
    items.push_back(std::move(item));
    return {};
  }
  const auto& others = row_.git->others;
  if (!is_base &&
      std::find(others.begin(), others.end(), part.path) != others.end())
    notes_.push_back(quote_name(shown_path(part.path)) +
                     " changed in the real repository and was left");
  return {};
}

// Directories for what is new; what would need one in the place of something
// else, as a log of refs beneath the name of a log, is left.
Status GitRule::add_parents(std::vector<Item>& items) {
  std::set<RelPath> have, blocked;
  std::map<RelPath, Item*> goes;
  for (Item& item : items) {
    if (item.fresh && item.fresh->is_dir()) have.insert(item.path);
    if (!item.fresh && !item.from) goes.emplace(item.path, &item);
  }
  std::vector<Item> more;
  auto make = [&](const RelPath& dir) -> Result<bool> {
    auto now = TRY(real(dir));
    if (now && now->node.is_dir()) return false;
    Node node = owner_;
    node.mode = 0755;
    node.xattrs.clear();
    if (now) {
      // A ref that goes, and now refs stand beneath its name.
      auto gone = goes.find(dir);
      if (gone == goes.end())
        blocked.insert(dir);
      else
        gone->second->fresh = std::move(node);
      return false;
    }
    Item made;
    made.path = dir;
    made.fresh = std::move(node);
    more.push_back(std::move(made));
    return true;
  };
  for (const Item& item : items) {
    if (!item.fresh || !item.path.is_within(row_.path)) continue;
    for (RelPath dir = item.path.parent();
         dir != row_.path && dir.is_within(row_.path); dir = dir.parent())
      if (!have.insert(dir).second || !TRY(make(dir))) break;
  }
  for (Item& item : more) items.push_back(std::move(item));
  if (blocked.empty()) return {};
  std::erase_if(items, [&](const Item& item) {
    return item.fresh && std::ranges::any_of(blocked, [&](const RelPath& dir) {
             return item.path != dir && item.path.is_within(dir);
           });
  });
  return {};
}

}  // namespace stoplog::gate
