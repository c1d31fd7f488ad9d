// SPDX-License-Identifier: Apache-2.0
#include "base/temp_file.h"

#include <linux/fs.h>

#include "base/interrupt.h"
#include "base/sys_file.h"
#include "base/sys_process.h"

namespace stoplog {
namespace {

Result<uint64_t> random_number() {
  uint64_t value = 0;
  TRY(sys::getrandom(std::as_writable_bytes(std::span(&value, 1))));
  return value;
}

}  // namespace

// While it has a temporary name, Ctrl-C waits for that to go.
Result<TempFile> TempFile::create(int dir, mode_t mode) {
  Hold hold;
  for (;;) {
    std::string name =
        fmt::format(".stoplog-{:016x}.tmp", TRY(random_number()));
    auto fd = sys::openat(dir, name, O_RDWR | O_CREAT | O_EXCL, mode);
    if (fd) {
      hold.give_away();
      return TempFile(dir, std::move(name), std::move(*fd));
    }
    if (fd.error().err() != EEXIST) return std::unexpected(fd.error());
  }
}

TempFile::TempFile(TempFile&& other) noexcept
    : dir_(other.dir_),
      name_(std::exchange(other.name_, {})),
      fd_(std::move(other.fd_)) {}

TempFile& TempFile::operator=(TempFile&& other) noexcept {
  std::swap(dir_, other.dir_);
  std::swap(name_, other.name_);
  std::swap(fd_, other.fd_);
  return *this;
}

TempFile::~TempFile() {
  // Nothing can be done about a failure here; the header says who cleans up.
  if (name_.empty()) return;
  (void)sys::unlinkat(dir_, name_);
  Hold::take_over().release();
}

Status TempFile::commit(std::string_view name, Replace replace, Sync sync) {
  if (sync == Sync::kYes) TRY(sys::fsync(fd_.get()));
  TRY(sys::renameat2(dir_, name_, dir_, std::string(name),
                     replace == Replace::kNo ? RENAME_NOREPLACE : 0));
  name_.clear();
  Hold hold = Hold::take_over();
  if (sync == Sync::kNo) return {};
  // The caller's directory fd may be O_PATH, which cannot be synced.
  Fd dir = TRY(sys::openat(dir_, ".", O_RDONLY | O_DIRECTORY));
  return sys::fsync(dir.get());
}

Status write_file(int dir, std::string_view name, std::string_view content,
                  mode_t mode, Sync sync) {
  TempFile file = TRY(TempFile::create(dir, mode));
  TRY(sys::write_full(file.fd(), content));
  return file.commit(name, Replace::kYes, sync);
}

Result<std::string> make_temp_dir(int dir, std::string_view prefix) {
  for (;;) {
    std::string name = fmt::format("{}{:016x}", prefix, TRY(random_number()));
    auto made = sys::mkdirat(dir, name, 0700);
    if (made) return name;
    if (made.error().err() != EEXIST) return std::unexpected(made.error());
  }
}

}  // namespace stoplog
