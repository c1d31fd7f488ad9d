// SPDX-License-Identifier: Apache-2.0
#include "diff/git_fold.h"

#include <algorithm>
#include <set>

#include "diff/content_hash.h"
#include "diff/git_inflate.h"
#include "diff/git_new_objects.h"
#include "diff/git_object.h"
#include "diff/git_pack_index.h"
#include "diff/git_row_risks.h"
#include "diff/git_sides.h"
#include "diff/git_sort.h"
#include "diff/git_split_index.h"
#include "diff/git_tips.h"

namespace stoplog::diff {
namespace {

constexpr size_t kSubjects = 20;       // of one ref
constexpr size_t kSubjectsRead = 400;  // of all: each inflates up to 64 KiB
constexpr std::string_view kGone = "deleted since";

bool is_directory(const Change& change) {
  return (change.after ? change.after : change.before)->type == fs::Type::kDir;
}

class Folder {
 public:
  Folder(const FoldContext& context, GitParts git)
      : context_(context),
        view_(context.view),
        directory_(std::move(git.directory)),
        parts_(std::move(git.parts)),
        sides_(view_, directory_, parts_),
        objects_(view_, directory_, sides_.format()) {}

  Result<std::optional<Change>> run() {
    for (const Change& part : parts_) TRY(count(part));
    count_removed();
    TRY(find_refs());
    put_first();
    for (RefMove& move : git_.refs) find_subjects(move);
    objects_.check();
    if (context_.compare && !goes()) compare_with_files();
    git_.unreadable = sides_.take_unreadable();
    std::sort(git_.others.begin(), git_.others.end());
    bool whole = appears_or_goes();
    bool meaning = whole || !git_.refs.empty() || git_.index_changed ||
                   git_.objects_added + git_.objects_removed +
                           git_.packs_added + git_.packs_removed >
                       0 ||
                   !git_.others.empty() || !git_.unreadable.empty() ||
                   git_.unreviewed_count > 0 || !git_.unread.empty();
    if (!meaning) return std::nullopt;
    return TRY(make_row());
  }

