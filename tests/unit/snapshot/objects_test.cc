// SPDX-License-Identifier: Apache-2.0
#include "snapshot/objects.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/sys_file.h"
#include "catch_shim.h"

using namespace stoplog;
using namespace stoplog::snapshot;

namespace {

using Objects = std::set<Sha256Digest>;

struct TempDir {
  std::string path;
  Fd fd;
  TempDir() {
    char name[] = "/tmp/stoplog-objects-XXXXXX";
    path = ::mkdtemp(name);
    fd = std::move(*sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
  }
  ~TempDir() { std::filesystem::remove_all(path); }
};

std::string noise(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

std::shared_ptr<const fs::Content> text(std::string bytes) {
  return memory_content(std::move(bytes));
}

Fd sparse_file(const TempDir& dir, uint64_t size,
               const std::vector<std::pair<uint64_t, std::string>>& pieces) {
  Fd fd = std::move(*sys::openat(dir.fd.get(), ".", O_TMPFILE | O_RDWR, 0600));
  REQUIRE(sys::ftruncate(fd.get(), size));
  for (const auto& [offset, bytes] : pieces)
    REQUIRE(
        sys::pwrite_full(fd.get(), std::as_bytes(std::span(bytes)), offset));
  return fd;
}

// The one file beneath `dir` whose name ends with `suffix`.
std::string only_file(const std::string& dir, const std::string& suffix = "") {
  std::string found;
  for (const auto& e : std::filesystem::recursive_directory_iterator(dir))
    if (e.is_regular_file() && e.path().string().ends_with(suffix)) {
      REQUIRE(found.empty());
      found = e.path();
    }
  REQUIRE(!found.empty());
  return found;
}

void flip_byte(const std::string& path, uint64_t offset) {
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  char c = static_cast<char>(file.get() ^ 1);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(c);
}

}  // namespace

TEST_CASE("a stored object comes back under the name sha256sum gives it") {
  TempDir dir;
  auto store = std::move(*ObjectStore::open(dir.fd.get()));
  for (size_t size : {0u, 1u, 4095u, 300'000u, 3'000'000u}) {
    std::string bytes = noise(size, 7);
    auto id = store.put(*text(bytes));
    REQUIRE(id);
    CHECK(hex(*id) == hex(sha256(bytes)));
    CHECK(*store.has(*id));
    CHECK(*store.size(*id) == size);
    auto back = store.get(*id, 1u << 30);
    REQUIRE(back);
    CHECK(*back == bytes);
  }
  CHECK(store.get(sha256(noise(3'000'000, 7)), 1000).error().err() == EFBIG);
  CHECK(store.get(sha256("nobody stored this"), 1000).error().err() == ENOENT);
}

TEST_CASE("a second store of the same content writes nothing") {
  TempDir dir;
  auto store = std::move(*ObjectStore::open(dir.fd.get()));
  REQUIRE(store.put(*text("twice")));
  REQUIRE(store.put(*text("twice")));
  CHECK(store.list()->size() == 1);
}

TEST_CASE("a pack holds many objects and a twin once") {
  TempDir dir;
  auto store = std::move(*ObjectStore::open(dir.fd.get()));
  auto pack = std::move(*store.new_pack());
  std::vector<std::string> all;
  for (unsigned i = 0; i < 500; ++i) all.push_back(noise(i * 7, i));
  all.push_back(noise(2'500'000, 9));
  for (const auto& bytes : all) REQUIRE(pack.add(*text(bytes)));
  for (unsigned i = 0; i < 500; i += 50) REQUIRE(pack.add(*text(all[i])));
  CHECK(pack.count() == all.size());
  REQUIRE(pack.finish());
  for (const auto& bytes : all) {
    auto back = store.get(sha256(bytes), 1u << 30);
    REQUIRE(back);
    CHECK(*back == bytes);
  }
  CHECK(store.verify()->empty());
}

TEST_CASE("an unfinished pack leaves no file behind") {
  TempDir dir;
  auto store = std::move(*ObjectStore::open(dir.fd.get()));
  {
    auto pack = std::move(*store.new_pack());
    REQUIRE(pack.add(*text("never finished")));
  }
  CHECK(std::filesystem::is_empty(dir.path + "/packs"));
  auto empty = std::move(*store.new_pack());
  CHECK(empty.finish()->empty());
  CHECK(std::filesystem::is_empty(dir.path + "/packs"));
}

TEST_CASE("every flipped byte of a loose object is named as damage") {
  TempDir dir;
  auto store = std::move(*ObjectStore::open(dir.fd.get()));
  std::string bytes = noise(200, 3);
  auto id = *store.put(*text(bytes));
  std::string path = only_file(dir.path + "/loose");
  auto size = std::filesystem::file_size(path);
  for (uint64_t at = 0; at < size; ++at) {
    flip_byte(path, at);
    auto back = store.get(id, 1u << 20);
    INFO("byte " << at);
    // A flipped frame bit may still decode to the right bytes; never to others.
    if (back) {
      CHECK(*back == bytes);
    } else {
      CHECK(back.error().code() == Code::kCorrupt);
      CHECK(back.error().text().find(hex(id)) != std::string::npos);
    }
    flip_byte(path, at);
  }
  CHECK(store.verify()->empty());
  flip_byte(path, size - 1);
  CHECK(store.verify()->size() == 1);
}

TEST_CASE("a damaged pack index is named and the rest stays readable") {
  TempDir dir;
  auto store = std::move(*ObjectStore::open(dir.fd.get()));
  auto loose = *store.put(*text("loose one"));
  auto pack = std::move(*store.new_pack());
  auto packed = *pack.add(*text("packed one"));
  REQUIRE(pack.finish());
  std::string path = only_file(dir.path + "/packs", ".pack");
  flip_byte(path, std::filesystem::file_size(path) - 70);
  auto fresh = std::move(*ObjectStore::open(dir.fd.get()));
  CHECK(*fresh.get(loose, 100) == "loose one");
  auto back = fresh.get(packed, 100);
  REQUIRE(!back);
  CHECK(back.error().code() == Code::kCorrupt);
  CHECK(back.error().text().find(".pack") != std::string::npos);
  CHECK(fresh.verify()->size() == 1);
}

TEST_CASE("a truncated pack is refused at every length") {
  TempDir dir;
  auto store = std::move(*ObjectStore::open(dir.fd.get()));
  auto pack = std::move(*store.new_pack());
  REQUIRE(pack.add(*text("some bytes")));
  std::string name = *pack.finish();
  std::string path = dir.path + "/packs/" + name;
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  Fd packs = std::move(
      *sys::openat(AT_FDCWD, dir.path + "/packs", O_RDONLY | O_DIRECTORY));
  for (auto size = std::filesystem::file_size(path); size > 0; --size) {
    std::filesystem::resize_file(path, size - 1);
    CHECK(!PackReader::open(packs.get(), name));
  }
}

TEST_CASE("holes stay holes and cost nothing") {
  TempDir dir;
  auto store = std::move(*ObjectStore::open(dir.fd.get()));
  constexpr uint64_t kHuge = uint64_t{1} << 42;  // 4 TiB
  Fd file = sparse_file(dir, kHuge, {{uint64_t{1} << 41, noise(10'000, 1)}});
  auto content = *file_content(std::move(*sys::dup(file.get())));
  auto id = store.put(*content);
  REQUIRE(id);
  CHECK(std::filesystem::file_size(only_file(dir.path + "/loose")) < 32'768);
  Fd back =
      std::move(*sys::openat(dir.fd.get(), ".", O_TMPFILE | O_RDWR, 0600));
  REQUIRE(store.get_into(*id, back.get()));
  auto stat = *sys::fstat(back.get());
  CHECK(stat.size == kHuge);
  CHECK(stat.blocks * 512 < 1'000'000);
  CHECK(*content_digest(**file_content(std::move(back))) == *id);
}

TEST_CASE("the digest does not depend on where the holes are") {
  TempDir dir;
  constexpr uint64_t kSize = (80u << 20) + 12'345;
  std::string data = noise(5'000, 2);
  Fd sparse = sparse_file(dir, kSize, {{70'000'001, data}});
  Fd dense = sparse_file(dir, kSize,
                         {{0, std::string(66'000'000, '\0')},
                          {70'000'001, data},
                          {kSize - 10, std::string(10, '\0')}});
  auto a = *content_digest(**file_content(std::move(sparse)));
  auto b = *content_digest(**file_content(std::move(dense)));
  CHECK(a == b);
  Fd other = sparse_file(dir, kSize, {{70'000'002, data}});
  CHECK(*content_digest(**file_content(std::move(other))) != a);
  Fd longer = sparse_file(dir, kSize + 1, {{70'000'001, data}});
  CHECK(*content_digest(**file_content(std::move(longer))) != a);
}

TEST_CASE("a file that changes while it is stored is drift") {
  TempDir dir;
  Fd file = sparse_file(dir, 100, {{0, "before"}});
  auto content = *file_content(std::move(*sys::dup(file.get())));
  REQUIRE(sys::ftruncate(file.get(), 50));
  auto store = std::move(*ObjectStore::open(dir.fd.get()));
  auto id = store.put(*content);
  REQUIRE(!id);
  CHECK(id.error().code() == Code::kDrift);
}

TEST_CASE("a sweep keeps exactly what is needed") {
  TempDir dir;
  auto store = std::move(*ObjectStore::open(dir.fd.get()));
  auto kept = *store.put(*text("keep me"));
  auto dead = *store.put(*text("drop me"));
  auto pack = std::move(*store.new_pack());
  std::vector<Sha256Digest> packed;
  for (unsigned i = 0; i < 20; ++i)
    packed.push_back(*pack.add(*text(noise(1000, i))));
  REQUIRE(pack.finish());
  auto gone = std::move(*store.new_pack());
  auto gone_id = *gone.add(*text(noise(1000, 99)));
  REQUIRE(gone.finish());
  auto swept = store.sweep([&] { return Objects{kept, packed[3]}; });
  REQUIRE(swept);
  CHECK(swept->objects == 1 + 19 + 1);
  CHECK(swept->bytes > 0);
  CHECK(!*store.has(dead));
  CHECK(!*store.has(gone_id));
  CHECK(!*store.has(packed[4]));
  CHECK(*store.get(packed[3], 5000) == noise(1000, 3));
  CHECK(*store.has(kept));
  CHECK(store.verify()->empty());
}

TEST_CASE("a sweep does not run while the store is in use") {
  TempDir dir;
  auto store = std::move(*ObjectStore::open(dir.fd.get()));
  auto use = std::move(*store.use());
  auto other = std::move(*ObjectStore::open(dir.fd.get()));
  bool asked = false;
  auto swept = other.sweep([&] { return asked = true, Objects(); }, false);
  REQUIRE(!swept);
  CHECK(swept.error().err() == EWOULDBLOCK);
  // What is needed is known when the users are done.
  CHECK(!asked);
}

TEST_CASE("many processes store the same objects at once") {
  TempDir dir;
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    pid_t pid = ::fork();
    if (pid == 0) {
      auto store = ObjectStore::open(dir.fd.get());
      bool good = store.has_value();
      for (unsigned i = 0; good && i < 30; ++i)
        good = store->put(*text(noise(500, i))).has_value();
      ::_exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    CHECK(status == 0);
  }
  auto store = std::move(*ObjectStore::open(dir.fd.get()));
  CHECK(store.list()->size() == 30);
  CHECK(store.verify()->empty());
}
