// SPDX-License-Identifier: Apache-2.0
// Scratch: an empty directory for one test, beneath $TMPDIR (or /tmp), removed
// with all in it at the end of its scope.
//
//   Scratch scratch;
//   REQUIRE(write_file(scratch.fd(), "x", "content"));
#pragma once

#include <cstdlib>
#include <string>

#include "base/dir.h"
#include "base/sys_file.h"
#include "base/temp_file.h"

namespace stoplog {

class Scratch {
 public:
  Scratch() {
    const char* tmp = std::getenv("TMPDIR");
    parent_path_ = tmp != nullptr ? tmp : "/tmp";
    parent_ = sys::openat(AT_FDCWD, parent_path_, O_PATH | O_DIRECTORY).value();
    name_ = make_temp_dir(parent_.get(), "stoplog-unit-").value();
    dir_ = sys::openat(parent_.get(), name_, O_RDONLY | O_DIRECTORY).value();
  }
  ~Scratch() { (void)remove_tree(parent_.get(), name_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  int fd() const { return dir_.get(); }
  std::string path() const { return parent_path_ + "/" + name_; }

 private:
  std::string parent_path_;
  Fd parent_;
  std::string name_;
  Fd dir_;
};

}  // namespace stoplog
