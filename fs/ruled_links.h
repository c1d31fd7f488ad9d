// SPDX-License-Identifier: Apache-2.0
// RuledLinks: which files of several names have one that a rule speaks of.
// Nothing says where the other names of a file are but a walk over the tree;
// it is made when the content of such a file is first asked for, once for all
// of them, and again for one whose names have changed since.
//
//   RuledLinks links(base_fd, rules);
//   Rule rule = TRY(links.rule(st, Rule::kNone));   // the strictest, shared
//
// Only names are read, and the files asked about at which a rule holds: by the
// default masks a handful. Who asks waits for the walk, in a thread of his own;
// nobody else does. It stays on the mount of the base. Any thread.
#pragma once

#include <condition_variable>
#include <mutex>
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
  // The strictest rule above `own` at any name of the file; `own` if there is
  // none.
  Result<Rule> rule(const sys::Stat& st, Rule own);
  uint64_t walks() const;

 private:
  using Found = std::unordered_map<Identity, Rule, IdentityHash>;
  Status walk(Rule above, Found& found) const;
  Status visit(const std::string& path, Rule above, Found& found,
               std::vector<std::string>& left) const;
  bool knows(const sys::Stat& st, Rule own, uint64_t asked) const;

  const int base_;
  const PathRules& rules_;
  mutable std::mutex mutex_;  // a leaf
  std::condition_variable done_;
  // By mutex_:
  Found found_;
  timespec since_{};       // when the walk began that found them
  uint64_t found_by_ = 0;  // and which it was; 0: none yet
  Rule above_ = Rule::kNone;
  uint64_t begun_ = 0;
  bool walking_ = false;
};

}  // namespace stoplog::fs
