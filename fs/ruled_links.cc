// SPDX-License-Identifier: Apache-2.0
#include "fs/ruled_links.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/sys_node.h"

namespace stoplog::fs {

Rule shared_rule(Rule rule) { return rule > Rule::kMask ? Rule::kNone : rule; }

// link(2) and rename(2) set ctime: a walk that began later saw all names. So
// did one that began after the question.
bool RuledLinks::knows(const sys::Stat& st, Rule own, uint64_t asked) const {
  if (found_by_ == 0 || own < above_) return false;
  return found_by_ > asked || std::tie(st.ctime.tv_sec, st.ctime.tv_nsec) <
                                  std::tie(since_.tv_sec, since_.tv_nsec);
}

Result<Rule> RuledLinks::rule(const sys::Stat& st, Rule own) {
  std::unique_lock lock(mutex_);
  const uint64_t asked = begun_;
  while (!knows(st, own, asked)) {
    if (walking_) {
      done_.wait(lock);
      continue;
    }
    walking_ = true;
    const uint64_t number = ++begun_;
    const Rule above = found_by_ == 0 ? own : std::min(own, above_);
    const timespec since = sys::coarse_now();
    lock.unlock();
    Found found;
    Status walked = walk(above, found);
    lock.lock();
    walking_ = false;
    done_.notify_all();
    TRY(std::move(walked));
    found_ = std::move(found);
    since_ = since;
    found_by_ = number;
    above_ = above;
  }
  auto it = found_.find(identity_of(st));
  return it == found_.end() ? own : std::max(own, it->second);
}

uint64_t RuledLinks::walks() const {
  std::lock_guard lock(mutex_);
  return begun_;
}

Status RuledLinks::walk(Rule above, Found& found) const {
  std::vector<std::string> left{""};
  while (!left.empty()) {
    const std::string path = std::exchange(left.back(), {});
    left.pop_back();
    auto seen = visit(path, above, found, left);
    // What this user cannot look into, or what goes meanwhile, leads nowhere.
    if (!seen && path.empty()) return seen;
  }
  return {};
}

Status RuledLinks::visit(const std::string& path, Rule above, Found& found,
                         std::vector<std::string>& left) const {
  Fd dir = TRY(open_deep_within(base_, path, O_RDONLY | O_DIRECTORY));
  return sys::list_dir(
      dir.get(), [&](std::string_view name, unsigned char type, uint64_t) {
        std::string child = join_path(path, name);
        bool is_dir = type == DT_DIR;
        if (!is_dir && type != DT_REG && type != DT_UNKNOWN) return;
        Rule rule = rules_.rule(child, is_dir);
        if (is_dir) {
          // Nothing beneath a name that leads nowhere has a milder rule.
          if (rule <= Rule::kMask) left.push_back(std::move(child));
          return;
        }
        rule = shared_rule(rule);
        if (rule <= above && type == DT_REG) return;
        auto st = sys::statat(dir.get(), std::string(name));
        if (!st) return;
        if (S_ISDIR(st->mode)) {
          if (rules_.rule(child, true) <= Rule::kMask)
            left.push_back(std::move(child));
        } else if (S_ISREG(st->mode) && st->nlink > 1 && rule > above) {
          Rule& known = found[identity_of(*st)];
          known = std::max(known, rule);
        }
      });
}

}  // namespace stoplog::fs
