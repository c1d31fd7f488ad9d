// SPDX-License-Identifier: Apache-2.0
#include "diff/git_tips.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <unordered_map>

#include "diff/content_hash.h"
#include "diff/git_trees.h"
#include "snapshot/content_digest.h"

namespace stoplog::diff {
namespace {

constexpr size_t kKept = 100;              // unreviewed files
constexpr uint64_t kContent = 1ull << 20;  // of one of them
constexpr uint64_t kContents = 8ull << 20;
constexpr size_t kPath = 4096;  // longer ones nobody can open
constexpr long kDepth = 500;    // directories in each other
constexpr size_t kCommits = 10'000;
constexpr size_t kBetween = 200;  // commits whose names are looked at
constexpr size_t kBases = 8;
constexpr size_t kPassing = 20;
constexpr size_t kUntracked = 20;
constexpr size_t kRealRefs = 10'000;
constexpr size_t kRefPath = 1024;

// What a tree is compared with at one place. The first says, too, what was
// there and is gone.
struct Bases {
  std::string first;  // empty: nothing was there
  std::vector<std::string> others;
  bool has(const std::string& id) const {
    return first == id || std::ranges::find(others, id) != others.end();
  }
};

using ByName = std::unordered_map<std::string_view, const TreeEntry*>;

ByName by_name(const GitTrees::Entries& entries) {
  ByName out;
  if (entries)
    for (const TreeEntry& entry : *entries) out[entry.name] = &entry;
  return out;
}

std::string short_ref(const std::string& ref) {
  return ref.starts_with("refs/heads/") ? ref.substr(11) : ref;
}

std::string why(const Error& error) {
  return error.err() == EFBIG ? "too much to compare" : error.text();
}

class Comparison {
 public:
  explicit Comparison(const TipsInput& input)
      : input_(input),
        files_(input.files),
        trees_(input.objects, input.format) {
    for (const GitTip& tip : input_.tips)
      if (tip.from && is_git_id(*tip.from)) refs_.push_back(*tip.from);
    if (input_.base_head) refs_.push_back(*input_.base_head);
    refs_.insert(refs_.end(), input_.base_refs.begin(), input_.base_refs.end());
  }

  TipsReport run() {
    where_ = "HEAD";
    if (auto tree = tree_of(input_.base_head))
      base_tree_ = std::move(*tree);
    else
      note_unread(tree.error());
    for (const GitTip& tip : input_.tips) {
      where_ = short_ref(tip.ref);
      if (Status done = compare(tip); !done) note_unread(done.error());
    }
    where_ = "index";
    if (Status done = compare_staged(); !done) note_unread(done.error());
    if (files_.is_spent())
      report_.unread.push_back("the files are too large to compare them all");
    report_.unreviewed_digest = digest_.finish();
    std::ranges::sort(report_.carried);
    auto twice = std::ranges::unique(report_.carried);
    report_.carried.erase(twice.begin(), twice.end());
    return std::move(report_);
  }

 private:
  bool take_entry(const std::string& path) {
    if (entries_left_ == 0 || path.size() > kPath ||
        std::ranges::count(path, '/') > kDepth)
      return false;
    entries_left_--;
    return true;
  }

  // Paths themselves would be gigabytes.
  static Hash128 key(const std::string& prefix, const std::string& tree) {
    std::string text = prefix + '\0' + tree;
    return xxh3(std::as_bytes(std::span(text)));
  }

  void note_unread(const Error& error) {
    report_.unread.push_back(where_ + ": " + why(error));
  }

  // Of a commit or a tag of one; empty when there is none. Any other failure is
  // none of absence: what is compared with nothing would pass for new.
  Result<std::string> tree_of(const std::optional<std::string>& id) {
    if (!id || !is_git_id(*id)) return std::string();
    auto at = trees_.peel(*id);
    if (!at && at.error().err() == ENOENT) return std::string();
    if (!at) return std::unexpected(std::move(at.error()));
    if (at->type != "commit") return std::string();
    return TRY(trees_.commit(at->id)).tree;
  }

