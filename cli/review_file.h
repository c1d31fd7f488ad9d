// SPDX-License-Identifier: Apache-2.0
// One change made ready to be read: its text compared line by line, or the
// sentences that say why there are no lines, and what else is to be known of
// it (modes, link targets, what moved in a git directory).
//
//   LoadedFile file = load_file(change);        // reads contents; may be slow
//   FileLoader loader(set);                     // the same, in the background
//   if (auto f = loader.get(i)) show(*f);       // null: being read; see fd()
//
// load_file() never fails: what cannot be read is said in `notes`. It takes at
// most two texts of diff::kTextLimit. FileLoader is used from one thread and
// owns another; small files are loaded in the caller's thread, because a screen
// that flickers for a millisecond is worse than one that waits for it. The set
// must outlive it. Notes quote hostile bytes: escape before showing.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/background.h"
#include "cli/review_early.h"
#include "diff/change_set.h"
#include "diff/hunks.h"

namespace stoplog::cli {

struct LoadedFile {
  std::optional<diff::TextDiff> text;
  std::vector<std::string> notes;  // one line each
  // Of an early review: the change as it was looked at by itself. Null: it
  // could not be, or it is `unchanged` after all.
  std::shared_ptr<const diff::Change> change;
  bool unchanged = false;
};

LoadedFile load_file(const diff::Change& change);
// Looks first; without a `look` the same.
LoadedFile load_file(const diff::Change& change, const LookAtOne& look);

// Where the review gets its files; a test gives them at once, or never.
class FileSource {
 public:
  virtual ~FileSource() = default;
  // Of set.changes[index]; null while it is being read.
  virtual std::shared_ptr<const LoadedFile> get(size_t index) = 0;
};

// Loads in the caller's thread.
class DirectSource : public FileSource {
 public:
  explicit DirectSource(const diff::ChangeSet& set, LookAtOne look = {})
      : set_(set), look_(std::move(look)) {}
  std::shared_ptr<const LoadedFile> get(size_t index) override;

 private:
  const diff::ChangeSet& set_;
  LookAtOne look_;
};

class FileLoader : public FileSource {
 public:
  static Result<std::unique_ptr<FileLoader>> create(const diff::ChangeSet& set,
                                                    LookAtOne look = {});

  std::shared_ptr<const LoadedFile> get(size_t index) override;
  // Readable when a file that get() could not give has arrived; drain() before
  // asking again.
  int fd() const { return files_->fd(); }
  void drain() { files_->drain(); }

 private:
  using Files = Background<LoadedFile>;
  FileLoader(const diff::ChangeSet& set, LookAtOne look,
             std::unique_ptr<Files> files)
      : set_(set), look_(std::move(look)), files_(std::move(files)) {}

  const diff::ChangeSet& set_;
  LookAtOne look_;
  std::unique_ptr<Files> files_;
};

}  // namespace stoplog::cli