 private:
  bool appears_or_goes() const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const Change& part) {
      return part.path == directory_ && (!part.before || !part.after);
    });
  }

  bool goes() const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const Change& part) {
      return part.path == directory_ && !part.after;
    });
  }

  Status count(const Change& part) {
    if (part.path == directory_) return {};
    std::string rel = sides_.relative(part);
    if (is_directory(part)) {
      // A ref that made way for refs beneath its name.
      if (part.before && git_sort(rel) == GitSort::kRef) names_.insert(rel);
      note(rel, part);
      return {};
    }
    switch (git_sort(rel)) {
      case GitSort::kIndex:
        compare_index(part);
        break;
      case GitSort::kRef:
        if (rel == "HEAD" || !rel.ends_with(".lock")) names_.insert(rel);
        break;
      case GitSort::kPackedRefs:
        break;  // find_refs() reads it
      case GitSort::kObject:
      case GitSort::kPack:
        if (!part.after) {
          removed_.push_back(&part);
          break;
        }
        if (!part.before)
          (git_sort(rel) == GitSort::kPack ? git_.packs_added
                                           : git_.objects_added)++;
        note(rel, part);
        if (!part.before) objects_.add(rel);
        break;
      case GitSort::kPackIndex:
        if (part.after && !part.before) objects_.add(rel);
        [[fallthrough]];
      case GitSort::kBookkeeping:
        note(rel, part);
        [[fallthrough]];
      case GitSort::kRebuilt:
        git_.bookkeeping++;
        break;
      case GitSort::kStashLog:
        if (part.after) find_stashed(part);
        note(rel, part);
        break;
      case GitSort::kOther:
        git_.others.push_back(part.path);
        if (rel.starts_with("reftable/"))
          sides_.note_unreadable("refs of a format that is not known here");
        note(rel, part);
    }
    return {};
  }

  // All that `git stash list` shows: each is applied as a whole.
  void find_stashed(const Change& part) {
    auto ids = [&](const std::optional<fs::NodeState>& state)
        -> Result<std::vector<std::string>> {
      return parse_ref_log(TRY(text_of(state, kRefLogLimit)));
    };
    auto before = ids(part.before), after = ids(part.after);
    if (!after) {
      sides_.note_unreadable("logs/refs/stash: " + after.error().text());
      return;
    }
    std::set<std::string> known;
    if (before) known.insert(before->begin(), before->end());
    for (const std::string& id : *after)
      if (known.insert(id).second) stashed_.push_back(id);
  }

  // A part that a commit writes as it is.
  void note(std::string_view rel, const Change& part) {
    meaning_.update(
        fmt::format("{} {} {} {} {}\n", name_of(part.kind), rel.size(), rel,
                    part.after ? fmt::format("{} {}:{}", mode_text(*part.after),
                                             part.after->uid, part.after->gid)
                               : "absent",
                    part.new_sha256 ? hex(*part.new_sha256) : ""));
  }

  // Objects that are in another pack now were not removed: `git gc` does that,
  // and a commit never takes one from the real repository. Were they told, they
  // would be held for ever.
  void count_removed() {
    std::vector<const Change*> loose, packs;
    for (const Change* part : removed_)
      (git_sort(sides_.relative(*part)) == GitSort::kPack ? packs : loose)
          .push_back(part);
    loose.insert(loose.end(), packs.begin(), packs.end());
    for (size_t i : find_missing(loose, packs)) {
      std::string rel = sides_.relative(*loose[i]);
      (git_sort(rel) == GitSort::kPack ? git_.packs_removed
                                       : git_.objects_removed)++;
      note(rel, *loose[i]);
    }
  }

  // Of `all`, loose objects and then `packs`, those that are nowhere else.
  std::vector<size_t> find_missing(const std::vector<const Change*>& all,
                                   const std::vector<const Change*>& packs) {
    if (all.empty()) return {};
    std::vector<std::string> ids, indexes;
    for (size_t i = 0; i < all.size() - packs.size(); i++)
      ids.push_back(loose_object_id(sides_.relative(*all[i])).value_or(""));
    uint64_t left = kPackIndexLimit;
    for (const Change* pack : packs) {
      auto index =
          sides_.read(Side::kBase, index_of(sides_.relative(*pack)), left);
      indexes.push_back(index.value_or(""));
      left -= indexes.back().size();
    }
    const ObjectFormat format = sides_.format();
    MissingObjects missing(format, std::move(ids), std::move(indexes));
    left = kPackIndexLimit;
    for (const std::string& pack : sides_.draft_packs()) {
      auto index = sides_.read(Side::kDraft, index_of(pack), left);
      if (!index) continue;
      left -= index->size();
      missing.found_in(pack_index_ids(*index, format));
    }
    return missing.left();
  }

  static std::string index_of(const std::string& pack) {
    return pack.substr(0, pack.size() - 5) + ".idx";
  }

  void compare_index(const Change& part) {
    auto before = text_of(part.before, kIndexLimit);
    auto after = text_of(part.after, kIndexLimit);
    auto shared = [this](Side side) {
      return [this, side](const std::string& name) {
        return sides_.read(side, name, kIndexLimit);
      };
    };
    Result<IndexDelta> delta =
        before && after
            ? compare_indexes(
                  {*before, shared(Side::kBase)},
                  {*after, shared(Side::kDraft)}, sides_.format(),
                  [this](const IndexEntry* old, const IndexEntry* now) {
                    stage(old, now);
                  })
            : std::unexpected(before ? after.error() : before.error());
    if (!delta) {
      git_.index_changed = true;
      sides_.note_unreadable("the index changed: " + delta.error().text());
      note("index", part);
      return;
    }
    git_.index_changed = delta->any();
    git_.index_added = delta->added;
    git_.index_modified = delta->modified;
    git_.index_removed = delta->removed;
    git_.index_hidden = delta->hidden;
    git_.first_hidden = std::move(delta->first_hidden);
    meaning_.update("index " + hex(delta->meaning) + "\n");
  }

  void stage(const IndexEntry* old, const IndexEntry* now) {
    bool same = old && now && old->id == now->id && old->mode == now->mode;
    bool intended = now && now->intent_to_add;
    // Of a conflict git commits nothing.
    if ((same && intended == old->intent_to_add) || (now && now->stage != 0) ||
        (!now && old->stage != 0))
      return;
    // Of an intention nothing either: what it was before goes.
    if (intended && !old && now->id == object_id(sides_.format(), "blob", ""))
      return;
    StagedEntry entry{now ? now->path : old->path, 0, {}};
    if (now && !(intended && old)) {
      entry.mode = now->mode;
      entry.id = hex({reinterpret_cast<const unsigned char*>(now->id.data()),
                      now->id.size()});
    }
    // One more than is compared: that it was too much is then said.
    if (staged_.size() <= kComparedEntries) staged_.push_back(std::move(entry));
  }

  void compare_with_files() {
    const GitSides::Refs& before = sides_.packed(Side::kBase);
    auto current = sides_.target(Side::kDraft, "HEAD").value_or("");
    if (current.starts_with("ref: ")) current.erase(0, 5);
    GitObjects objects(
        {view_, sides_.common(), sides_.format(),
         context_.real_root.empty()
             ? ""
             : context_.real_root + "/" + sides_.common().str()});
    ShownFiles files(
        {view_, context_.facts, sides_.work_tree(), sides_.format()});
    TipsInput input{
        .objects = objects, .files = files, .format = sides_.format()};
    for (const RefMove& move : git_.refs) {
      // Notes are read, never checked out; replacements are dangers anyway.
      if (!move.to || !is_git_id(*move.to) ||
          move.name.starts_with("refs/notes/") || is_replacement(move))
        continue;
      input.tips.push_back({move.name, *move.to, move.from,
                            move.name == "HEAD" || move.name == current});
    }
    for (const std::string& id : stashed_)
      input.tips.push_back({"refs/stash", id, std::nullopt, false});
    if (input.tips.empty() && staged_.empty()) return;
    input.base_head = sides_.head(Side::kBase);
    input.new_head = sides_.head(Side::kDraft);
    for (const auto& [name, id] : before) input.base_refs.push_back(id);
    add_real_refs(view_, sides_.common() / "refs", input.base_refs);
    input.staged = std::move(staged_);
    TipsReport report = compare_tips(input);
    git_.unreviewed = std::move(report.unreviewed);
    git_.unreviewed_count = report.unreviewed_count;
    git_.carried = std::move(report.carried);
    git_.untracked = std::move(report.untracked);
    git_.unread = std::move(report.unread);
    git_.commits = report.commits;
    git_.passing = std::move(report.passing);
    // An approval holds for what the files showed when it was given.
    if (git_.unreviewed_count > 0)
      meaning_.update("unreviewed " + hex(report.unreviewed_digest) + "\n");
  }

  Status find_refs() {
    if (names_.empty() && !sides_.packed_changed()) return {};
    const GitSides::Refs& before = sides_.packed(Side::kBase);
    const GitSides::Refs& after = sides_.packed(Side::kDraft);
    if (sides_.packed_changed())
      for (const GitSides::Refs* side : {&before, &after})
        for (const auto& [name, id] : *side) {
          const GitSides::Refs& other = side == &before ? after : before;
          auto it = other.find(name);
          if (it == other.end() || it->second != id) names_.insert(name);
        }
    for (const std::string& name : names_) {
      RefMove move{.name = name, .from = {}, .to = {}, .subjects = {}};
      move.from = sides_.target(Side::kBase, name);
      if (sides_.has_gone(name)) {
        // What an older packed-refs says is not where it was.
        auto at = sides_.logged(name);
        if (at || !move.from) move.from = at.value_or(std::string(kGone));
        // Packed on both sides, and moved on none.
        if (move.from == kGone && move.to &&
            sides_.packed_since(name) == move.to)
          continue;
      }
      move.to = sides_.target(Side::kDraft, name);
      if (move.from == move.to) continue;  // packed, or written the same
      // The name's length, too: it may have spaces and newlines in it.
      meaning_.update(fmt::format("ref {} {} {} {}\n", name.size(), name,
                                  move.from.value_or("-"),
                                  move.to.value_or("-")));
      // What we cannot read, git perhaps can.
      if (const Change* part = sides_.change(name);
          move.to == kUnreadableRef && part != nullptr)
        note(name, *part);
      git_.refs.push_back(std::move(move));
    }
    return {};
  }

  // HEAD and its branch, then what changes how all others are read: a list is
  // cut at its end.
  void put_first() {
    auto head = sides_.read(Side::kDraft, "HEAD", kRefFile);
    auto at = parse_ref(head.value_or(""));
    std::string branch = at && at->starts_with("ref: ") ? at->substr(5) : "";
    auto rank = [&](const RefMove& ref) {
      return ref.name == "HEAD"    ? 0
             : ref.name == branch  ? 1
             : is_replacement(ref) ? 2
                                   : 3;
    };
    std::ranges::stable_sort(git_.refs, {}, rank);
  }

  // First parents, newest first, as far as the commits are loose. Where the old
  // place is not met, those alone that the draft made: a new branch did not
  // gain all that was there before it. The first tells where it is.
  void find_subjects(RefMove& move) {
    std::string at = move.to.value_or("");
    std::set<std::string> seen;
    size_t made = 0;
    while (is_git_id(at) && at != move.from && seen.insert(at).second &&
           move.subjects.size() < kSubjects &&
           subjects_read_++ < kSubjectsRead) {
      std::string name = "objects/" + at.substr(0, 2) + "/" + at.substr(2);
      auto bytes = sides_.read(Side::kDraft, name, kCommitLimit);
      if (!bytes || bytes->empty()) break;
      auto commit = parse_loose_commit(*bytes);
      if (!commit) break;
      made += made == move.subjects.size() && sides_.is_new(name);
      move.subjects.push_back(commit->subject);
      at = commit->parents.empty() ? "" : commit->parents[0];
    }
    if (at != move.from && !move.subjects.empty())
      move.subjects.resize(std::max<size_t>(made, 1));
  }

  Result<Change> make_row() {
    Change row;
    row.path = directory_;
    row.content_changed = true;
    bool whole = appears_or_goes();
    for (const Change& part : parts_) {
      row.command = std::max(row.command, part.command);
      // The index drifts whenever somebody looks; refs are another matter.
      bool ref = part.path != directory_ && !is_directory(part) &&
                 (git_sort(sides_.relative(part)) == GitSort::kRef ||
                  git_sort(sides_.relative(part)) == GitSort::kPackedRefs);
      if (part.drift && ref && !row.drift) row.drift = part.drift;
      if (whole && part.path == directory_) {
        row.before = part.before;
        row.after = part.after;
      }
    }
    if (!whole) row.before = row.after = TRY(view_.draft_state(directory_));
    if (!row.before && !row.after)
      return fail(Code::kInternal, "'{}' is on neither side", directory_.str());
    row.kind = !row.before  ? Kind::kAdded
               : !row.after ? Kind::kDeleted
                            : Kind::kModified;
    row.risks = git_row_risks(row, git_, objects_);
    git_.meaning = meaning_.finish();
    git_.parts = std::move(parts_);
    row.git = std::make_shared<const GitChange>(std::move(git_));
    return row;
  }

  const FoldContext& context_;
  const fs::View& view_;
  RelPath directory_;
  std::vector<Change> parts_;  // until the row has them
  GitSides sides_;
  NewObjects objects_;
  GitChange git_;
  std::vector<StagedEntry> staged_;
  std::vector<std::string> stashed_;    // new ids of the stash's log
  std::vector<const Change*> removed_;  // objects and packs
  std::set<std::string> names_;         // of refs that may have moved
  size_t subjects_read_ = 0;
  Sha256 meaning_;
};

}  // namespace

Result<std::optional<Change>> fold_git(const FoldContext& context,
                                       GitParts git) {
  return Folder(context, std::move(git)).run();
}

}  // namespace stoplog::diff
