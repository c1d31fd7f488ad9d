// SPDX-License-Identifier: Apache-2.0
#include "diff/link_target.h"

#include <string>
#include <vector>

#include "base/strings.h"

namespace stoplog::diff {
namespace {

constexpr int kLinks = 40;            // ELOOP
constexpr size_t kComponents = 4096;  // longer than any path that can be opened

// The rest of an absolute target within the workspace; false: it is outside.
bool strip_root(std::string_view& target, std::string_view real_root) {
  if (real_root.size() < 2 || !target.starts_with(real_root)) return false;
  target.remove_prefix(real_root.size());
  return target.empty() || target[0] == '/';
}

class Walk {
 public:
  Walk(const fs::View& view, std::string_view real_root)
      : view_(view), real_root_(real_root) {}

  bool leaves(const RelPath& path, std::string_view target) {
    RelPath at = path.parent();
    if (!follow(at, target)) return true;
    bool exists = true;  // what does not is no link: names are all there is
    for (size_t steps = 0; !rest_.empty(); steps++) {
      if (steps > kComponents) return true;
      std::string part = std::move(rest_.back());
      rest_.pop_back();
      if (part == "..") {
        if (at.is_root()) return true;
        at = at.parent();
        continue;
      }
      auto next = RelPath::parse(at.is_root() ? part : at.str() + "/" + part);
      if (!next) return true;
      at = std::move(*next);
      if (!exists) continue;
      auto state = view_.draft_state(at);
      exists = state && *state;
      if (!exists || (*state)->type != fs::Type::kSymlink) continue;
      if (++links_ > kLinks) return false;  // leads nowhere
      at = at.parent();
      if (!follow(at, (*state)->target)) return true;
    }
    return false;
  }

 private:
  // Puts the parts of a target in front of what is left; false: it is outside.
  bool follow(RelPath& at, std::string_view target) {
    if (target.starts_with('/')) {
      if (!strip_root(target, real_root_)) return false;
      at = RelPath();
    }
    auto parts = split(target, '/');
    for (auto part = parts.rbegin(); part != parts.rend(); ++part)
      if (!part->empty() && *part != ".") rest_.emplace_back(*part);
    return true;
  }

  const fs::View& view_;
  std::string_view real_root_;
  std::vector<std::string> rest_;  // the next one last
  int links_ = 0;
};

}  // namespace

bool leaves_workspace(const fs::View& view, const RelPath& path,
                      std::string_view target, std::string_view real_root) {
  return Walk(view, real_root).leaves(path, target);
}

}  // namespace stoplog::diff
