// SPDX-License-Identifier: Apache-2.0
#include "cli/out_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/escape.h"
#include "base/sys_file.h"
#include "base/temp_file.h"

namespace stoplog::cli {

Result<OutFile> OutFile::at(const std::string& file, std::string_view what) {
  size_t slash = file.rfind('/');
  std::string dir = slash == file.npos ? "." : file.substr(0, slash + 1);
  std::string name = slash == file.npos ? file : file.substr(slash + 1);
  std::string cannot = fmt::format("cannot write {}'{}'", what, escape(file));
  if (name.empty() || name == "." || name == "..")
    return fail(Code::kUsage, "{}: it is no file's name", cannot);
  Fd fd = TRY_CTX(sys::openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY), cannot);
  // A symlink is replaced, as everything that is written whole.
  if (auto there = sys::statat(fd.get(), name);
      there && !S_ISREG(there->mode) && !S_ISLNK(there->mode))
    return fail(Code::kUsage, "{}: it is {}", cannot,
                S_ISDIR(there->mode) ? "a directory" : "no file");
  TRY_CTX(TempFile::create(fd.get(), 0600), cannot);  // may we?
  return OutFile(std::move(fd), std::move(name));
}

Status OutFile::write(mode_t mode,
                      const std::function<Status(int fd)>& write) const {
  TempFile temp = TRY(TempFile::create(dir_.get(), mode));
  TRY(write(temp.fd()));
  return temp.commit(name_);
}

}  // namespace stoplog::cli
