// SPDX-License-Identifier: Apache-2.0
#include "gate/git_rule.h"

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/escape.h"
#include "base/strings.h"
#include "diff/content_hash.h"
#include "diff/git_object.h"
#include "diff/git_split_index.h"
#include "gate/select_items.h"
#include "snapshot/content_digest.h"

namespace stoplog::gate {
namespace {

constexpr uint64_t kRefFile = 4096;
constexpr uint64_t kConfigLimit = 1u << 20;

// The same for the git directory of a submodule or of another work tree, which
// may have slashes in its name: known by what git keeps in one.
std::string_view within_inner(std::string_view relative) {
  if (!relative.starts_with("modules/") && !relative.starts_with("worktrees/"))
    return relative;
  size_t at = std::min(relative.find("/objects/"), relative.find("/refs/"));
  if (at == std::string_view::npos) at = relative.rfind('/');
  return relative.substr(at + 1);
}

// The path relative to the git directory that it is in; empty: none.
std::string_view within_git(const RelPath& path) {
  std::string_view text = path.str();
  if (text.starts_with(".git/")) return within_inner(text.substr(5));
  size_t at = text.find("/.git/");
  return at == std::string_view::npos ? std::string_view()
                                      : within_inner(text.substr(at + 6));
}

bool is_ref(std::string_view relative) {
  return relative == "HEAD" || relative.starts_with("refs/") ||
         relative == "packed-refs";
}

// Only ever added: an index of the real repository may rest on it.
bool is_shared_index(std::string_view relative) {
  return relative.starts_with("sharedindex.");
}

Result<std::optional<std::string>> text_beneath(int root, const RelPath& path,
                                                uint64_t limit) {
  auto state = TRY(fs::state_beneath(root, path));
  if (!state || !state->content) return std::nullopt;
  return TRY(diff::read_content(*state->content, limit));
}

// How the real repository names its objects.
Result<diff::ObjectFormat> format_beneath(int root, const RelPath& git) {
  auto config = TRY(text_beneath(root, git / "config", kConfigLimit));
  return diff::object_format(config.value_or(""));
}

diff::SharedIndex shared_beneath(int root, const RelPath& git) {
  return [root, git](const std::string& name) -> Result<std::string> {
    auto text = TRY(text_beneath(root, git / name, diff::kIndexLimit));
    if (!text) return fail_errno(ENOENT, "{}", name);
    return std::move(*text);
  };
}

Item write_item(const RelPath& path, const std::optional<Standing>& old,
                Node fresh, std::string text) {
  Item item;
  item.path = path;
  if (old) item.old = old->node;
  fresh.sha256 = sha256(text);
  fresh.size = text.size();
  item.fresh = std::move(fresh);
  item.content = snapshot::memory_content(std::move(text));
  return item;
}

}  // namespace

std::optional<RelPath> git_lock_for(const RelPath& path) {
  std::string_view relative = within_git(path);
  if (relative.ends_with(".lock")) return std::nullopt;
  if (relative != "index" && !is_ref(relative)) return std::nullopt;
  std::string name = std::string(path.name()) + ".lock";
  if (!is_valid_name(name)) return std::nullopt;
  return path.parent() / name;
}

bool is_git_object(const RelPath& path) {
  std::string_view relative = within_git(path);
  return relative.starts_with("objects/") || is_shared_index(relative);
}

bool is_git_index(const RelPath& path) { return within_git(path) == "index"; }

Result<bool> follow_index(const Disk& disk, int root, Item& item,
                          std::string_view expected) {
  Fd dir = TRY(disk.open_dir(root, item.path.parent()));
  auto now = TRY(disk.look(dir.get(), std::string(item.path.name()), true));
  if (!now || !now->node.is_file()) return false;
  auto text = TRY(text_beneath(root, item.path, diff::kIndexLimit));
  if (!text) return false;
  const RelPath git = item.path.parent();
  auto shared = shared_beneath(root, git);
  auto delta = diff::compare_indexes({expected, shared}, {*text, shared},
                                     TRY(format_beneath(root, git)));
  if (!delta || delta->any()) return false;
  item.old = now->node;
  return true;
}

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
  for (const diff::RefMove& move : row_.git->refs) {
    if (RelPath lock = beneath(move.name + ".lock"); !lock.is_root())
      locks.push_back(std::move(lock));
    deletes = deletes || !move.to;
  }
  if (deletes) locks.push_back(beneath("packed-refs.lock"));
  return locks;
}

Result<std::optional<Standing>> GitRule::real(const RelPath& path) const {
  auto dir = disk_.open_dir(root_, path.parent());
  if (!dir) return std::nullopt;
  return disk_.look(dir->get(), std::string(path.name()), true);
}

Result<std::optional<std::string>> GitRule::real_text(const RelPath& path,
                                                      uint64_t limit) const {
  return text_beneath(root_, path, limit);
}

Status GitRule::read_packed() {
  if (packed_before_) return {};
  auto packed = TRY(real_text(beneath("packed-refs"), diff::kPackedRefsLimit));
  packed_before_ = packed ? *packed : "";
  return {};
}

