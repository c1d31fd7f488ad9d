// SPDX-License-Identifier: Apache-2.0
#include "diff/examine.h"

#include <algorithm>
#include <array>

#include "diff/content_hash.h"
#include "diff/hunks.h"
#include "diff/risk.h"

namespace stoplog::diff {
namespace {

// Null for what is no file or too large.
using Text = SharedText;

// More edits than this are not kept with the change.
constexpr size_t kEditsKept = 256;

bool is_file(const std::optional<fs::NodeState>& state) {
  return state && state->type == fs::Type::kFile && state->content;
}

Result<Text> load(const std::optional<fs::NodeState>& state) {
  if (!is_file(state) || state->content->size() > kTextLimit) return nullptr;
  return std::make_shared<const std::string>(
      TRY(read_content(*state->content, kTextLimit)));
}

bool same_attributes(const fs::NodeState& a, const fs::NodeState& b) {
  // A symlink's mode bits mean nothing on Linux.
  return (a.type == fs::Type::kSymlink || a.mode == b.mode) && a.uid == b.uid &&
         a.gid == b.gid && a.xattrs == b.xattrs;
}

Result<bool> same_bytes(const Change& change, const Text& old_text,
                        const Text& new_text) {
  const fs::NodeState& a = *change.before;
  const fs::NodeState& b = *change.after;
  if (a.type != b.type) return false;
  switch (a.type) {
    case fs::Type::kFile:
      if (!a.content || !b.content)
        return fail(Code::kInternal, "a file without content");
      if (old_text && new_text) return *old_text == *new_text;
      return same_content(*a.content, *b.content);
    case fs::Type::kSymlink:
      return a.target == b.target;
    case fs::Type::kChar:
    case fs::Type::kBlock:
      return a.rdev == b.rdev;
    default:
      return true;
  }
}

Status hash_side(const std::optional<fs::NodeState>& state, const Text& text,
                 std::optional<Hash128>& fast,
                 std::optional<Sha256Digest>& strong) {
  if (!state) return {};
  ContentHash hash;
  if (state->type == fs::Type::kSymlink) {
    hash = hash_text(state->target);
  } else if (text) {
    hash = hash_text(*text);
  } else if (is_file(state)) {
    hash = TRY(hash_content(*state->content));
  } else {
    return {};
  }
  fast = hash.xxh3;
  strong = hash.sha256;
  return {};
}

// Git looks for a NUL in the first 8000 bytes; we look through all that we
// have read, because a patch with a NUL in a line is shown by nothing well.
Result<bool> looks_binary(const std::optional<fs::NodeState>& state,
                          const Text& text) {
  if (text) return text->find('\0') != std::string::npos;
  if (!is_file(state)) return false;
  std::array<std::byte, 8000> head;
  size_t got = TRY(state->content->read(0, head));
  return std::find(head.begin(), head.begin() + static_cast<long>(got),
                   std::byte{0}) != head.begin() + static_cast<long>(got);
}

// The line differences of a text that changed; none for what has no lines.
Result<std::optional<TextDiff>> compare(Change& change, const Text& old_text,
                                        const Text& new_text,
                                        SearchBudget* search) {
  if (change.binary || change.too_large || (!old_text && !new_text))
    return std::nullopt;
  static const Text nothing = std::make_shared<const std::string>();
  bool settled = false;
  auto diff = count_texts(old_text ? old_text : nothing,
                          new_text ? new_text : nothing, settled, search);
  if (!diff) {
    if (diff.error().err() != EFBIG) return std::unexpected(diff.error());
    change.too_large = true;
    return std::nullopt;
  }
  if (settled && old_text && new_text && diff->edits.size() <= kEditsKept)
    change.edits = std::make_shared<const std::vector<Edit>>(diff->edits);
  return std::move(*diff);
}

std::optional<std::string_view> view_of(const Text& text) {
  if (!text) return std::nullopt;
  return *text;
}

bool is_restorable(const Change& change, const Text& text, GitFacts& facts) {
  if ((change.after && change.kind != Kind::kType) || !is_file(change.before) ||
      !facts.has_repository())
    return false;
  if (text) return facts.is_restorable(change.path, git_blob_id(*text));
  auto id = git_blob_id(*change.before->content);
  return id && facts.is_restorable(change.path, *id);
}

}  // namespace

Status examine(Change& change, const ExamineContext& context) {
  const DiffOptions& options = context.options;
  bool held_back = change.ignored && !options.include_ignored;
  bool has_both = change.before && change.after;
  if (has_both)
    change.mode_changed = change.before->type == change.after->type &&
                          !same_attributes(*change.before, *change.after);
  // Different sizes of a held back file need no reading at all.
  bool sizes_differ =
      has_both && is_file(change.before) && is_file(change.after) &&
      change.before->content->size() != change.after->content->size();
  // A patch alone asks for none of these, and reads what it prints itself.
  bool asked = options.digest || options.risks || options.count_lines;
  Text old_text, new_text;
  if ((has_both && !sizes_differ) || (asked && !held_back)) {
    old_text = TRY(load(change.before));
    new_text = TRY(load(change.after));
  }
  // Against nothing, even nothing is new.
  bool alone = change.base_lost && !change.follows && !change.is_lost;
  change.content_changed = sizes_differ || !has_both || alone ||
                           !TRY(same_bytes(change, old_text, new_text));
  if (!kind_of(change)) return {};
  std::optional<TextDiff> diff;
  if (!held_back && asked) {
    change.binary = TRY(looks_binary(change.before, old_text)) ||
                    TRY(looks_binary(change.after, new_text));
    change.too_large = (is_file(change.before) && !old_text) ||
                       (is_file(change.after) && !new_text);
    if (change.content_changed && (options.count_lines || options.risks))
      diff = TRY(compare(change, old_text, new_text, context.search));
  }
  bool covered = !held_back || change.kind == Kind::kDeleted;
  // Whether a file that is held back is in the digest is for its name to say.
  if (options.risks || (options.digest && held_back)) {
    Subject subject{
        .change = change,
        .old_text = view_of(old_text),
        .new_text = view_of(new_text),
        .diff = diff ? &*diff : nullptr,
        .restorable = is_restorable(change, old_text, context.facts),
        .real_root = options.real_root,
        .view = context.view};
    change.risks = assess(subject, options.rules);
    covered |= change.is_danger();
  }
  if (options.digest && covered) {
    TRY(hash_side(change.before, old_text, change.old_hash, change.old_sha256));
    if (has_both && !change.content_changed) {
      change.new_hash = change.old_hash;
      change.new_sha256 = change.old_sha256;
    } else {
      TRY(hash_side(change.after, new_text, change.new_hash,
                    change.new_sha256));
    }
  }
  if (held_back || !options.count_lines) return {};
  if (diff) {
    change.lines_added = diff->lines_added();
    change.lines_deleted = diff->lines_deleted();
  } else if (!change.content_changed && !change.binary &&
             (is_file(change.before) || is_file(change.after))) {
    change.lines_added = change.lines_deleted = 0;
  }
  return {};
}

void suppose(Change& change, const ExamineContext& context) {
  bool has_both = change.before && change.after;
  if (has_both) {
    const fs::NodeState& a = *change.before;
    const fs::NodeState& b = *change.after;
    change.mode_changed = a.type == b.type && !same_attributes(a, b);
    change.content_changed =
        a.type != b.type || (is_file(change.before) && is_file(change.after)) ||
        a.target != b.target || a.rdev != b.rdev;
  } else {
    change.content_changed = true;
  }
  for (const auto* side : {&change.before, &change.after})
    change.too_large |= is_file(*side) && (*side)->content->size() > kTextLimit;
  if (auto kind = kind_of(change)) change.kind = *kind;
  change.risks = assess_names({.change = change,
                               .old_text = {},
                               .new_text = {},
                               .real_root = context.options.real_root,
                               .view = context.view},
                              context.options.rules);
}

std::optional<Kind> kind_of(const Change& change) {
  if (!change.before && !change.after) return std::nullopt;
  if (!change.before) return Kind::kAdded;
  if (!change.after) return Kind::kDeleted;
  if (change.before->type != change.after->type) return Kind::kType;
  if (change.from) return Kind::kRenamed;
  if (change.content_changed || change.is_lost) return Kind::kModified;
  if (change.mode_changed || change.merges || change.too_deep != 0)
    return Kind::kMode;
  return std::nullopt;
}

}  // namespace stoplog::diff
