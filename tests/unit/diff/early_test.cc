// SPDX-License-Identifier: Apache-2.0
// What is told of a draft before its contents are read.
#include "catch_shim.h"
#include "diff/canonical.h"
#include "diff/change_set.h"
#include "memory_view.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

// Counts who reads it.
class WatchedContent : public fs::Content {
 public:
  WatchedContent(std::string text, std::atomic<int>& reads)
      : text_(std::move(text)), reads_(reads) {}
  uint64_t size() const override { return text_.size(); }
  Result<size_t> read(uint64_t offset,
                      std::span<std::byte> out) const override {
    ++reads_;
    size_t n = std::min<size_t>(out.size(), text_.size() - offset);
    std::memcpy(out.data(), text_.data() + offset, n);
    return n;
  }

 private:
  std::string text_;
  std::atomic<int>& reads_;
};

}  // namespace

TEST_CASE("what can be told early is told before any content is read") {
  std::atomic<int> reads = 0;
  auto watched = [&](const std::string& text) {
    fs::NodeState state = file(text);
    state.content = std::make_shared<WatchedContent>(text, reads);
    return state;
  };
  MemoryView view;
  view.base["changed"] = watched("one\n");
  view.change("changed", watched("two\n"));
  view.base["same"] = watched("same\n");
  view.change("same", watched("same\n"));
  view.base["gone"] = watched("gone\n");
  view.change("gone", std::nullopt);
  view.change("dir", dir());
  view.change("dir/Makefile", watched("all:\n"));
  view.change("dir/key", watched("ghp_"
                                 "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8\n"));
  view.change(".git/hooks/pre-commit", watched("#!/bin/sh\n"));
  view.base["mode"] = file("", 0644);
  view.change("mode", file("", 0755));

  std::vector<std::string> told;
  int calls = 0, read_before = -1;
  DiffOptions options;
  options.rules = {{.glob = "changed", .message = "asked for"}};
  std::vector<std::string> looked;
  options.early = [&](Early early) {
    ++calls;
    read_before = reads;
    CHECK_FALSE(early.set.digest);
    for (const Change& change : early.set.changes) {
      // One by itself is as the set will have it.
      auto alone = early.look(change);
      REQUIRE(alone);
      looked.push_back(!*alone
                           ? ""
                           : fmt::format("{} {} {}", name_of((*alone)->kind),
                                         hex(change_digest(**alone)),
                                         name_of((*alone)->level())));
      CHECK_FALSE(change.new_sha256);
      CHECK_FALSE(change.lines_added);
      std::string line =
          fmt::format("{} {}", name_of(change.kind), change.path.str());
      if (!change.risks.empty())
        line += fmt::format(" {} {}", name_of(change.level()),
                            change.risks.front().code);
      told.push_back(std::move(line));
    }
  };
  auto set = build_change_set(view, options);
  REQUIRE(set);
  CHECK(calls == 1);
  CHECK(read_before == 0);
  CHECK(told == std::vector<std::string>{
                    "added .git/hooks/pre-commit danger git-hook",
                    "modified changed danger policy",
                    "added dir/Makefile warn build-input", "added dir/key",
                    "deleted gone", "modified mode", "modified same"});
  size_t at = 0;
  for (const std::string& alone : looked) {
    if (alone.empty()) continue;
    REQUIRE(at < set->changes.size());
    const Change& change = set->changes[at++];
    CHECK(alone == fmt::format("{} {} {}", name_of(change.kind),
                               hex(change_digest(change)),
                               name_of(change.level())));
  }
  CHECK(at == set->changes.size());
  CHECK(looked.back().empty());  // "same"
  // The set itself is as it would be without.
  options.early = nullptr;
  auto again = build_change_set(view, options);
  REQUIRE(again);
  REQUIRE(again->changes.size() == set->changes.size());
  CHECK(again->digest == set->digest);
  for (size_t i = 0; i < set->changes.size(); i++)
    CHECK(again->changes[i].risks == set->changes[i].risks);
  CHECK(set->find(*RelPath::parse("dir/key"))->is_danger());
  CHECK(set->find(*RelPath::parse("same")) == nullptr);
}
