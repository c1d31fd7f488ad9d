// SPDX-License-Identifier: Apache-2.0
#include "fs/ruled_links.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/sys_node.h"

namespace stoplog::fs {
namespace {

// How often one who waits looks whether somebody still waits for him.
constexpr std::chrono::milliseconds kLook{100};

}  // namespace

Rule shared_rule(Rule rule) { return rule > Rule::kMask ? Rule::kNone : rule; }

// link(2) and rename(2) set ctime: a walk that began later saw all names. So
// did one that began after the question.
bool RuledLinks::knows(const sys::Stat& st, Rule own, uint64_t asked) const {
  if (found_by_ == 0 || own < above_) return false;
  return found_by_ > asked || std::tie(st.ctime.tv_sec, st.ctime.tv_nsec) <
                                  std::tie(since_.tv_sec, since_.tv_nsec);
}

RuledLinks::~RuledLinks() {
  end();
  if (walker_.joinable()) walker_.join();
}

void RuledLinks::end() {
  std::lock_guard lock(mutex_);
  ending_ = true;
  wanted_.notify_all();
  done_.notify_all();
}

Result<Rule> RuledLinks::rule(const sys::Stat& st, Rule own,
                              const GivesUp& gives_up) {
  std::unique_lock lock(mutex_);
  const uint64_t asked = begun_;
  while (!knows(st, own, asked)) {
    if (ending_) return fail_errno(EIO, "the walk for other names was ended");
    if (failed_by_ > asked) return std::unexpected(*failed_);
    if (!walking_) begin(own);
    if (!walking_) continue;
    if (done_.wait_for(lock, kLook) == std::cv_status::no_timeout) continue;
    lock.unlock();
    if (gives_up && gives_up()) return fail_errno(EINTR);
    lock.lock();
  }
  auto it = found_.find(identity_of(st));
  return it == found_.end() ? own : std::max(own, it->second);
}

void RuledLinks::begin(Rule own) {
  walking_ = true;
  ++begun_;
  wanted_above_ = found_by_ == 0 ? own : std::min(own, above_);
  if (!walker_.joinable()) {
    try {
      walker_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      walking_ = false;
      failed_by_ = begun_;
      failed_ = Error(Code::kErrno, "cannot start a thread to walk",
                      error.code().value());
    }
  }
  wanted_.notify_one();
}

void RuledLinks::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wanted_.wait(lock, [&] { return walking_ || ending_; });
    if (ending_) return;
    walk_once(lock);
    walking_ = false;
    done_.notify_all();
  }
}

void RuledLinks::walk_once(std::unique_lock<std::mutex>& lock) {
  const uint64_t number = begun_;
  const Rule above = wanted_above_;
  const timespec since = sys::coarse_now();
  lock.unlock();
  Found found;
  Status walked = walk(above, found);
  lock.lock();
  if (ending_) return;  // not all of it was seen
  if (!walked) {
    failed_by_ = number;
    failed_ = std::move(walked).error();
    return;
  }
  found_ = std::move(found);
  since_ = since;
  found_by_ = number;
  above_ = above;
}

uint64_t RuledLinks::walks() const {
  std::lock_guard lock(mutex_);
  return begun_;
}

Status RuledLinks::walk(Rule above, Found& found) const {
  std::vector<std::string> left{""};
  while (!left.empty() && !ending_) {
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
        if (ending_) return;
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
