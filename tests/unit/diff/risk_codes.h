// SPDX-License-Identifier: Apache-2.0
// The risks of small changes, as a set of "danger code", "warn code"...
#pragma once

#include <set>
#include <string>

#include "catch_shim.h"
#include "diff/change_set.h"
#include "memory_view.h"

namespace stoplog::diff {

inline ChangeSet build(const MemoryView& view, DiffOptions options = {}) {
  auto set = build_change_set(view, options);
  REQUIRE(set);
  return std::move(*set);
}

// "danger code", "warn code", ... of the only change.
inline std::set<std::string> risks(const MemoryView& view,
                                   DiffOptions options = {}) {
  ChangeSet set = build(view, std::move(options));
  std::set<std::string> out;
  for (const Change& change : set.changes)
    for (const Risk& risk : change.risks)
      out.insert(std::string(name_of(risk.level)) + " " + risk.code);
  return out;
}

inline std::set<std::string> added(const std::string& name,
                                   std::string text = "text\n",
                                   mode_t mode = 0644) {
  MemoryView view;
  view.change(name, file(std::move(text), mode));
  return risks(view);
}

inline std::set<std::string> modified(std::string before, std::string after,
                                      const std::string& name = "file.txt") {
  MemoryView view;
  view.base[name] = file(std::move(before));
  view.change(name, file(std::move(after)));
  return risks(view);
}

using Codes = std::set<std::string>;

}  // namespace stoplog::diff
