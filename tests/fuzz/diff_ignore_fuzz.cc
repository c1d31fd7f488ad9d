// SPDX-License-Identifier: Apache-2.0
// fuzz: sources diff/ignore_filter.cc diff/link_target.cc
//
// Any rules over any path: an answer, and the same one whichever path was asked
// before. A link's target of any bytes: followed to an end.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "diff/ignore_filter.h"
#include "diff/link_target.h"

using namespace stoplog;
using namespace stoplog::diff;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// A work tree with nothing in it but rules.
class WorkTree {
 public:
  WorkTree() {
    char pattern[] = "/tmp/stoplog-ignore-XXXXXX";
    root_ = ::mkdtemp(pattern);
    ::mkdir((root_ + "/.git").c_str(), 0700);
    ::setenv("HOME", root_.c_str(), 1);
    ::unsetenv("XDG_CONFIG_HOME");
  }
  ~WorkTree() {
    ::unlink((root_ + "/.gitignore").c_str());
    ::rmdir((root_ + "/.git").c_str());
    ::rmdir(root_.c_str());
  }
  const std::string& with_rules(std::string_view rules) {
    FILE* file = std::fopen((root_ + "/.gitignore").c_str(), "w");
    std::fwrite(rules.data(), 1, rules.size(), file);
    std::fclose(file);
    return root_;
  }

 private:
  std::string root_;
};

// Every path is a link with the same target.
class LinksAllOver : public fs::View {
 public:
  explicit LinksAllOver(std::string_view target) {
    link_.type = fs::Type::kSymlink;
    link_.target = target;
  }
  Result<std::vector<fs::RawChange>> changes() const override { return {}; }
  Result<std::optional<fs::NodeState>> draft_state(
      const RelPath&) const override {
    return link_;
  }
  Result<std::vector<fs::DirEntry>> draft_list(const RelPath&) const override {
    return std::vector<fs::DirEntry>();
  }
  Result<std::optional<fs::NodeState>> real_state(
      const RelPath&) const override {
    return std::nullopt;
  }
  Result<std::vector<fs::DirEntry>> real_list(const RelPath&) const override {
    return std::vector<fs::DirEntry>();
  }

 private:
  fs::NodeState link_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static WorkTree tree;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  size_t split = std::min(input.find('\xff'), input.size());
  std::string_view rules = input.substr(0, split);
  auto path = RelPath::parse(input.substr(std::min(split + 1, size)));
  if (!path || path->is_root()) path = RelPath::parse("a/b.o");
  const std::string& root = tree.with_rules(rules);
  IgnoreFilter fresh(root), used(root);
  (void)used.may_ignore("x/y/z");
  require(fresh.may_ignore(path->str()) == used.may_ignore(path->str()));
  (void)leaves_workspace(LinksAllOver(rules), *path, rules, "/a");
  return 0;
}
