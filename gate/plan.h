// SPDX-License-Identifier: Apache-2.0
// The decisions of a person about a change set: plan.json in the draft's
// directory (docs/FORMAT.md, gate).
//
//   Plan plan = TRY(load_plan(draft_dir));
//   ... approve(), reject() of gate/decide.h ...
//   TRY(save_plan(draft_dir, plan));
//
// A decision about a whole change is bound to that change's SHA-256 (both
// sides, attributes included): when the change is another one, the decision is
// stale. A decision about parts of a text is bound to each part's digest. Plain
// data; the caller holds the draft's meta lock from load to save.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/relpath.h"
#include "base/result.h"

namespace stoplog::gate {

enum class Verdict { kApproved, kRejected };

// Who decided, when, on which terminal, looking at which change set.
struct Signature {
  std::string user;
  std::string tty;  // empty: no terminal
  timespec time{};
  std::string set_digest;  // "sha256:…"
  bool operator==(const Signature& other) const {
    return user == other.user && tty == other.tty &&
           time.tv_sec == other.time.tv_sec && set_digest == other.set_digest;
  }
};

// One edit of a text file (diff/hunks.h).
struct EditDecision {
  Sha256Digest edit{};
  Verdict verdict = Verdict::kApproved;
  bool operator==(const EditDecision&) const = default;
};

struct Decision {
  RelPath path;
  Verdict verdict = Verdict::kApproved;
  // Of the change as it was decided on: diff/canonical.h, change_digest().
  Sha256Digest change{};
  std::optional<Sha256Digest> base, fresh;  // content, see as_decided()
  // Empty: the whole change. Else the parts decided on, `verdict` unused.
  std::vector<EditDecision> edits;
  // The person named this very path, or said --danger: dangers, setuid bits
  // and special files come along.
  bool confirmed = false;
  // By a glob of the policy, not by a person now.
  bool standing = false;
  std::string reason;  // of a rejection
  Signature by;
  bool operator==(const Decision&) const = default;
};

// An edit that was rejected once, known again when it comes back at any line.
struct RejectedEdit {
  RelPath path;
  Sha256Digest text{};  // of the removed and added lines
  std::string reason;
  bool operator==(const RejectedEdit&) const = default;
};

struct Plan {
  std::vector<Decision> decisions;  // by path, one for each
  std::vector<RejectedEdit> rejected;

  const Decision* find(const RelPath& path) const;
  void set(Decision decision);
  bool erase(const RelPath& path);
  void erase(std::vector<RelPath> paths);  // all at once: there may be 100,000
  static bool approves(const Decision& decision);  // all of it or a part
  bool operator==(const Plan&) const = default;
};

std::string to_json(const Plan& plan);
Result<Plan> plan_from_json(std::string_view text);

// An absent file is an empty plan. save_plan() replaces it atomically, synced.
Result<Plan> load_plan(int dir, const std::string& name = "plan.json");
Status save_plan(int dir, const Plan& plan,
                 const std::string& name = "plan.json");

// SHA-256 over everything that is approved: what a commit and its receipt name.
Sha256Digest plan_digest(const Plan& plan);

}  // namespace stoplog::gate
