// SPDX-License-Identifier: Apache-2.0
// Past: how a state was at its marks, as far as it has changed since. A span
// begins at each mark and keeps, of everything that is changed in it for the
// first time, what it was before. Going back to a mark is then a matter of what
// differs and not of what the draft holds.
//
//   past.begin(position);   // at a mark
//   past.keep(node);                    // before each change
//
// Kept in memory alone and bounded: the oldest spans go first, and a span that
// is larger than the bound by itself is not kept. What is no longer here is
// replayed from the journal. To free a large span takes as long as to make it:
// what is let go waits, within a quarter of the bound, for somebody with time.
// Pure data: no locks (the owner has them).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fs/state.h"

namespace stoplog::fs {

class Past {
 public:
  // Names of one directory: those that were changed, as they were; or, when it
  // was dropped, `all` that it had then with the changed ones beside it.
  struct Names {
    std::unordered_map<std::string, std::optional<Serial>> changed;
    bool dropped = false;
    NameMap all;
  };
  struct Node {
    std::unique_ptr<Held> image;  // without names; null: it was not there
    std::unique_ptr<Names> names;
  };
  struct Span {
    uint64_t number = 0;
    Position mark = 0;
    uint64_t weight = 0;
    std::unordered_map<Serial, Node> nodes;
    std::map<std::string, std::optional<Deleted>> deleted;
    // What each change replaced, in order; 0: there was none.
    std::vector<std::pair<Identity, Serial>> identities;
    std::vector<std::pair<uint64_t, Serial>> inos;
  };

  explicit Past(uint64_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}
  void begin(Position mark);
  void clear();
  const std::deque<Span>& spans() const { return spans_; }
  uint64_t weight() const { return weight_; }
  // While it is read nothing is let go.
  void set_in_use(bool in_use);
  using Spans = std::deque<Span>;
  Spans take_let_go();

  void keep(Held& node);
  void keep_absence(Held& node);  // about to be added
  // So many bytes of an extent map are the past's alone now.
  void keep_parted(uint64_t bytes);
  // About to lose all its names, or to be dropped: takes what it can instead
  // of copying it.
  void keep_leaving(Held& node);
  void keep_dropped(std::unique_ptr<Held> node);
  // So many more nodes will be kept.
  void expect(size_t nodes);
  void keep_name(const Held& dir, const std::string& name);
  void keep_names(Held& dir);  // about to be dropped; takes them
  void keep_deleted(const std::map<std::string, Deleted>& all,
                    const std::string& path);
  void keep_identity(Serial now, const Identity& identity);
  void keep_ino(Serial now, uint64_t ino);

  static constexpr uint64_t kMostBytes = 192u << 20;
  static constexpr size_t kMostSpans = 4096;

 private:
  Node* place_for(Held& node);
  void weigh(uint64_t bytes);
  void trim();
  void let_oldest_go();

  const uint64_t most_bytes_;
  std::deque<Span> spans_;  // the last is the one that changes go to
  uint64_t weight_ = 0;
  Spans let_go_;  // oldest first
  uint64_t let_go_weight_ = 0;
  uint64_t last_number_ = 0;
  bool in_use_ = false;
};

// A copy without names, with content that no change reaches.
std::unique_ptr<Held> image_of(Held& node);

}  // namespace stoplog::fs
