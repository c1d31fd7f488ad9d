// SPDX-License-Identifier: Apache-2.0
// A workspace, a second directory with the draft's side, a state directory and
// an object store, all in a temporary directory; and trees as comparable text.
#pragma once

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/sys_file.h"
#include "catch_shim.h"
#include "fs/view.h"
#include "gate/commit_plan.h"
#include "gate/commits.h"
#include "gate/disk.h"
#include "gate/transaction.h"
#include "snapshot/content_digest.h"
#include "snapshot/objects.h"

namespace stoplog::gate::test {

inline Fd open_dir(const std::string& path) {
  return std::move(*sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
}

inline void put(const std::string& path, const std::string& text,
                mode_t mode = 0644) {
  std::filesystem::create_directories(
      std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
  ::chmod(path.c_str(), mode);
}
inline std::string get(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Every path with type, mode, links and content: equal trees, equal text.
inline std::map<std::string, std::string> tree(const std::string& top) {
  std::map<std::string, std::string> all;
  std::map<ino_t, std::set<std::string>> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
    struct stat st{};
    ::lstat(entry.path().c_str(), &st);
    std::string name = entry.path().string().substr(top.size() + 1);
    std::string text = fmt::format("{:o}", st.st_mode);
    if (S_ISREG(st.st_mode)) text += ":" + get(entry.path());
    if (S_ISLNK(st.st_mode))
      text += "->" + std::filesystem::read_symlink(entry.path()).string();
    if (S_ISREG(st.st_mode) && st.st_nlink > 1) {
      text += fmt::format(" links={}", st.st_nlink);
      names[st.st_ino].insert(name);
    }
    all.emplace(name, text);
  }
  for (const auto& [ino, group] : names)
    for (const std::string& name : group) all[name] += " of " + *group.begin();
  return all;
}

inline std::optional<Sha256Digest> digest_of(const fs::NodeState& state) {
  if (!state.content) return std::nullopt;
  return *snapshot::content_digest(*state.content);
}

// What a view says, as wanted items; the draft's side is all approved.
inline std::vector<Item> items_of(const fs::View& view,
                                  std::map<uint64_t, RelPath> leaders = {}) {
  auto digest = digest_of;
  std::vector<Item> items;
  auto changes = std::move(*view.changes());
  for (const fs::RawChange& change : changes) {
    Item item;
    item.path = change.path;
    item.from = change.from;
    if (change.before)
      item.old = node_of(*change.before, digest(*change.before));
    if (change.after) {
      item.fresh = node_of(*change.after, digest(*change.after));
      item.content = change.after->content;
      if (change.after->link_group != 0) {
        auto [at, is_new] =
            leaders.emplace(change.after->link_group, change.path);
        if (!is_new) item.link_to = at->second;
      }
    }
    items.push_back(std::move(item));
  }
  return items;
}

struct Site {
  std::string top, ws, draft, state_path;
  Fd root, side, state, store_dir;
  std::optional<snapshot::ObjectStore> store;

  explicit Site(const std::string& where = "/tmp") {
    std::string name = where + "/stoplog-gate-XXXXXX";
    top = ::mkdtemp(name.data());
    ws = top + "/ws";
    draft = top + "/draft";
    state_path = top + "/state";
    for (const auto& dir : {ws, draft, state_path, top + "/objects"})
      std::filesystem::create_directory(dir);
    root = open_dir(ws);
    side = open_dir(draft);
    state = open_dir(state_path);
    store_dir = open_dir(top + "/objects");
    store.emplace(std::move(*snapshot::ObjectStore::open(store_dir.get())));
  }
  ~Site() {
    std::error_code ignored;
    std::filesystem::remove_all(top, ignored);
  }

  // The draft's side starts as a copy of the workspace.
  void branch() {
    std::filesystem::remove_all(draft);
    std::string command = "cp -a " + ws + " " + draft;
    REQUIRE(::system(command.c_str()) == 0);
    side = open_dir(draft);
  }
  std::vector<Item> items(std::map<std::string, std::string> moved = {}) const {
    auto view = fs::view_of_directories(root.get(), side.get(), moved);
    std::set<std::string> changed;
    auto changes = std::move(*view->changes());
    for (const fs::RawChange& change : changes)
      changed.insert(change.path.str());
    // Files that are as they were, and may have new names.
    std::map<uint64_t, RelPath> leaders;
    std::vector<Item> kept;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(draft)) {
      std::string name = entry.path().string().substr(draft.size() + 1);
      if (changed.contains(name)) continue;
      RelPath path = std::move(*RelPath::parse(name));
      auto held = std::move(**fs::state_beneath(side.get(), path));
      auto real = std::move(*fs::state_beneath(root.get(), path));
      if (held.link_group == 0 || !real) continue;
      leaders.emplace(held.link_group, path);
      Item item;
      item.path = path;
      item.old = item.fresh = node_of(*real, digest_of(*real));
      kept.push_back(std::move(item));
    }
    std::vector<Item> all = items_of(*view, leaders);
    std::set<RelPath> used;
    for (const Item& item : all)
      if (item.link_to) used.insert(*item.link_to);
    for (Item& item : kept)
      if (used.contains(item.path)) all.push_back(std::move(item));
    return all;
  }
  Ground ground(const Disk* disk = nullptr) {
    return Ground{.root = root.get(),
                  .state = state.get(),
                  .objects = &*store,
                  .disk = disk,
                  .lock_wait = std::chrono::seconds(10)};
  }
  Result<CommitRecord> commit(std::map<std::string, std::string> moved = {}) {
    return transact(ground(), items(std::move(moved)), CommitMeta{});
  }
  // Nothing of ours is left anywhere, and the tree is what is on record.
  void check_clean() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(ws))
      CHECK(!entry.path().filename().string().starts_with(".stoplog"));
    if (std::filesystem::exists(state_path + "/pending"))
      CHECK(std::filesystem::is_empty(state_path + "/pending"));
    for (const char* written : {"/commits", "/kept"})
      if (std::filesystem::exists(state_path + written))
        for (const auto& entry :
             std::filesystem::directory_iterator(state_path + written))
          CHECK(!entry.path().filename().string().starts_with(".stoplog"));
    check_newest();
  }
  // What the newest commit is said to have replaced is not there any more;
  // somebody may have edited what came.
  void check_newest() const {
    auto numbers = list_commits(state.get());
    REQUIRE(numbers);
    if (numbers->empty()) return;
    auto record = read_commit(state.get(), numbers->back());
    REQUIRE(record);
    for (const Item& item : record->items) {
      if (!item.old || !item.fresh || !item.old->is_file() ||
          item.old->sha256 == item.fresh->sha256)
        continue;
      INFO("commit " << numbers->back() << " " << item.path.str());
      auto stands = fs::state_beneath(root.get(), item.path);
      REQUIRE(stands);
      if (*stands) CHECK(digest_of(**stands) != item.old->sha256);
    }
  }
};

// Runs `body` in a child that dies of SIGKILL at the k-th system call; true
// when it got to its end alive.
inline bool survives(int k, const std::function<void(const Disk&)>& body) {
  pid_t pid = ::fork();
  if (pid == 0) {
    int n = 0;
    Disk disk([&](const char*) {
      if (++n == k) ::kill(::getpid(), SIGKILL);
      return 0;
    });
    body(disk);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status);
}

// Dies when `renames` steps of the switch were made, before the next one or
// before they are synced.
inline void die_after(Site& site, int renames) {
  auto items = site.items();
  pid_t pid = ::fork();
  if (pid == 0) {
    int seen = 0;
    Disk disk([&](const char* call) {
      // The first rename is the probe of the stage.
      bool next =
          std::string_view(call) == "renameat2" && seen++ == renames + 1;
      bool last = std::string_view(call) == "syncfs" && renames > 0 &&
                  seen == renames + 1;
      if (next || last) ::kill(::getpid(), SIGKILL);
      return 0;
    });
    (void)transact(site.ground(&disk), items, CommitMeta{});
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFSIGNALED(status));
}

}  // namespace stoplog::gate::test
