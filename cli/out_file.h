// SPDX-License-Identifier: Apache-2.0
// A file that a command is to write, whole or not at all, by its name on the
// command line. What cannot be it (a directory, a device) is refused before any
// work is done.
//
//   OutFile out = TRY(OutFile::at("dir/x.bundle"));
//   TRY(out.write(0600, [&](int fd) { ... }));
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace stoplog::cli {

class OutFile {
 public:
  // Code::kUsage when it is no file's name; also when it cannot be made there.
  // `what` is said in the error: "the receipt ".
  static Result<OutFile> at(const std::string& file,
                            std::string_view what = "");
  Status write(mode_t mode, const std::function<Status(int fd)>& write) const;

 private:
  OutFile(Fd dir, std::string name)
      : dir_(std::move(dir)), name_(std::move(name)) {}
  Fd dir_;
  std::string name_;
};

}  // namespace stoplog::cli
