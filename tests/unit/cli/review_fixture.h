// SPDX-License-Identifier: Apache-2.0
// Changes made of plain strings, and a review over them: what the tests of the
// review share.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "cli/review_layout.h"
#include "cli/review_model.h"

namespace stoplog::cli::test {

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

inline fs::NodeState file_state(const std::string& text, mode_t mode = 0644) {
  fs::NodeState state;
  state.mode = mode;
  state.size = text.size();
  state.content = std::make_shared<TextContent>(text);
  return state;
}

inline diff::Change modified(const std::string& path, const std::string& before,
                             const std::string& after) {
  diff::Change change;
  change.path = *RelPath::parse(path);
  change.kind = diff::Kind::kModified;
  change.before = file_state(before);
  change.after = file_state(after);
  change.content_changed = true;
  change.old_sha256 = sha256(before);
  change.new_sha256 = sha256(after);
  return change;
}

inline diff::Change added(const std::string& path, const std::string& text) {
  diff::Change change = modified(path, "", text);
  change.kind = diff::Kind::kAdded;
  change.before.reset();
  change.old_sha256.reset();
  return change;
}

inline diff::Change deleted(const std::string& path, const std::string& text) {
  diff::Change change = modified(path, text, "");
  change.kind = diff::Kind::kDeleted;
  change.after.reset();
  change.new_sha256.reset();
  return change;
}

inline diff::Change dangerous(diff::Change change) {
  change.risks.push_back(
      {diff::Level::kDanger, "git-hook", "runs on your machine"});
  return change;
}

// "1\n2\n...n\n", with some lines replaced.
inline std::string lines(int n, const std::vector<int>& changed = {},
                         const std::string& text = "changed") {
  std::string out;
  for (int i = 1; i <= n; i++) {
    bool hit = std::find(changed.begin(), changed.end(), i) != changed.end();
    out += hit ? text + " " + std::to_string(i) : "line " + std::to_string(i);
    out += '\n';
  }
  return out;
}

// A set in order of path, a store, and a model over both.
enum class Early { kNo, kYes };
struct Review {
  explicit Review(std::vector<diff::Change> changes, Looked looked = {},
                  Early early = Early::kNo, LookAtOne look = {})
      : set{.changes = std::move(changes)},
        files(set, std::move(look)),
        model({.set = set,
               .decisions = store,
               .files = files,
               .looked = std::move(looked),
               .title = "calm-otter",
               .command_text = [](uint32_t) { return "make all"; },
               .early = early == Early::kYes}) {
    model.resize(100, 24);
  }
  void press(std::string_view keys) {
    for (char c : keys) model.press(static_cast<Key>(c));
  }
  std::string path() const {
    return model.change_of(model.current()).path.str();
  }
  std::string screen() const { return to_text(layout(model, {})); }
  // The text of the row under the cursor, as painted.
  std::string here() const {
    const OpenFile& open = model.open();
    const Row& row = open.rows[open.cursor];
    if (row.kind == Row::Kind::kHunk) return "@@";
    if (row.kind != Row::Kind::kLine) return "note";
    const diff::Line& line = open.hunks[row.hunk].hunk.lines[row.index];
    std::string text(line.text);
    if (text.ends_with('\n')) text.pop_back();
    return line.origin + text;
  }

  diff::ChangeSet set;
  MemoryDecisions store;
  DirectSource files;
  ReviewModel model;
};

}  // namespace stoplog::cli::test
