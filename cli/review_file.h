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
#include "diff/change_set.h"
#include "diff/hunks.h"

namespace stoplog::cli {

struct LoadedFile {
  std::optional<diff::TextDiff> text;
  std::vector<std::string> notes;  // one line each
};

LoadedFile load_file(const diff::Change& change);

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
  explicit DirectSource(const diff::ChangeSet& set) : set_(set) {}
  std::shared_ptr<const LoadedFile> get(size_t index) override;

 private:
  const diff::ChangeSet& set_;
};

class FileLoader : public FileSource {
 public:
  static Result<std::unique_ptr<FileLoader>> create(const diff::ChangeSet& set);

  std::shared_ptr<const LoadedFile> get(size_t index) override;
  // Readable when a file that get() could not give has arrived; drain() before
  // asking again.
  int fd() const { return files_->fd(); }
  void drain() { files_->drain(); }

 private:
  using Files = Background<LoadedFile>;
  FileLoader(const diff::ChangeSet& set, std::unique_ptr<Files> files)
      : set_(set), files_(std::move(files)) {}

  const diff::ChangeSet& set_;
  std::unique_ptr<Files> files_;
};

}  // namespace stoplog::cli
