// SPDX-License-Identifier: Apache-2.0
// Two real directories, "base" and "draft", in a temporary place that is
// removed with the fixture, and the view over them. Also: running a command,
// and a tree written out as text, for comparing.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "base/sys_file.h"
#include "diff/change_set.h"
#include "fs/view.h"

namespace stoplog::diff {

class TwoTrees {
 public:
  TwoTrees() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "stoplog-diff-XXXXXX");
    top_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(base());
    std::filesystem::create_directory(draft());
  }
  ~TwoTrees() {
    std::error_code ignored;
    std::filesystem::remove_all(top_, ignored);
  }
  TwoTrees(const TwoTrees&) = delete;
  TwoTrees& operator=(const TwoTrees&) = delete;

  std::string top() const { return top_; }
  std::string base() const { return top_ + "/base"; }
  std::string draft() const { return top_ + "/draft"; }

  static void write(const std::string& path, std::string_view text) {
    std::filesystem::create_directories(
        std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string read(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
  }
  // Everything of the base, as a starting point of the draft.
  void copy_base() { run("cp -a '" + base() + "/.' '" + draft() + "/'"); }
  void both(const std::string& path, std::string_view text) {
    write(base() + "/" + path, text);
    write(draft() + "/" + path, text);
  }

  std::unique_ptr<fs::View> view(
      std::map<std::string, std::string> moved = {}) {
    base_fd_ = *sys::openat(AT_FDCWD, base(), O_RDONLY | O_DIRECTORY);
    draft_fd_ = *sys::openat(AT_FDCWD, draft(), O_RDONLY | O_DIRECTORY);
    return fs::view_of_directories(base_fd_.get(), draft_fd_.get(),
                                   std::move(moved));
  }

  static int run(const std::string& command) {
    return std::system(command.c_str());
  }
  // Standard output.
  static std::string output(const std::string& command) {
    std::string out;
    FILE* pipe = ::popen(command.c_str(), "r");
    char buffer[4096];
    while (size_t n = ::fread(buffer, 1, sizeof buffer, pipe))
      out.append(buffer, n);
    ::pclose(pipe);
    return out;
  }

  // One line for each file and symlink: what git can say of it.
  static std::map<std::string, std::string> listing(const std::string& root) {
    std::map<std::string, std::string> out;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(root)) {
      std::string name = entry.path().string().substr(root.size() + 1);
      if (name.starts_with(".git/")) continue;
      if (entry.is_symlink()) {
        out[name] =
            "link " + std::filesystem::read_symlink(entry.path()).string();
      } else if (entry.is_regular_file()) {
        struct stat st{};
        ::stat(entry.path().c_str(), &st);
        out[name] = std::string((st.st_mode & 0100) != 0 ? "exec " : "file ") +
                    read(entry.path().string());
      }
    }
    return out;
  }

 private:
  std::string top_;
  Fd base_fd_, draft_fd_;
};

}  // namespace stoplog::diff
