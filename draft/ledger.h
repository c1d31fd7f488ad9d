// SPDX-License-Identifier: Apache-2.0
// The record of a draft: an append-only file of JSON lines. Each entry carries
// the SHA-256 of itself and of the one before; the last one's is the head,
// kept in draft.json. It finds damage and partial edits. It does not bind the
// user himself, who may rewrite the file and the head together.
//
//   Ledger ledger = TRY(Ledger::open(layout, draft_id));
//   TRY(ledger.append("snapshot", Json::object().set("mark", "green"),
//                     Sync::kNo));
//   Ledger::Verdict v = TRY(ledger.verify());
//
// Every entry has n (from 1), kind and time; "prev" and "sha256" end it. An
// append takes the draft's meta lock, so daemon and CLI may append at once. A
// torn last line is cut off by the next append, which says so in its
// "recovered" key, as it says what is missing or another than was recorded;
// verify() repeats that.
//
// The run path does not sync: a loss of power takes the last entries, and the
// head may be on the disk before them. Entries are lost so only when they came
// after the last synced one and the machine has started again since; any others
// that are missing were removed, which stays a problem for good.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "base/result.h"
#include "base/temp_file.h"
#include "draft/layout.h"

namespace stoplog::draft {

class Ledger {
 public:
  // The draft must exist; the ledger may be absent (empty).
  static Result<Ledger> open(const Layout& layout, std::string_view id);

  // Returns the entry's number. `fields` must not hold n, kind, time, prev or
  // sha256. Names of environment variables may be in it, never values.
  // `written` is called when the line is in the file and the head not yet in
  // draft.json, which takes longer: who waits for the entry alone need not wait
  // for that. Whoever reads both takes the meta lock. A run that opens a
  // committed draft again tells when draft.json says so: the next command looks
  // there for the current draft.
  Result<int64_t> append(std::string_view kind, const Json& fields, Sync sync,
                         const std::function<void()>& written = {});

  // Entries in order, unchecked; `each` returns false to stop. A line that is
  // no JSON is skipped: verify() is for finding it. Memory is one entry's, and
  // of a long record the `last` few cost no more than of a short one.
  Status for_each(const std::function<bool(const Json&)>& each,
                  std::optional<uint64_t> last = {}) const;
  // Those of one kind alone, among the `last`; the others are not even parsed.
  Status for_each_of(std::string_view kind,
                     const std::function<void(const Json&)>& each,
                     std::optional<uint64_t> last = {}) const;
  Result<std::vector<Json>> entries() const;  // all, for a short one

  struct Verdict {
    bool ok = true;
    int64_t entries = 0;  // good ones, from the start
    std::string problem;  // which entry, and what is wrong with it
    int64_t lost = 0;     // at the end, with the machine's power
    // Not a problem: the head lags after a crash, entries were lost with the
    // machine's power, now or before an entry that tells of it.
    std::string note;
  };
  Result<Verdict> verify() const;

 private:
  explicit Ledger(Fd dir) : dir_(std::move(dir)) {}
  Result<std::optional<Fd>> file() const;  // none before the first entry
  Fd dir_;                                 // the draft's directory
};

// draft.json under the meta lock: what it says of the ledger is then so.
struct Draft;
Result<Draft> read_draft_settled(int draft_dir);

// The text that an entry's hash is taken over: the entry without "sha256".
std::string ledger_hash(const Json& entry);

}  // namespace stoplog::draft
