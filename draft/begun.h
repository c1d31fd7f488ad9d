// SPDX-License-Identifier: Apache-2.0
// Commands that have begun and are not in the ledger yet: one JSON line each,
// written before the command starts, so that one that is killed together with
// its daemon has its entry all the same.
//
//   Begun begun = TRY(Begun::open(draft_dir));
//   begun.add(line); ... begun.done();         // any thread
//   TRY(record_lost(draft_dir, ledger));       // when no daemon lives
//
// Nothing is synced: a plain write outlives the process, and after a loss of
// power the ledger's own last lines may be gone as well. The file is emptied as
// soon as none of its commands runs.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/fd.h"
#include "base/json.h"
#include "base/result.h"
#include "draft/ledger.h"

namespace stoplog::draft {

class Begun {
 public:
  // The file of the draft, made when it is missing. Who opens it holds the
  // draft's lock and has called record_lost().
  static Result<Begun> open(int draft_dir);
  Begun() = default;
  Begun(Begun&& other) noexcept : file_(std::move(other.file_)) {}
  Begun& operator=(Begun&& other) noexcept {
    file_ = std::move(other.file_);
    return *this;
  }

  // `entry`: its run entry as far as it is known. What cannot be written is
  // logged; the command need not wait for room.
  void add(const Json& entry);
  // One of those added is in the ledger, or never started.
  void done();

 private:
  Fd file_;
  std::mutex mutex_;  // protects the following; a leaf
  uint64_t open_ = 0;
};

// Puts what a killed daemon left into the ledger as runs that ended with it.
// With the draft's lock held, shared at least. Returns how many there were.
Result<uint64_t> record_lost(int draft_dir, Ledger& ledger);
// The same for who has not opened the ledger: it is opened when there are any.
Status record_lost(const Layout& layout, std::string_view id, int draft_dir);
// The same for who has no lock; nothing is done while a daemon lives.
Status record_lost_unless_served(const Layout& layout, std::string_view id);

}  // namespace stoplog::draft