// Where a ref points in the real repository: loose first, then packed.
Result<std::optional<std::string>> GitRule::current(const std::string& ref) {
  if (auto loose = TRY(real_text(beneath(ref), kRefFile)))
    return TRY(diff::parse_ref(*loose));
  TRY(read_packed());
  auto all = TRY(diff::parse_packed_refs(*packed_before_));
  auto found = all.find(ref);
  if (found == all.end()) return std::nullopt;
  return found->second;
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
    if (type != fs::Type::kFile && type != fs::Type::kDir &&
        type != fs::Type::kSymlink) {
      notes_.push_back(quote_name(item.path.str()) +
                       " is a special file and was left");
      return true;
    }
    mode_t mode = tame_mode(*item.fresh, item.old);
    if (mode == item.fresh->mode) return false;
    notes_.push_back(fmt::format("{}: mode {:04o} instead of {:04o}",
                                 quote_name(item.path.str()), mode,
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
      items.push_back(TRY(item_of(part)));
    tame(items, first);
    return {};
  }
  auto top = TRY(real(row_.path));
  if (!top || !top->node.is_dir())
    return fail(Code::kDrift, "{} is gone", quote_name(row_.path.str()));
  owner_ = top->node;
  owner_.mtime = Clock::real().now();

  TRY(prepare_refs(items, unlocked));
  for (const diff::Change& part : row_.git->parts) {
    std::string_view rel = relative(part.path);
    if (rel.empty() || is_ref(rel) || rel.ends_with(".lock")) continue;
    if (rel == "index")
      TRY(prepare_index(items, part, unlocked));
    else
      TRY(prepare_plain(items, part));
  }
  tame(items, first);
  return add_parents(items);
}

Status GitRule::prepare_refs(std::vector<Item>& items,
                             const std::set<RelPath>& unlocked) {
  bool packed_locked = !unlocked.contains(beneath("packed-refs.lock"));
  for (const diff::RefMove& move : row_.git->refs) {
    RelPath path = beneath(move.name);
    RelPath lock = beneath(move.name + ".lock");
    if (path.is_root() || lock.is_root()) continue;
    if (unlocked.contains(lock) || (!move.to && !packed_locked)) {
      notes_.push_back(escape(move.name) +
                       " is locked by a running git and was left");
      continue;
    }
    auto now = TRY(current(move.name));
    if (now != move.from) {
      notes_.push_back(
          fmt::format("{} moved in the real repository to {} and was left; "
                      "the draft has it at {}",
                      escape(move.name), escape(now.value_or("nothing")),
                      escape(move.to.value_or("nothing"))));
      continue;
    }
    TRY(prepare_ref(items, move));
  }
  if (packed_after_) {
    RelPath path = beneath("packed-refs");
    auto old = TRY(real(path));
    items.push_back(
        write_item(path, old, old ? old->node : plain_node(), *packed_after_));
  }
  return {};
}

Status GitRule::prepare_ref(std::vector<Item>& items,
                            const diff::RefMove& move) {
  RelPath path = beneath(move.name);
  auto old = TRY(real(path));
  if (!move.to) {
    if (old && old->node.is_file()) {
      Item item;
      item.path = path;
      item.old = old->node;
      items.push_back(std::move(item));
    }
    return drop_packed(move.name);
  }
  if (old && !old->node.is_file()) {
    notes_.push_back(escape(move.name) +
                     " is no file in the real repository and was left");
    return {};
  }
  Node node = old ? old->node : plain_node();
  node.mtime = owner_.mtime;
  items.push_back(write_item(path, old, node, *move.to + "\n"));
  return {};
}

// A deleted ref must not come back from packed-refs.
Status GitRule::drop_packed(const std::string& name) {
  TRY(read_packed());
  const std::string& from = packed_after_ ? *packed_after_ : *packed_before_;
  std::string kept;
  bool dropped = false, skip_peeled = false;
  for (std::string_view line : split(from, '\n')) {
    if (line.empty()) continue;
    bool peeled = line.starts_with("^");
    size_t space = std::min(line.find(' '), line.size() - 1);
    bool this_one = !peeled && line.substr(space + 1) == name;
    if (this_one || (peeled && skip_peeled)) {
      dropped = skip_peeled = true;
      continue;
    }
    skip_peeled = false;
    kept += line;
    kept += '\n';
  }
  if (dropped) packed_after_ = std::move(kept);
  return {};
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
  // The draft may have taken the base's shared part away.
  auto shared_of_base = [&](const std::string& name) -> Result<std::string> {
    for (const diff::Change& other : row_.git->parts)
      if (relative(other.path) == name && other.before && other.before->content)
        return diff::read_content(*other.before->content, diff::kIndexLimit);
    return shared(name);
  };
  auto delta =
      diff::compare_indexes({base, shared_of_base}, {now.value_or(""), shared},
                            TRY(format_beneath(root_, row_.path)));
  if (!delta) return left("cannot be read");
  if (delta->any()) return left("has other entries in the real repository");
  Item item = TRY(item_of(part));
  auto old = TRY(real(part.path));
  item.old = old ? std::optional(old->node) : std::nullopt;
  items.push_back(std::move(item));
  return {};
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
    notes_.push_back(quote_name(part.path.str()) +
                     " changed in the real repository and was left");
  return {};
}

Status GitRule::add_parents(std::vector<Item>& items) const {
  std::set<RelPath> have;
  for (const Item& item : items)
    if (item.fresh && item.fresh->is_dir()) have.insert(item.path);
  std::vector<Item> more;
  for (const Item& item : items) {
    if (!item.fresh || !item.path.is_within(row_.path)) continue;
    for (RelPath dir = item.path.parent();
         dir != row_.path && dir.is_within(row_.path); dir = dir.parent()) {
      if (have.contains(dir) || TRY(real(dir))) break;
      have.insert(dir);
      Item made;
      made.path = dir;
      made.fresh = owner_;
      made.fresh->mode = 0755;
      made.fresh->xattrs.clear();
      more.push_back(std::move(made));
    }
  }
  for (Item& item : more) items.push_back(std::move(item));
  return {};
}

}  // namespace stoplog::gate
