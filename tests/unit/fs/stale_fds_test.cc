// SPDX-License-Identifier: Apache-2.0
// What stands in the real tree changes while a file is being opened there.
#include <fcntl.h>
#include <poll.h>
#include <sys/fanotify.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "catch_shim.h"
#include "fs/fd_cache.h"
#include "timeline_fixture.h"

using namespace stoplog;
using namespace stoplog::fs;
using namespace stoplog::test;

namespace {

Fd some_fd() { return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// Holds the first open of one file back, after its path has been walked, until
// let_go(); others pass. Needs root.
class HeldOpen {
 public:
  explicit HeldOpen(const std::filesystem::path& path)
      : fd_(::fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC | FAN_NONBLOCK,
                            O_RDONLY | O_CLOEXEC)) {
    if (fd_)
      ok_ = ::fanotify_mark(fd_.get(), FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD,
                            path.c_str()) == 0;
    if (ok_) thread_ = std::thread([this] { run(); });
  }
  ~HeldOpen() {
    let_go();
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  bool works() const { return ok_; }
  void wait() const {
    while (!seen_) ::usleep(1000);
  }
  void let_go() { let_go_ = true; }

 private:
  void allow(int event) {
    fanotify_response answer{.fd = event, .response = FAN_ALLOW};
    // Assertions are for the main thread; without an answer all would hang.
    if (::write(fd_.get(), &answer, sizeof answer) != sizeof answer)
      std::abort();
    ::close(event);
  }
  void run() {
    int held = -1;
    while (!stop_) {
      pollfd look{fd_.get(), POLLIN, 0};
      ::poll(&look, 1, 1);
      alignas(fanotify_event_metadata) char bytes[4096];
      ssize_t n = ::read(fd_.get(), bytes, sizeof bytes);
      auto* event = reinterpret_cast<fanotify_event_metadata*>(bytes);
      for (; n > 0 && FAN_EVENT_OK(event, n);
           event = FAN_EVENT_NEXT(event, n)) {
        if (seen_ || let_go_) {
          allow(event->fd);
          continue;
        }
        held = event->fd;
        seen_ = true;
      }
      if (let_go_ && held >= 0) allow(std::exchange(held, -1));
    }
  }
  Fd fd_;
  bool ok_ = false;
  std::atomic<bool> seen_ = false, let_go_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("an fd that was opened before its cache was cleared stays out") {
  FdCache cache(4);
  for (bool all : {true, false}) {
    FdCache::Opening opening(cache, 7);
    FdCache::Opening other(cache, 8);
    if (all)
      cache.clear();
    else
      cache.drop(7);
    FdHandle given = cache.put(opening, some_fd());
    REQUIRE(given);
    CHECK(given->get() >= 0);
    CHECK_FALSE(cache.find(7));
    // Opened since.
    FdCache::Opening again(cache, 7);
    FdHandle fresh = cache.put(again, some_fd());
    CHECK(cache.find(7) == fresh);
    CHECK(cache.put(opening, some_fd()) == fresh);
    (void)cache.put(other, some_fd());
    CHECK(static_cast<bool>(cache.find(8)) != all);
  }
}

TEST_CASE("a read that meets a commit leaves no replaced file to later reads") {
  TreeFixture f;
  f.base.write("file", "before");
  f.open();
  NodeId id = f.at("file");
  REQUIRE(f.tree->setattr(id, {.set = kSetMode, .mode = 0600}, f.caller));
  Position reviewed = marked(f);
  HeldOpen open(f.base / "file");
  if (!open.works()) {
    WARN("skipped: fanotify's permission events need root");
    return;
  }
  std::string met;
  std::thread reader([&] { met = f.read(id); });
  open.wait();
  BaseChange change = commit_file(f, "file", "after");
  CHECK(f.tree->commit_base(reviewed, {&change, 1}));
  open.let_go();
  reader.join();
  CHECK(met == "before");
  CHECK(f.read(id) == "after");
}

TEST_CASE("a read that a commit overtakes is no drift") {
  TreeFixture f;
  struct Told : Observer {
    std::vector<std::string> notes;
    void invalidate(std::span<const Invalidation>) override {}
    void drift(const DriftNote& note) override { notes.push_back(note.what); }
    void denied(const Denial&) override {}
  } told;
  std::function<void()> between;
  f.options.observer = &told;
  f.options.base_shows = [&](std::string_view path) {
    if (path == "file" && between) std::exchange(between, {})();
    return Shown::kAll;
  };
  f.base.write("file", "before");
  f.open();
  NodeId id = f.at("file");
  REQUIRE(f.tree->setattr(id, {.set = kSetMode, .mode = 0600}, f.caller));
  Position reviewed = marked(f);
  between = [&] {
    BaseChange change = commit_file(f, "file", "after");
    CHECK(f.tree->commit_base(reviewed, {&change, 1}));
  };
  CHECK(f.read(id) == "after");
  CHECK_FALSE(between);
  CHECK(told.notes.empty());
}
