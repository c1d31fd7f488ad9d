// SPDX-License-Identifier: Apache-2.0
// TempFile: a file that appears whole or not at all.
//
//   TempFile file = TRY(TempFile::create(dir.get(), 0600));
//   TRY(sys::write_full(file.fd(), text));
//   TRY(file.commit("draft.json"));     // fsync, rename, fsync of the
//   directory
//
// It is made in the directory of its target, so that the rename never crosses a
// file system. Until commit() it has a name of its own (".stoplog-<hex>.tmp")
// that the destructor unlinks; after a crash such a name may remain and may be
// removed by anyone who holds the directory's lock. The directory fd is
// borrowed and must outlive it. Move-only.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog {

enum class Sync { kNo, kYes };
enum class Replace { kNo, kYes };

class TempFile {
 public:
  static Result<TempFile> create(int dir, mode_t mode);
  TempFile(TempFile&& other) noexcept;
  TempFile& operator=(TempFile&& other) noexcept;
  ~TempFile();

  int fd() const { return fd_.get(); }
  const std::string& temp_name() const { return name_; }
  // Gives it its name. With Replace::kNo an existing name is EEXIST and the
  // TempFile stays as it was. May be called once.
  Status commit(std::string_view name, Replace replace = Replace::kYes,
                Sync sync = Sync::kYes);

 private:
  TempFile(int dir, std::string name, Fd fd)
      : dir_(dir), name_(std::move(name)), fd_(std::move(fd)) {}
  int dir_ = -1;
  std::string name_;  // empty once committed
  Fd fd_;
};

// The whole content under `name`, atomically: readers see the old or the new.
Status write_file(int dir, std::string_view name, std::string_view content,
                  mode_t mode = 0600, Sync sync = Sync::kYes);

// A new directory "<prefix><hex>", 0700, beneath `dir`: its name.
Result<std::string> make_temp_dir(int dir, std::string_view prefix);

}  // namespace stoplog
