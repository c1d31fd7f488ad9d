// SPDX-License-Identifier: Apache-2.0
// ExtentList: the extents of one file in order, in leaves of at most kMost.
// Most files have a single extent, and it lies in the list itself; a file of a
// hundred thousand changes one leaf a write, and its copies (one for each mark
// that a write came after) share what has not changed since.
//
//   ExtentList::Place at = list.first_after(offset);
//   if (at != list.end()) list[at] ...; at = list.next(at);
//   list.replace(first, last, with);   // [first, last) becomes `with`
//
// Who fills it keeps it sorted and free of overlaps. Pure data: no locks; one
// that is read by several threads is not changed meanwhile, its copies may be.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace stoplog::fs {

enum class Where : uint8_t { kHole = 0, kLower = 1, kSegment = 2, kZero = 3 };

struct Extent {
  uint64_t offset = 0;  // in the file
  uint64_t length = 0;
  Where where = Where::kHole;
  uint32_t segment = 0;
  uint64_t at = 0;     // in the segment; for lower ranges equal to offset
  uint32_t epoch = 0;  // when it was written; 0: never to be overwritten
  uint64_t end() const { return offset + length; }
  bool operator==(const Extent&) const = default;
};

class ExtentList {
 public:
  // Valid until the next change.
  struct Place {
    size_t leaf = 0;
    size_t at = 0;
    bool operator==(const Place&) const = default;
  };
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Extent;
    using difference_type = std::ptrdiff_t;
    using pointer = const Extent*;
    using reference = const Extent&;
    Iterator() = default;
    Iterator(const ExtentList* list, Place place)
        : list_(list), place_(place) {}
    reference operator*() const { return (*list_)[place_]; }
    pointer operator->() const { return &**this; }
    Iterator& operator++() {
      place_ = list_->next(place_);
      return *this;
    }
    Iterator operator++(int) { return std::exchange(*this, std::next(*this)); }
    bool operator==(const Iterator&) const = default;

   private:
    const ExtentList* list_ = nullptr;
    Place place_;
  };

  bool empty() const { return first_.empty(); }
  size_t size() const { return size_; }
  size_t leaves() const { return 1 + rest_.size(); }
  Iterator begin() const { return {this, {}}; }
  Iterator end() const { return {this, end_place()}; }
  Place end_place() const { return {rest_.size(), leaf(rest_.size()).size()}; }
  const Extent& operator[](Place place) const {
    return leaf(place.leaf)[place.at];
  }
  const Extent& back() const { return leaf(rest_.size()).back(); }
  Place next(Place place) const;      // not of the end
  Place previous(Place place) const;  // not of the beginning
  // The first extent that ends after `offset`.
  Place first_after(uint64_t offset) const;

  void replace(Place first, Place last, std::span<const Extent> with);
  void push_back(const Extent& extent);
  void lengthen_back(uint64_t by);
  void assign(std::span<const Extent> all);
  void clear();
  std::vector<Extent> copy() const { return {begin(), end()}; }
  // Whole leaves that both share are not looked at.
  bool operator==(const ExtentList& other) const;

  uint64_t bytes() const { return bytes_; }
  uint64_t segment_bytes() const { return segment_bytes_; }
  bool has_lower() const { return lower_ > 0; }
  // What a copy takes at once, and what it would all by itself.
  uint64_t copy_weight() const;
  uint64_t weight() const { return size_ * sizeof(Extent); }
  // The leaves that this one gave up since the last call while others had
  // them: they are the others' alone.
  uint64_t take_parted() { return std::exchange(parted_, 0); }

  static constexpr size_t kMost = 128;
  static constexpr size_t kFew = kMost / 4;

 private:
  using Leaf = std::vector<Extent>;
  struct Shared {
    std::atomic<uint32_t> users = 1;
    Leaf leaf;
  };
  // Who is alone with a leaf may change it: what others read of it before they
  // let it go is over by then (shared_ptr::use_count() promises no such thing).
  class Ref {
   public:
    explicit Ref(Leaf leaf) : to_(new Shared{1, std::move(leaf)}) {}
    Ref(const Ref& other) : to_(other.to_) {
      if (to_ != nullptr) to_->users.fetch_add(1, std::memory_order_relaxed);
    }
    Ref(Ref&& other) noexcept : to_(std::exchange(other.to_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
      std::swap(to_, other.to_);
      return *this;
    }
    ~Ref() {
      if (to_ != nullptr &&
          to_->users.fetch_sub(1, std::memory_order_acq_rel) == 1)
        delete to_;
    }
    bool is_alone() const {
      return to_->users.load(std::memory_order_acquire) == 1;
    }
    const Leaf& operator*() const { return to_->leaf; }
    Leaf& own() { return to_->leaf; }
    bool operator==(const Ref&) const = default;

   private:
    Shared* to_;
  };
  struct Later {
    uint64_t offset;  // of its first extent
    Ref leaf;
  };

  const Leaf& leaf(size_t i) const {
    return i == 0 ? first_ : *rest_[i - 1].leaf;
  }
  Leaf& own(size_t i);
  static Leaf with_room(Leaf::const_iterator begin, Leaf::const_iterator end);
  void part(size_t begin, size_t end);
  void drop(size_t begin, size_t end);
  void tidy(size_t i);
  void split(size_t i);
  void count(const Extent& extent, bool comes);

  Leaf first_;
  std::vector<Later> rest_;
  size_t size_ = 0;
  uint64_t bytes_ = 0, segment_bytes_ = 0;
  size_t lower_ = 0;  // extents of the lower file
  uint64_t parted_ = 0;
};

}  // namespace stoplog::fs