  Result<GitTrees::Entries> entries_of(const std::string& tree) {
    if (tree.empty()) return GitTrees::Entries();
    return trees_.tree(tree);
  }

  Status compare(const GitTip& tip) {
    if (!seen_.insert(tip.id).second) return {};
    GitTrees::Peeled at = TRY(trees_.peel(tip.id));
    if (at.type == "blob") return add("", nullptr, at.id, 0100644);
    if (at.type == "tree") return walk(at.id, {base_tree_, {}}, "");
    if (at.id != tip.id && !seen_.insert(at.id).second) return {};
    if (trees_.is_reached(refs_, at.id)) return {};
    Commit commit = TRY(trees_.commit(at.id));
    std::vector<std::string> known;
    std::vector<Commit> between;
    TRY(look_back(at.id, known, between));
    Bases bases = TRY(bases_of(tip, known));
    TRY(find_passing(commit.tree, bases.first, between));
    return walk(commit.tree, bases, "");
  }

  // New commits behind a tip, and those of the real repository they stand on.
  Status look_back(const std::string& tip, std::vector<std::string>& known,
                   std::vector<Commit>& between) {
    std::vector<std::string> queue{tip};
    std::set<std::string> met{tip};
    for (size_t i = 0; i < queue.size(); i++) {
      if (i > 0 && input_.objects.is_real(queue[i])) {
        known.push_back(queue[i]);
        continue;
      }
      auto commit = trees_.commit(queue[i]);
      // What is missing can be pushed to nobody: a shallow history ends so.
      if (!commit && commit.error().err() == ENOENT) continue;
      if (!commit) return std::unexpected(std::move(commit.error()));
      if (counted_.insert(queue[i]).second) report_.commits++;
      for (const std::string& parent : commit->parents)
        if (met.insert(parent).second) queue.push_back(parent);
      if (i > 0) between.push_back(std::move(*commit));
      if (queue.size() > kCommits) return fail_errno(EFBIG);
    }
    return {};
  }

  // The branch that the work tree stands on has nothing but where it was: what
  // else its commit has, the files show. Another one may stand on any commit
  // that is the user's own.
  Result<Bases> bases_of(const GitTip& tip,
                         const std::vector<std::string>& known) {
    Bases bases;
    std::vector<std::string> trees;
    auto take = [&](const std::optional<std::string>& id) -> Status {
      std::string tree = TRY(tree_of(id));
      if (!tree.empty()) trees.push_back(std::move(tree));
      return {};
    };
    TRY(take(tip.from));
    if (!tip.current)
      for (size_t i = 0; i < known.size() && i < kBases; i++)
        if (trees_.is_reached(refs_, known[i])) TRY(take(known[i]));
    if (!base_tree_.empty()) trees.push_back(base_tree_);
    if (trees.empty()) return bases;
    bases.first = trees[0];
    bases.others.assign(trees.begin() + 1, trees.end());
    return bases;
  }

  Status walk(const std::string& tree, const Bases& bases,
              const std::string& prefix) {
    if (bases.has(tree) || !walked_.insert(key(prefix, tree)).second) return {};
    GitTrees::Entries entries = TRY(trees_.tree(tree));
    std::vector<GitTrees::Entries> kept;  // the maps point into them
    std::vector<ByName> before;
    auto add_base = [&](const std::string& id) -> Status {
      kept.push_back(TRY(entries_of(id)));
      before.push_back(by_name(kept.back()));
      return {};
    };
    TRY(add_base(bases.first));
    for (const std::string& other : bases.others) TRY(add_base(other));
    for (const TreeEntry& entry : *entries) {
      if (!take_entry(prefix)) return fail_errno(EFBIG);
      TRY(compare_entry(entry, before, prefix));
    }
    ByName now = by_name(entries);
    for (const auto& [name, base] : before[0]) {
      auto it = now.find(name);
      if (it == now.end() || it->second->is_tree() != base->is_tree())
        TRY(compare_gone(*base, prefix + base->name));
    }
    return {};
  }

