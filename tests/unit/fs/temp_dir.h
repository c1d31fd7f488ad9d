// SPDX-License-Identifier: Apache-2.0
// A directory for one test, removed with everything in it at the end.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace stoplog::test {

class TempDir {
 public:
  TempDir() {
    std::string form =
        (std::filesystem::temp_directory_path() / "stoplog-test-XXXXXX");
    path_ = ::mkdtemp(form.data());
    fd_ = Fd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  int fd() const { return fd_.get(); }
  std::filesystem::path operator/(std::string_view name) const {
    return path_ / name;
  }
  const std::filesystem::path& path() const { return path_; }
  void write(std::string_view name, std::string_view text) const {
    std::ofstream(path_ / name, std::ios::binary)
        .write(text.data(), std::streamsize(text.size()));
  }
  std::string read(std::string_view name) const {
    std::ostringstream text;
    text << std::ifstream(path_ / name, std::ios::binary).rdbuf();
    return text.str();
  }
  void mkdir(std::string_view name) const {
    std::filesystem::create_directories(path_ / name);
  }

 private:
  std::filesystem::path path_;
  Fd fd_;
};

}  // namespace stoplog::test
