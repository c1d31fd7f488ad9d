// SPDX-License-Identifier: Apache-2.0
// build_change_set(): the steps, in order. Each is cheap but examine(), which
// reads contents and runs on all threads.
#include <algorithm>
#include <map>
#include <set>

#include "base/parallel.h"
#include "diff/canonical.h"
#include "diff/change_set.h"
#include "diff/examine.h"
#include "diff/git_fold.h"
#include "diff/git_named.h"
#include "diff/guess_moves.h"
#include "diff/normalize.h"
#include "diff/risk.h"
#include "diff/risk_attributes.h"
#include "diff/risk_links.h"
#include "diff/risk_moved.h"
#include "diff/risk_node.h"
#include "diff/risk_path.h"
#include "diff/select.h"
#include "fs/draft_view.h"
#include "snapshot/content_digest.h"

namespace stoplog::diff {
namespace {

// Nodes are not always changes: an agent can nest millions in one row.
constexpr uint64_t kReserved = 1 << 20;

bool is_dir(const std::optional<fs::NodeState>& state) {
  return state && state->type == fs::Type::kDir;
}

Change change_of(fs::RawChange raw) {
  Change change;
  change.path = std::move(raw.path);
  change.from = std::move(raw.from);
  change.before = std::move(raw.before);
  change.after = std::move(raw.after);
  change.command = raw.command;
  change.drift = std::move(raw.drift);
  change.follows = change.base_lost = raw.follows;
  change.detaches_links = raw.detaches_links;
  change.replaced = raw.replaced;
  change.too_deep = raw.too_deep;
  if (auto kind = kind_of(change)) change.kind = *kind;
  return change;
}

// Sorted by path. Only moves need all of them at once.
Result<std::vector<Change>> list_changes(const fs::View& view) {
  std::vector<Change> changes;
  // At half a kilobyte each, growing was a tenth of a review of 100,000.
  if (auto* draft = dynamic_cast<const fs::DraftView*>(&view))
    changes.reserve(std::min(draft->held_nodes(), kReserved));
  bool moved = false;
  TRY(view.each_change([&](fs::RawChange raw) -> Status {
    moved |= raw.from.has_value();
    if (!moved) changes.push_back(change_of(std::move(raw)));
    return {};
  }));
  if (!moved) {
    auto before = [](const Change& a, const Change& b) {
      return a.path < b.path;
    };
    if (!std::is_sorted(changes.begin(), changes.end(), before))
      std::sort(changes.begin(), changes.end(), before);
    return changes;
  }
  changes.clear();
  Merges merges;
  for (fs::RawChange& raw : TRY(normalize(view, TRY(view.changes()), &merges)))
    changes.push_back(change_of(std::move(raw)));
  for (Change& change : changes)
    if (auto at = merges.find(change.path); at != merges.end())
      change.merges = at->second;
  return changes;
}

// What moved along with a directory, and did nothing else, is told by the
// directory's row.
void fold_moved_along(std::vector<Change>& changes) {
  MovedDirectories moved;
  for (const Change& change : changes)
    if (change.is_moved_directory()) moved.add(change.path, *change.from);
  if (moved.empty()) return;
  std::erase_if(changes, [&](const Change& change) {
    return change.kind == Kind::kRenamed && !change.content_changed &&
           !change.mode_changed && change.too_deep == 0 &&
           moved.origin(change.path) == change.from;
  });
}

// Directories that come or go with what lies or lay in them are no rows, nor
// are those that only have another content; but what they bring besides must
// be seen.
void set_directories_aside(ChangeSet& set, const fs::View& view) {
  std::vector<RelPath> left;  // where things moved away from
  for (const Change& change : set.changes)
    if (change.from) left.push_back(*change.from);
  std::sort(left.begin(), left.end());
  auto emptied = [&](const RelPath& directory) {
    auto it = std::lower_bound(left.begin(), left.end(), directory);
    return it != left.end() && it->is_within(directory);
  };
  // In place: a change is half a kilobyte, and there may be a million.
  const Change* end = set.changes.data() + set.changes.size();
  std::erase_if(set.changes, [&](Change& change) {
    bool comes = change.kind == Kind::kAdded && is_dir(change.after);
    bool goes = change.kind == Kind::kDeleted && is_dir(change.before);
    bool alike = change.merges && !change.mode_changed;
    if ((!comes && !goes && !alike) || change.git != nullptr ||
        change.too_deep != 0)
      return false;
    const Change* next = &change + 1;  // not moved yet
    bool told = next != end && next->path.is_within(change.path);
    if (!told && !alike && !(goes && emptied(change.path))) return false;
    if (comes && (brings_attributes(change, view) || is_locked(*change.after)))
      return false;
    set.directories.push_back(std::move(change));
    return true;
  });
}

uint64_t group_of(const Change& change) {
  return change.after ? change.after->link_group : 0;
}

// A name of a file with several that is the base's still.
bool is_kept_link(const Change& change) {
  return group_of(change) != 0 && change.before && !change.replaced &&
         !change.drift;
}

void name_links(ChangeSet& set) {
  std::map<uint64_t, const RelPath*> first;
  std::set<const RelPath*> used;
  for (const Change& change : set.unchanged)
    first.emplace(group_of(change), &change.path);
  for (Change& change : set.changes) {
    if (group_of(change) == 0) continue;
    auto [it, fresh] = first.emplace(group_of(change), &change.path);
    if (fresh) continue;
    change.link_to = *it->second;
    used.insert(it->second);
  }
  std::erase_if(set.unchanged, [&](const Change& change) {
    return !used.contains(&change.path);
  });
}

void make_groups(ChangeSet& set, GitFacts& facts) {
  std::map<std::string, Group> groups;
  for (const Change& change : set.changes) {
    if (!change.ignored || is_dir(change.after ? change.after : change.before))
      continue;
    Group& group = groups[facts.group_of(change.path)];
    group.files++;
    group.deleted += change.is_deletion();
    if (change.after) group.bytes += change.after->size;
  }
  for (auto& [path, group] : groups) {
    group.path = path;
    group.reason = "ignored";
    set.groups.push_back(std::move(group));
  }
}

// Of what the draft has written to, some ranges may be lost and others not.
Status read_through(const fs::NodeState& state) {
  std::vector<std::byte> block(std::min<uint64_t>(state.size, 1u << 20));
  for (const auto& [offset, length] : state.content->data())
    for (uint64_t at = offset; at < offset + length;) {
      size_t most = std::min<uint64_t>(block.size(), offset + length - at);
      size_t n = TRY(state.content->read(at, std::span(block).first(most)));
      if (n == 0) break;
      at += n;
    }
  return {};
}

// Its content was the real tree's, and is there no more.
bool is_lost(Change& change, std::optional<fs::NodeState>& state) {
  if (!state || !state->content) return false;
  Status read = read_through(*state);
  if (read || read.error().code() != Code::kDrift) return false;
  if (!change.drift) change.drift = read.error().text();
  state->content = snapshot::memory_content({});
  state->size = 0;
  return true;
}

// The base was neither kept by the draft nor left alone in the real tree: what
// the draft has is shown as new, and as drifted, which no commit passes. What
// the draft has not written to itself has no content without its base.
bool lost_its_base(Change& change) {
  bool before = is_lost(change, change.before);
  change.base_lost = change.base_lost || before;
  change.is_lost = change.is_lost || is_lost(change, change.after);
  return change.is_lost || before;
}

// Perhaps the user's own file that he may not read.
bool may_be_shut(const std::optional<fs::NodeState>& state) {
  return state && state->content && (state->mode & 0400) == 0;
}

// In order and by one thread: the answers of a directory serve its files, and
// threads would only wait for each other.
void find_ignored(std::vector<Change>& changes, GitFacts& facts) {
  for (Change& change : changes) {
    bool directory = is_dir(change.after ? change.after : change.before);
    change.ignored =
        !is_inside_git(change) && facts.is_ignored(change.path, directory);
  }
}

// What can be told before contents are read.
ChangeSet suppose_all(std::vector<Change> changes,
                      const ExamineContext& context) {
  ChangeSet set;
  set.changes = std::move(changes);
  for (Change& change : set.changes) suppose(change, context);
  std::erase_if(set.changes,
                [](const Change& change) { return !kind_of(change); });
  set_directories_aside(set, context.view);
  return set;
}

Status look_at(Change& change, const ExamineContext& context) {
  // A patch alone reads the base only when it is written.
  if (change.drift || may_be_shut(change.before)) (void)lost_its_base(change);
  auto examined = examine(change, context);
  if (!examined && lost_its_base(change)) examined = examine(change, context);
  TRY_CTX(std::move(examined),
          fmt::format("cannot compare '{}'", change.path.str()));
  return {};
}

// One change for itself. `known`: told by the journal alone.
Result<std::optional<Change>> look_alone(const Change& supposed, bool known,
                                         const ExamineContext& context) {
  ChangeSet one;
  // What is not told cannot be looked at by itself.
  if (supposed.too_deep != 0)
    return fail(Code::kUnsupported, "too deep to be looked at by itself");
  one.changes.push_back(supposed);
  Change& change = one.changes.front();
  if (known) {
    change = change_of(TRY(context.view.look_at(supposed.path)));
    change.ignored = supposed.ignored;
  }
  TRY(look_at(change, context));
  auto kind = kind_of(change);
  if (!kind) return std::nullopt;
  change.kind = *kind;
  raise_levels(one, context.options.rules);
  return std::move(change);
}

// Who asks for single changes may do so for longer than the set is built.
void tell_early(const fs::View& view, const DiffOptions& options,
                const std::shared_ptr<GitFacts>& facts,
                std::vector<Change> changes, bool known) {
  auto kept = std::make_shared<DiffOptions>(options);
  kept->early = {};
  kept->progress = {};
  kept->stop = nullptr;
  options.early({.set = suppose_all(std::move(changes), {view, *kept, *facts}),
                 .look = [&view, kept, facts, known](const Change& change) {
                   return look_alone(change, known, {view, *kept, *facts});
                 }});
}

// From the journal alone; false where that cannot be. An error comes again.
bool tell_known(const fs::View& view, const DiffOptions& options,
                const std::shared_ptr<GitFacts>& facts) {
  std::vector<Change> changes;
  auto told = view.each_known([&](fs::RawChange raw) -> Status {
    changes.push_back(change_of(std::move(raw)));
    return {};
  });
  if (!told || !*told) return false;
  (void)take_git_parts(view, changes);
  find_ignored(changes, *facts);
  tell_early(view, options, facts, std::move(changes), true);
  return true;
}

// Looks at each, and drops what turns out to be no change.
Status examine_all(std::vector<Change>& changes, const ExamineContext& context,
                   std::vector<Change>* unchanged) {
  auto look = [&](size_t i) -> Status {
    Change& change = changes[i];
    if (context.options.stop != nullptr && *context.options.stop)
      return fail_errno(EINTR);
    return look_at(change, context);
  };
  std::function<void(size_t)> tell;
  if (context.options.progress)
    tell = [&](size_t begun) {
      context.options.progress(begun, changes.size());
    };
  TRY(parallel_for(changes.size(), context.options.threads, look, tell));
  std::erase_if(changes, [&](Change& change) {
    auto kind = kind_of(change);
    if (kind) change.kind = *kind;
    if (!kind && unchanged != nullptr && is_kept_link(change))
      unchanged->push_back(std::move(change));
    return !kind;
  });
  return {};
}

// Content that git stores is neither text nor a risk of its own.
Status fold_git_directories(const fs::View& view, const DiffOptions& options,
                            GitFacts& facts, std::vector<GitParts> all,
                            std::vector<Change>& changes) {
  DiffOptions plain = options;
  plain.risks = false;
  plain.count_lines = false;
  if (all.empty()) return {};
  const FoldContext context{.view = view,
                            .real_root = options.real_root,
                            .facts = options.include_ignored ? nullptr : &facts,
                            .compare = options.risks || options.digest};
  for (GitParts& git : all) {
    TRY(examine_all(git.parts, {view, plain, facts}, nullptr));
    std::optional<Change> row = TRY(fold_git(context, std::move(git)));
    if (!row) continue;
    if (options.risks) assess_policy(*row, options.rules);
    changes.push_back(std::move(*row));
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.path < b.path; });
  return {};
}

}  // namespace