  Status compare_entry(const TreeEntry& entry,
                       const std::vector<ByName>& before,
                       const std::string& prefix) {
    Bases beneath;
    bool known = false;
    for (size_t i = 0; i < before.size(); i++) {
      auto it = before[i].find(entry.name);
      if (it == before[i].end()) continue;
      known = true;
      if (*it->second == entry) return {};
      if (!it->second->is_tree()) continue;
      if (i == 0)
        beneath.first = it->second->id;
      else
        beneath.others.push_back(it->second->id);
    }
    std::string path = prefix + entry.name;
    if (entry.is_tree()) return walk(entry.id, beneath, path + "/");
    if (!files_.shows(path, entry.mode, entry.id))
      return add(path, nullptr, entry.id, entry.mode);
    carry(path, known ? "" : entry.id);
    return {};
  }

  // As the draft shows it. What git had not (`fresh` is its id) and the real
  // tree has is the user's own, and is no change that anybody sees.
  void carry(const std::string& path, const std::string& fresh) {
    report_.carried.push_back(files_.full(path));
    if (!fresh.empty() && report_.untracked.size() < kUntracked &&
        files_.is_real(path, fresh) && untracked_.insert(path).second)
      report_.untracked.push_back(files_.full(path));
  }

  // In the tree no longer, and still there for the eye.
  Status compare_gone(const TreeEntry& base, const std::string& path) {
    if (!take_entry(path)) return fail_errno(EFBIG);
    auto there = files_.state(path);
    if (!there) {
      report_.carried.push_back(files_.full(path));
      return {};
    }
    bool directory = there->type == fs::Type::kDir;
    if (!base.is_tree()) {
      if (directory && base.mode != 0160000) return {};
      return add(path, &*there, "", 0);
    }
    if (!directory) return {};
    GitTrees::Entries entries = TRY(trees_.tree(base.id));
    for (const TreeEntry& entry : *entries)
      TRY(compare_gone(entry, path + "/" + entry.name));
    return {};
  }

  Status compare_staged() {
    if (input_.staged.empty()) return {};
    std::string head = TRY(tree_of(input_.new_head));
    auto at = [&](const std::string& tree,
                  const std::string& path) -> Result<std::optional<TreeEntry>> {
      if (tree.empty()) return std::nullopt;
      return trees_.find(tree, path);
    };
    for (const StagedEntry& staged : input_.staged) {
      if (!take_entry(staged.path)) return fail_errno(EFBIG);
      if (staged.id.empty()) {
        auto there = files_.state(staged.path);
        if (!there) report_.carried.push_back(files_.full(staged.path));
        if (there && there->type != fs::Type::kDir &&
            TRY(at(head, staged.path)))
          TRY(add(staged.path, &*there, "", 0));
        continue;
      }
      if (files_.shows(staged.path, staged.mode, staged.id)) {
        bool known = TRY(at(base_tree_, staged.path)).has_value();
        carry(staged.path, known ? "" : staged.id);
        continue;
      }
      auto is = [&](const std::optional<TreeEntry>& entry) {
        return entry && entry->id == staged.id && entry->mode == staged.mode;
      };
      if (is(TRY(at(head, staged.path))) ||
          is(TRY(at(base_tree_, staged.path))))
        continue;
      TRY(add(staged.path, nullptr, staged.id, staged.mode));
    }
    return {};
  }

  // `there`: what the work tree has, when that is known. Without an id it is a
  // deletion.
  Status add(const std::string& path, const fs::NodeState* there,
             const std::string& id, uint32_t mode) {
    report_.unreviewed_count++;
    digest_.update(fmt::format("{} {} {:o} {}\n", path.size(), path, mode, id));
    if (report_.unreviewed.size() >= kKept) return {};
    UnreviewedFile file{
        path.empty() ? "a file without a name" : files_.full(path), where_,
        std::nullopt, std::nullopt};
    file.shown = there != nullptr ? *there : files_.state(path);
    if (!id.empty()) file.stored = stored(id, mode);
    report_.unreviewed.push_back(std::move(file));
    return {};
  }

