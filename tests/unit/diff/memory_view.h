// SPDX-License-Identifier: Apache-2.0
// A View made of two maps in memory, and contents that no disk could hold: for
// tests of moves, touches, links and sizes without a file system.
#pragma once

#include <cstring>
#include <map>
#include <set>

#include "fs/view.h"

namespace stoplog::diff {

class TextContent : public fs::Content {
 public:
  explicit TextContent(std::string text) : text_(std::move(text)) {}
  uint64_t size() const override { return text_.size(); }
  Result<size_t> read(uint64_t offset,
                      std::span<std::byte> out) const override {
    if (offset >= text_.size()) return size_t{0};
    size_t n = std::min<size_t>(out.size(), text_.size() - offset);
    std::memcpy(out.data(), text_.data() + offset, n);
    return n;
  }

 private:
  std::string text_;
};

// `size` bytes of which only `data` at `offset` are not holes; reading a hole
// is counted, because nobody should.
class SparseContent : public fs::Content {
 public:
  SparseContent(uint64_t size, uint64_t offset, std::string data)
      : size_(size), offset_(offset), data_(std::move(data)) {}
  uint64_t size() const override { return size_; }
  Result<size_t> read(uint64_t offset,
                      std::span<std::byte> out) const override {
    size_t n = static_cast<size_t>(
        std::min<uint64_t>(out.size(), offset < size_ ? size_ - offset : 0));
    bytes_read += n;
    std::memset(out.data(), 0, n);
    for (size_t i = 0; i < data_.size(); i++)
      if (offset_ + i >= offset && offset_ + i < offset + n)
        out[offset_ + i - offset] = static_cast<std::byte>(data_[i]);
    return n;
  }
  std::vector<Range> data() const override {
    return data_.empty() ? std::vector<Range>{}
                         : std::vector<Range>{{offset_, data_.size()}};
  }
  mutable uint64_t bytes_read = 0;

 private:
  uint64_t size_, offset_;
  std::string data_;
};

// The same byte all over, dense.
class RepeatedContent : public fs::Content {
 public:
  RepeatedContent(uint64_t size, char byte) : size_(size), byte_(byte) {}
  uint64_t size() const override { return size_; }
  Result<size_t> read(uint64_t offset,
                      std::span<std::byte> out) const override {
    size_t n = static_cast<size_t>(
        std::min<uint64_t>(out.size(), offset < size_ ? size_ - offset : 0));
    std::memset(out.data(), byte_, n);
    return n;
  }

 private:
  uint64_t size_;
  char byte_;
};

inline RelPath path(std::string_view text) { return *RelPath::parse(text); }

inline fs::NodeState file(std::shared_ptr<const fs::Content> content,
                          mode_t mode = 0644) {
  fs::NodeState state;
  state.mode = mode;
  state.size = content->size();
  state.content = std::move(content);
  return state;
}
inline fs::NodeState file(std::string text, mode_t mode = 0644) {
  return file(std::make_shared<TextContent>(std::move(text)), mode);
}
inline fs::NodeState node(fs::Type type, mode_t mode = 0755) {
  fs::NodeState state;
  state.type = type;
  state.mode = mode;
  return state;
}
inline fs::NodeState dir() { return node(fs::Type::kDir); }
inline fs::NodeState symlink(std::string target) {
  fs::NodeState state = node(fs::Type::kSymlink, 0777);
  state.size = target.size();
  state.target = std::move(target);
  return state;
}

class MemoryView : public fs::View {
 public:
  std::map<std::string, fs::NodeState> base, draft;
  std::vector<fs::RawChange> raw;  // as given; sorted when asked for

  void both(const std::string& at, const fs::NodeState& state) {
    base[at] = draft[at] = state;
  }
  // Sets the draft's side and lists the change, with the base's side as it is.
  void change(const std::string& at, std::optional<fs::NodeState> after,
              const std::string& from = "") {
    fs::RawChange one;
    one.path = path(at);
    one.command = 1;
    std::string origin = from.empty() ? at : from;
    if (!from.empty()) one.from = path(from);
    if (base.contains(origin)) one.before = base.at(origin);
    one.after = after;
    if (after) {
      draft[at] = *after;
    } else {
      draft.erase(at);
    }
    raw.push_back(std::move(one));
  }

  Result<std::vector<fs::RawChange>> changes() const override {
    auto sorted = raw;
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return sorted;
  }
  Result<std::optional<fs::NodeState>> draft_state(
      const RelPath& at) const override {
    return find(draft, at);
  }
  Result<std::vector<fs::DirEntry>> draft_list(
      const RelPath& at) const override {
    return list(draft, at);
  }
  Result<std::optional<fs::NodeState>> real_state(
      const RelPath& at) const override {
    return find(base, at);
  }
  Result<std::vector<fs::DirEntry>> real_list(
      const RelPath& at) const override {
    return list(base, at);
  }

 private:
  using Nodes = std::map<std::string, fs::NodeState>;
  static Result<std::optional<fs::NodeState>> find(const Nodes& nodes,
                                                   const RelPath& at) {
    auto it = nodes.find(at.str());
    if (it == nodes.end()) return std::nullopt;
    return it->second;
  }
  static Result<std::vector<fs::DirEntry>> list(const Nodes& nodes,
                                                const RelPath& at) {
    std::vector<fs::DirEntry> out;
    for (const auto& [name, state] : nodes) {
      RelPath here = path(name);
      if (!here.is_root() && here.parent() == at)
        out.push_back({std::string(here.name()), state.type});
    }
    return out;
  }
};

}  // namespace stoplog::diff
