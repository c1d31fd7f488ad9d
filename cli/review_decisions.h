// SPDX-License-Identifier: Apache-2.0
// What a person decided about each change, as the review screen and
// `approve -p` see it: a verdict for the whole change, or one for each edit of
// its text and one for its mode.
//
//   FileDecision d = store.get(change, &text);
//   d.parts[2] = Verdict::kApproved;
//   store.put(change, &text, normalized(d));
//   TRY(store.save());
//
// The store binds every decision to the hashes of what was shown; a decision
// about something that changed since is not returned. put() is memory only and
// cheap; save() makes all of it durable and is called when the reader pauses,
// leaves or commits. One thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "diff/change_set.h"
#include "diff/hunks.h"

namespace stoplog::cli {

enum class Verdict : unsigned char { kNone, kApproved, kRejected };

struct FileDecision {
  Verdict whole = Verdict::kNone;  // counts when `parts` is empty
  std::vector<Verdict> parts;      // one an edit of the text
  Verdict mode = Verdict::kNone;   // with `parts`, when the mode changed too
  std::string reason;              // of what was rejected; may be empty
  bool operator==(const FileDecision&) const = default;
};

enum class Standing : unsigned char { kNone, kApproved, kPartial, kRejected };

struct Summary {
  Standing standing = Standing::kNone;
  bool undecided = true;  // something in it has no verdict yet
  bool approves = false;  // something in it would be committed
  bool stale = false;     // approved before, and another change since
  bool operator==(const Summary&) const = default;
};

// Whether a change can be decided in parts: text on both sides at one path.
bool has_parts(const diff::Change& change);
// One verdict all over becomes a verdict of the whole.
FileDecision normalized(const diff::Change& change, FileDecision decision);
Summary summarize(const diff::Change& change, const FileDecision& decision);
std::string_view word_of(Standing standing);  // "approved", "" for none

class DecisionStore {
 public:
  virtual ~DecisionStore() = default;
  // `text` is null when it is not loaded or there is none; the decision is
  // then without parts, and a partial one is summary()'s to tell.
  virtual FileDecision get(const diff::Change& change,
                           const diff::TextDiff* text) const = 0;
  virtual Summary summary(const diff::Change& change) const = 0;
  virtual void put(const diff::Change& change, const diff::TextDiff* text,
                   const FileDecision& decision) = 0;
  virtual Status save() = 0;
};

// Keeps them in memory alone: for tests, and for looking without a draft.
class MemoryDecisions : public DecisionStore {
 public:
  FileDecision get(const diff::Change& change,
                   const diff::TextDiff* text) const override;
  Summary summary(const diff::Change& change) const override;
  void put(const diff::Change& change, const diff::TextDiff* text,
           const FileDecision& decision) override;
  Status save() override;
  int saves() const { return saves_; }

 private:
  std::map<std::string, FileDecision> decisions_;
  int saves_ = 0;
};

}  // namespace stoplog::cli