  fs::NodeState stored(const std::string& id, uint32_t mode) {
    fs::NodeState out;
    out.type = mode == 0120000   ? fs::Type::kSymlink
               : mode == 0160000 ? fs::Type::kDir
                                 : fs::Type::kFile;
    out.mode = mode & 0777;
    if (out.type == fs::Type::kDir) return out;
    auto blob = trees_.blob(id, std::min(kContent, contents_left_));
    if (!blob) return out;
    contents_left_ -= std::min<uint64_t>(blob->size(), contents_left_);
    out.size = blob->size();
    if (out.type == fs::Type::kSymlink)
      out.target = std::move(*blob);
    else
      out.content = snapshot::memory_content(std::move(*blob));
    return out;
  }

  // Names that came and went: a secret that was committed and removed again is
  // pushed all the same.
  Status find_passing(const std::string& tip, const std::string& base,
                      const std::vector<Commit>& between) {
    for (size_t i = 0; i < between.size() && i < kBetween; i++)
      TRY(find_names(between[i].tree, tip, base, ""));
    if (between.size() > kBetween)
      report_.passing.push_back("(older commits were not looked at)");
    return {};
  }

  // Names of `tree` that neither of the two others has.
  Status find_names(const std::string& tree, const std::string& tip,
                    const std::string& base, const std::string& prefix) {
    if (tree == tip || tree == base || report_.passing.size() >= kPassing ||
        !named_.insert(key(prefix, tree)).second)
      return {};
    GitTrees::Entries entries = TRY(trees_.tree(tree));
    GitTrees::Entries tip_entries = TRY(entries_of(tip)),
                      base_entries = TRY(entries_of(base));
    ByName in_tip = by_name(tip_entries), in_base = by_name(base_entries);
    for (const TreeEntry& entry : *entries) {
      if (!take_entry(prefix)) return fail_errno(EFBIG);
      auto a = in_tip.find(entry.name), b = in_base.find(entry.name);
      std::string path = prefix + entry.name;
      auto tree_in = [&](const ByName& map, ByName::const_iterator it) {
        return it != map.end() && it->second->is_tree() ? it->second->id : "";
      };
      if (entry.is_tree())
        TRY(find_names(entry.id, tree_in(in_tip, a), tree_in(in_base, b),
                       path + "/"));
      else if (a == in_tip.end() && b == in_base.end() &&
               report_.passing.size() < kPassing &&
               passing_.insert(path).second)
        report_.passing.push_back(files_.full(path));
    }
    return {};
  }

  const TipsInput& input_;
  ShownFiles& files_;
  GitTrees trees_;
  TipsReport report_;
  std::string where_, base_tree_;
  std::vector<std::string> refs_;
  std::set<std::string> seen_, counted_, passing_, untracked_;
  std::set<Hash128> walked_, named_;
  size_t entries_left_ = kComparedEntries;
  uint64_t contents_left_ = kContents;
  Sha256 digest_;
};

}  // namespace

void add_real_refs(const fs::View& view, const RelPath& directory,
                   std::vector<std::string>& out) {
  auto entries = view.real_list(directory);
  if (!entries || directory.str().size() > kRefPath) return;
  for (const fs::DirEntry& entry : *entries) {
    if (out.size() >= kRealRefs || !is_valid_name(entry.name)) return;
    RelPath path = directory / entry.name;
    if (entry.type == fs::Type::kDir) add_real_refs(view, path, out);
    if (entry.type != fs::Type::kFile) continue;
    auto state = view.real_state(path);
    if (!state || !*state || !(*state)->content) continue;
    auto id =
        parse_ref(read_content(*(*state)->content, kRefFile).value_or(""));
    if (id && is_git_id(*id)) out.push_back(*id);
  }
}

TipsReport compare_tips(const TipsInput& input) {
  return Comparison(input).run();
}

}  // namespace stoplog::diff
