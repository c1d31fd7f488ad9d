// SPDX-License-Identifier: Apache-2.0
// GitSides: the files of one git directory, as the base and as the draft has
// them, and what its refs point at on either side.
//
//   GitSides sides(view, directory, parts);
//   auto text = sides.read(Side::kDraft, "packed-refs", kPackedRefsLimit);
//   auto id = sides.target(Side::kBase, "refs/heads/main");
//
// Both are borrowed; `parts` are the changes beneath the directory, and what
// has none is the same on both sides. What cannot be read is said in
// unreadable(), once each, and never guessed. One thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diff/change_set.h"
#include "diff/git_index.h"

namespace stoplog::diff {

enum class Side { kBase, kDraft };

// What a ref that cannot be read points at.
inline constexpr std::string_view kUnreadableRef = "unreadable";

// Of a file; of one that is absent nothing.
Result<std::string> text_of(const std::optional<fs::NodeState>& state,
                            uint64_t limit);

class GitSides {
 public:
  using Refs = std::map<std::string, std::string>;

  GitSides(const fs::View& view, RelPath directory,
           const std::vector<Change>& parts);

  // From the git directory on.
  std::string relative(const Change& part) const;
  // None: it is the same on both sides.
  const Change* change(const std::string& rel) const;
  bool is_new(const std::string& rel) const;
  // Of a directory, and of what is absent, nothing.
  Result<std::string> read(Side side, const std::string& rel,
                           uint64_t limit) const;

  // Where its objects and configuration are: those of another work tree are its
  // repository's.
  RelPath common() const;
  // As the base has it: what an agent wrote there is a danger of its own, and
  // does not decide how the rest is read. A new repository's is its own.
  std::string config() const;
  ObjectFormat format() const { return object_format(config()); }
  // A submodule's is where its configuration says, beneath the workspace;
  // another work tree is anywhere.
  std::optional<RelPath> work_tree() const;

  bool packed_changed() const;
  const Refs& packed(Side side);
  // 40 or 64 hex digits, "ref: NAME" or kUnreadableRef; none: no such ref.
  std::optional<std::string> target(Side side, const std::string& name);
  // The draft saw a ref and packed it; the real one was packed or deleted
  // since, and what it said was not kept. It is not one that the draft made.
  bool has_gone(const std::string& name) const;
  // Where the real repository has it packed now.
  std::optional<std::string> packed_since(const std::string& name);
  // Where it was then by the base's own log of it.
  std::optional<std::string> logged(const std::string& name) const;
  // The commit, through symbolic refs.
  std::optional<std::string> head(Side side);
  // Those that the draft has, relative to the git directory.
  std::vector<std::string> draft_packs() const;

  void note_unreadable(std::string why);
  std::vector<std::string> take_unreadable() { return std::move(unreadable_); }

 private:
  const fs::View& view_;
  const RelPath directory_;
  std::map<std::string, const Change*> by_name_;
  std::optional<Refs> packed_[2];  // of the base, and of the draft's own
  std::optional<Refs> packed_since_;
  std::vector<std::string> unreadable_;
};

}  // namespace stoplog::diff
