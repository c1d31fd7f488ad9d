// SPDX-License-Identifier: Apache-2.0
#include "cli/review_decisions.h"

#include <algorithm>

namespace stoplog::cli {
namespace {

// The verdicts that count, the mode's among them.
std::vector<Verdict> all_of(const diff::Change& change,
                            const FileDecision& decision) {
  if (decision.parts.empty()) return {decision.whole};
  std::vector<Verdict> out = decision.parts;
  if (change.mode_changed) out.push_back(decision.mode);
  return out;
}

}  // namespace

bool has_parts(const diff::Change& change) {
  auto is_file = [](const std::optional<fs::NodeState>& state) {
    return state && state->type == fs::Type::kFile;
  };
  return change.kind == diff::Kind::kModified && change.content_changed &&
         !change.binary && !change.too_large && !change.git &&
         is_file(change.before) && is_file(change.after);
}

FileDecision normalized(const diff::Change& change, FileDecision decision) {
  std::vector<Verdict> verdicts = all_of(change, decision);
  auto is_same = [&](Verdict v) { return v == verdicts.front(); };
  if (std::ranges::all_of(verdicts, is_same)) {
    decision.whole = verdicts.front();
    decision.parts.clear();
    decision.mode = Verdict::kNone;
  }
  if (std::ranges::find(verdicts, Verdict::kRejected) == verdicts.end())
    decision.reason.clear();
  return decision;
}

Summary summarize(const diff::Change& change, const FileDecision& decision) {
  std::vector<Verdict> verdicts = all_of(change, decision);
  auto count = [&](Verdict v) { return std::ranges::count(verdicts, v); };
  auto all = std::ssize(verdicts);
  Summary out;
  out.undecided = count(Verdict::kNone) > 0;
  out.approves = count(Verdict::kApproved) > 0;
  if (count(Verdict::kNone) == all)
    out.standing = Standing::kNone;
  else if (count(Verdict::kApproved) == all)
    out.standing = Standing::kApproved;
  else if (count(Verdict::kRejected) == all)
    out.standing = Standing::kRejected;
  else
    out.standing = Standing::kPartial;
  return out;
}

std::string_view word_of(Standing standing) {
  switch (standing) {
    case Standing::kNone:
      return "";
    case Standing::kApproved:
      return "approved";
    case Standing::kPartial:
      return "partial";
    case Standing::kRejected:
      return "rejected";
  }
  return "";
}

FileDecision MemoryDecisions::get(const diff::Change& change,
                                  const diff::TextDiff* text) const {
  auto found = decisions_.find(change.path.str());
  if (found == decisions_.end()) return {};
  FileDecision out = found->second;
  if (text == nullptr || out.parts.size() != text->edits.size())
    out.parts.clear();
  return out;
}

Summary MemoryDecisions::summary(const diff::Change& change) const {
  auto found = decisions_.find(change.path.str());
  if (found == decisions_.end()) return {};
  return summarize(change, found->second);
}

void MemoryDecisions::put(const diff::Change& change, const diff::TextDiff*,
                          const FileDecision& decision) {
  decisions_[change.path.str()] = decision;
}

Status MemoryDecisions::save() {
  saves_++;
  return {};
}

}  // namespace stoplog::cli
