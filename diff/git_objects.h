// SPDX-License-Identifier: Apache-2.0
// The objects that a repository has once a draft's git directory is committed:
// the real repository's, and what the draft adds to them. Each is what its name
// says, or an error.
//
//   GitObjects objects({view, directory, format, "/home/me/project/.git"});
//   uint64_t left = kReadBudget;
//   GitObject tree = TRY(objects.read(id, "tree", left));
//
// Of the real repository libgit2 reads them, where it knows the format; what a
// draft holds is read by our own bounded readers. Each read takes from `left`;
// EFBIG when that is used up, ENOENT for an object that is nowhere,
// Code::kInvalid for one that is another. Borrows the view. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "diff/git_pack.h"

namespace stoplog::diff {

inline constexpr uint64_t kReadBudget = 64ull << 20;

class GitObjects {
 public:
  struct Place {
    const fs::View& view;
    RelPath directory;  // that has "objects"
    ObjectFormat format = ObjectFormat::kSha1;
    std::string real;  // the same of the real tree, absolute; empty: none
  };
  explicit GitObjects(Place place);
  ~GitObjects();
  GitObjects(const GitObjects&) = delete;
  GitObjects& operator=(const GitObjects&) = delete;

  // `id` in hex; an empty `type` is any.
  Result<GitObject> read(std::string_view id, std::string_view type,
                         uint64_t& left);
  // Whether the real repository has it now.
  bool is_real(std::string_view id);

 private:
  enum class Side { kReal, kDraft };
  struct Real;
  void open_real();
  const std::vector<Pack>& packs(Side side);
  Result<std::optional<GitObject>> find(Side side, std::string_view id,
                                        uint64_t& left);
  Result<std::shared_ptr<const fs::Content>> content(
      Side side, const std::string& rel) const;

  Place place_;
  std::unique_ptr<Real> real_;
  bool tried_ = false;
  bool opened_[2] = {false, false};
  std::vector<Pack> packs_[2];
};

}  // namespace stoplog::diff
