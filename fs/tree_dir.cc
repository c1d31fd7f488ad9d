// SPDX-License-Identifier: Apache-2.0
// Listing directories. A cookie is a hash of the name, entries come in cookie
// order, so a listing can go on after any change, eviction or remount: what
// stayed is seen exactly once. Finished listings are kept for a moment only to
// save the work of making them again for the next block.
#include <dirent.h>

#include <algorithm>

#include "base/sys_node.h"
#include "fs/tree_impl.h"

namespace stoplog::fs {
namespace {

constexpr uint64_t kDot = 1, kDotDot = 2;
constexpr size_t kKept = 16;  // listings

// 58 bits of hash and 4 for names whose hashes meet; never below 16. The seed
// is the draft's secret, so nobody can make names that meet.
uint64_t cookie_of(std::string_view name, uint64_t seed) {
  uint64_t h = xxh3_64(std::as_bytes(std::span(name))) ^ seed;
  h *= 0x9e3779b97f4a7c15u;
  h ^= h >> 32;
  uint64_t cookie = (h & ((1ull << 58) - 1)) << 4;
  return std::max<uint64_t>(cookie, 16);
}

void order(std::vector<ListItem>& items) {
  std::ranges::sort(items, [](const ListItem& a, const ListItem& b) {
    return std::tie(a.cookie, a.name) < std::tie(b.cookie, b.name);
  });
  for (size_t i = 1; i < items.size(); ++i)
    if ((items[i].cookie >> 4) == (items[i - 1].cookie >> 4))
      items[i].cookie = items[i - 1].cookie + 1;
}

}  // namespace

// Takes out of the lower's names what the draft has or has deleted, and puts
// in its own. A clean node is the lower's business; only its number is ours.
void Tree::Impl::merge_held(const Held& dir, std::vector<ListItem>& items) {
  std::erase_if(items, [&](ListItem& item) {
    auto serial = State::child(dir, item.name);
    if (!serial) return false;
    const Held* node = *serial != 0 ? state_.find(*serial) : nullptr;
    if (node == nullptr || !node->is_clean()) return true;
    item.ino = node->ino;
    return false;
  });
  for (const auto& [name, serial] : dir.names) {
    const Held* node = serial != 0 ? state_.find(serial) : nullptr;
    if (node == nullptr || node->is_clean()) continue;
    items.push_back({.cookie = cookie_of(name, cookie_seed_),
                     .ino = node->ino,
                     .type = node->mode & S_IFMT,
                     .name = name});
  }
}

Result<std::shared_ptr<const Listing>> Tree::Impl::listing(NodeId dir,
                                                           bool fresh) {
  auto list = std::make_shared<Listing>();
  list->dir = dir;
  bool has_lower = true;
  {
    std::shared_lock lock(mutex_);
    const Live* live = get(dir);
    if (live == nullptr) return fail_errno(ESTALE);
    if (!S_ISDIR(live->type)) return fail_errno(ENOTDIR);
    const Held* held = live->serial ? state_.find(live->serial) : nullptr;
    if (live->serial != 0 && held == nullptr) return fail_errno(ESTALE);
    if (!fresh) {
      uint64_t version = held ? held->version : 0;
      std::lock_guard leaf(listings_mutex_);
      for (const auto& kept : listings_)
        if (kept->dir == dir && kept->version == version) return kept;
    }
    has_lower = held ? held->base && !held->is_unlinked() : !live->unlinked;
  }
  std::vector<ListItem>& items = list->items;
  if (has_lower) {
    auto fd = lower_dir(dir);
    if (!fd && fd.error().err() != ENOENT)
      return std::unexpected(std::move(fd).error());
    if (fd)
      TRY(list_lower(
          dir, (*fd)->get(),
          [&](std::string_view name, unsigned char type, uint64_t ino) {
            items.push_back({.cookie = cookie_of(name, cookie_seed_),
                             .ino = ino,
                             .type = static_cast<mode_t>(DTTOIF(type)),
                             .name = std::string(name)});
          }));
  }
  {
    std::shared_lock lock(mutex_);
    const Live* live = get(dir);
    if (live == nullptr) return fail_errno(ESTALE);
    if (const Held* held = live->serial ? state_.find(live->serial) : nullptr) {
      list->version = held->version;
      merge_held(*held, items);
    }
  }
  if (options_.rules != nullptr && options_.rules->hides()) {
    std::shared_lock lock(mutex_);
    const Live* live = get(dir);
    if (live == nullptr) return fail_errno(ESTALE);
    std::string path = draft_path(*live).value_or("");
    std::string origin = lower_path(*live).value_or(path);
    std::erase_if(list->items, [&](const ListItem& item) {
      bool is_dir = S_ISDIR(item.type);
      const PathRules& rules = *options_.rules;
      return rules.rule(join_path(path, item.name), is_dir) == Rule::kHide ||
             (origin != path &&
              rules.rule(join_path(origin, item.name), is_dir) == Rule::kHide);
    });
  }
  order(list->items);
  std::lock_guard leaf(listings_mutex_);
  std::erase_if(listings_, [&](const auto& old) { return old->dir == dir; });
  listings_.push_front(list);
  if (listings_.size() > kKept) listings_.pop_back();
  return list;
}

Status Tree::readdir(NodeId dir, uint64_t cookie, const DirSink& sink) {
  Impl& t = *impl_;
  auto list = TRY(t.listing(dir, cookie == 0));
  uint64_t ino = 0;
  {
    std::shared_lock lock(t.mutex_);
    if (const Live* live = t.get(dir)) ino = live->ino;
  }
  if (cookie < kDot &&
      !sink({.name = ".", .cookie = kDot, .ino = ino, .type = S_IFDIR}))
    return {};
  if (cookie < kDotDot &&
      !sink({.name = "..", .cookie = kDotDot, .ino = ino, .type = S_IFDIR}))
    return {};
  auto it =
      std::ranges::upper_bound(list->items, cookie, {}, &ListItem::cookie);
  for (; it != list->items.end(); ++it)
    if (!sink({.name = it->name,
               .cookie = it->cookie,
               .ino = it->ino,
               .type = it->type}))
      return {};
  return {};
}

Status Tree::readdir_plus(NodeId dir, uint64_t cookie, const DirSink& sink) {
  TRY(readdir(dir, cookie, [&](const DirItem& item) {
    if (item.name == "." || item.name == "..") return sink(item);
    // Who lists a directory has not tried what is in it.
    auto entry = look(dir, item.name, false);
    if (!entry) {
      int err = entry.error().err();
      // Gone since the listing was made: not there. A name that may not be
      // used still shows, without attributes.
      if (err == ENOENT || err == ESTALE) return true;
      return sink(item);
    }
    DirItem full = item;
    full.ino = entry->attr.ino;
    full.type = entry->attr.mode & S_IFMT;
    full.entry = &*entry;
    bool taken = sink(full);
    if (!taken) forget(entry->id, 1);
    return taken;
  }));
  return {};
}

}  // namespace stoplog::fs
