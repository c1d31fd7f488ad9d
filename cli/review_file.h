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

#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
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
  ~FileLoader() override;

  std::shared_ptr<const LoadedFile> get(size_t index) override;
  // Readable when a file that get() could not give has arrived; drain() before
  // asking again.
  int fd() const { return ready_.get(); }
  void drain();

 private:
  struct Entry {
    size_t index;
    std::shared_ptr<const LoadedFile> file;
  };
  FileLoader(const diff::ChangeSet& set, Fd ready);
  void work();
  void keep(Entry entry);  // with mutex_ held

  const diff::ChangeSet& set_;
  Fd ready_;
  std::mutex mutex_;  // protects all below but thread_
  std::condition_variable wake_;
  std::list<Entry> cache_;  // newest first
  std::optional<size_t> wanted_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace stoplog::cli