Result<ChangeSet> build_change_set(const fs::View& view,
                                   const DiffOptions& given) {
  ChangeSet set;
  DiffOptions options = given;
  if (options.risks || options.digest) {
    std::ranges::move(rules_of_git_config(view, options.real_root),
                      std::back_inserter(options.rules));
    std::ranges::move(rules_of_links(options.real_root),
                      std::back_inserter(options.rules));
    std::ranges::move(rules_of_path(view, options.real_root),
                      std::back_inserter(options.rules));
  }
  auto known = std::make_shared<GitFacts>(options.real_root);
  GitFacts& facts = *known;
  bool told = options.early && tell_known(view, options, known);
  set.changes = TRY(list_changes(view));
  std::vector<GitParts> git = take_git_parts(view, set.changes);
  find_ignored(set.changes, facts);
  if (options.early && !told)
    tell_early(view, options, known, set.changes, false);
  SearchBudget search;
  TRY(examine_all(set.changes, {view, options, facts, &search},
                  &set.unchanged));
  TRY(fold_git_directories(view, options, facts, std::move(git), set.changes));
  TRY(guess_moves(set.changes));
  fold_moved_along(set.changes);
  set_directories_aside(set, view);
  name_links(set);
  if (options.risks) assess_set(set, view);
  if (options.risks || options.digest) TRY(assess_moved(set, view, options));
  if (options.risks || options.digest) raise_levels(set, options.rules);
  make_groups(set, facts);
  if (options.digest) set.digest = set_digest(set, options.include_ignored);
  return set;
}

}  // namespace stoplog::diff
