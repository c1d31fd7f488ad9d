// SPDX-License-Identifier: Apache-2.0
// RuledLinks: which files of several names have one that a rule speaks of.
// Nothing says where the other names of a file are but a walk over the tree;
// it is made when the content of such a file is first asked for, once for all
// of them, and again for one whose names have changed since.
//
//   RuledLinks links(base_fd, rules);
//   Rule rule = TRY(links.rule(st, Rule::kNone));   // the strictest, shared
//   links.end();                                    // EIO to who waits
//
// Only names are read, and the files asked about at which a rule holds: by the
// default masks a handful. It stays on the mount of the base. Any thread may
// ask, and waits for the walk with no lock held; the walk has a thread of its
// own, so that who serves requests sleeps meanwhile and is seen to.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "base/sys_file.h"
#include "fs/beneath.h"
#include "fs/state.h"
#include "fs/tree_types.h"

namespace stoplog::fs {

// What one name of a file asks for at all of them: content is everywhere the
// same. A name that leads nowhere takes nothing from the others.
Rule shared_rule(Rule rule);

class RuledLinks {
 public:
  // Both outlive it.
  RuledLinks(int base, const PathRules& rules) : base_(base), rules_(rules) {}
  ~RuledLinks();
  RuledLinks(const RuledLinks&) = delete;
  RuledLinks& operator=(const RuledLinks&) = delete;

  // The strictest rule above `own` at any name of the file; `own` if there is
  // none. EINTR once `gives_up` says so, which is asked now and then.
  using GivesUp = std::function<bool()>;
  Result<Rule> rule(const sys::Stat& st, Rule own,
                    const GivesUp& gives_up = {});
  // Stops the walk. EIO to who waits, and to who asks later for what is not
  // known.
  void end();
  uint64_t walks() const;

 private:
  using Found = std::unordered_map<Identity, Rule, IdentityHash>;
  void begin(Rule own);  // mutex_ held
  void run();
  void walk_once(std::unique_lock<std::mutex>& lock);
  Status walk(Rule above, Found& found) const;
  Status visit(const std::string& path, Rule above, Found& found,
               std::vector<std::string>& left) const;
  bool knows(const sys::Stat& st, Rule own, uint64_t asked) const;

  const int base_;
  const PathRules& rules_;
  std::atomic<bool> ending_{false};
  mutable std::mutex mutex_;  // a leaf
  std::condition_variable wanted_;
  std::condition_variable done_;
  // By mutex_:
  std::thread walker_;  // from the first question on
  Found found_;
  timespec since_{};       // when the walk began that found them
  uint64_t found_by_ = 0;  // and which it was; 0: none yet
  Rule above_ = Rule::kNone;
  uint64_t begun_ = 0;  // also one that is wanted and has not begun yet
  bool walking_ = false;
  Rule wanted_above_ = Rule::kNone;
  std::optional<Error> failed_;
  uint64_t failed_by_ = 0;
};

}  // namespace stoplog::fs
