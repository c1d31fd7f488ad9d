// SPDX-License-Identifier: Apache-2.0
// A tree over a base of its own, driven by paths, for tests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catch_shim.h"
#include "fs/tree.h"
#include "temp_dir.h"

namespace stoplog::test {

class TreeFixture {
 public:
  TreeFixture() = default;
  void open() {
    options.draft_dir = draft.fd();
    options.base = base.fd();
    options.background = false;
    auto opened = fs::Tree::open(options);
    if (!opened) FAIL(opened.error().text());
    tree = std::move(*opened);
  }
  // As when the kernel drops all that it knows.
  void forget_all() {
    for (fs::NodeId id : std::exchange(looked_up, {})) tree->forget(id, 1);
  }
  void reopen() {
    looked_up.clear();
    tree.reset();
    open();
  }
  // The node of a path, with lookups counted on the way; 0 when absent.
  fs::NodeId at(std::string_view path) {
    fs::NodeId id = fs::kRootId;
    const RelPath parsed = RelPath::parse(path).value();
    for (auto name : parsed.components()) {
      auto entry = tree->lookup(id, name);
      if (!entry) {
        last_errno = entry.error().err();
        return 0;
      }
      id = entry->id;
      looked_up.push_back(id);
    }
    return id;
  }
  struct Place {
    fs::NodeId dir;
    std::string name;
  };
  Place place(std::string_view path) {
    RelPath p = *RelPath::parse(path);
    return {at(p.parent().str()), std::string(p.name())};
  }
  fs::Attr attr(std::string_view path) {
    auto entry = tree->getattr(at(path));
    if (!entry) FAIL(std::string(path) + ": " + entry.error().text());
    return entry->attr;
  }
  std::string read(std::string_view path) { return read(at(path)); }
  std::string read(fs::NodeId id) {
    std::string text(1u << 20, '\0');
    auto n = tree->read(id, 0, std::as_writable_bytes(std::span(text)));
    if (!n) return "<" + n.error().text() + ">";
    text.resize(*n);
    return text;
  }
  int write(std::string_view path, std::string_view text, uint64_t offset = 0) {
    return err(
        tree->write(at(path), offset, std::as_bytes(std::span(text)), {}));
  }
  int truncate(std::string_view path, uint64_t size) {
    return err(
        tree->setattr(at(path), {.set = fs::kSetSize, .size = size}, caller));
  }
  int create(std::string_view path, std::string_view text = "",
             mode_t mode = 0644) {
    auto [dir, name] = place(path);
    auto made = tree->mknod(dir, name, S_IFREG | mode, 0, caller);
    if (!made) return made.error().err();
    looked_up.push_back(made->id);
    if (!text.empty())
      return err(tree->write(made->id, 0, std::as_bytes(std::span(text)), {}));
    return 0;
  }
  int mkdir(std::string_view path, mode_t mode = 0755) {
    auto [dir, name] = place(path);
    return known(tree->mkdir(dir, name, mode, caller));
  }
  int unlink(std::string_view path) {
    auto [dir, name] = place(path);
    return err(tree->unlink(dir, name, caller));
  }
  int rmdir(std::string_view path) {
    auto [dir, name] = place(path);
    return err(tree->rmdir(dir, name, caller));
  }
  int rename(std::string_view from, std::string_view to, unsigned flags = 0) {
    auto [dir, name] = place(from);
    auto [new_dir, new_name] = place(to);
    return err(tree->rename(dir, name, new_dir, new_name, flags, caller));
  }
  int link(std::string_view from, std::string_view to) {
    auto [dir, name] = place(to);
    return known(tree->link(at(from), dir, name, caller));
  }
  int known(const Result<fs::Entry>& made) {
    if (made) looked_up.push_back(made->id);
    return err(made);
  }
  std::string list(std::string_view path) {
    std::vector<std::string> names;
    auto listed = tree->readdir(at(path), 0, [&](const fs::DirItem& item) {
      if (item.name != "." && item.name != "..") names.emplace_back(item.name);
      return true;
    });
    if (!listed) return "<" + listed.error().text() + ">";
    std::ranges::sort(names);
    std::string all;
    for (const std::string& name : names)
      all += (all.empty() ? "" : " ") + name;
    return all;
  }
  template <typename T>
  static int err(const Result<T>& result) {
    return result ? 0 : result.error().errno_or_eio();
  }

  TempDir draft, base;
  fs::TreeOptions options;
  std::unique_ptr<fs::Tree> tree;
  fs::Caller caller{.uid = 1000, .gid = 1000, .umask = 022};
  int last_errno = 0;
  std::vector<fs::NodeId> looked_up;  // one lookup each
};

}  // namespace stoplog::test
