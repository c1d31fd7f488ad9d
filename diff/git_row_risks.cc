// SPDX-License-Identifier: Apache-2.0
#include "diff/git_row_risks.h"

#include <algorithm>

#include "diff/paint.h"

namespace stoplog::diff {
namespace {

constexpr size_t kNamed = 5;

// The first few by name, and how many there are besides.
std::string some_of(const std::vector<std::string>& names, uint64_t count) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < kNamed; i++)
    out += (i > 0 ? ", " : "") + names[i].substr(0, 200);
  if (count > std::min(names.size(), kNamed))
    out += fmt::format(" and {} more", count - std::min(names.size(), kNamed));
  return out;
}
std::string some_of(const std::vector<std::string>& names) {
  return some_of(names, names.size());
}

// The rest of a rebase ("exec rm …" is a line of its list) or of a sequence of
// picks; remotes as git knew them before it had a configuration; resolutions
// that the next merge takes unasked.
bool is_obeyed(const RelPath& path) {
  constexpr std::string_view kDirectories[] = {"rebase-merge", "rebase-apply",
                                               "sequencer",    "remotes",
                                               "branches",     "rr-cache"};
  std::string_view text = path.str();
  for (std::string_view name : kDirectories) {
    size_t at = text.rfind(name);
    if (at != text.npos && at > 0 && text[at - 1] == '/' &&
        at + name.size() < text.size() && text[at + name.size()] == '/' &&
        text.substr(0, at).find("refs/") == text.npos)
      return true;
  }
  return false;
}

class Risks {
 public:
  Risks(const Change& row, const GitChange& git, const NewObjects& objects)
      : row_(row), git_(git), objects_(objects) {}

  std::vector<Risk> run() {
    add_refs();
    add_objects();
    add_contents();
    add_state();
    std::stable_sort(
        out_.begin(), out_.end(),
        [](const Risk& a, const Risk& b) { return a.level > b.level; });
    return std::move(out_);
  }

 private:
  void add(Level level, std::string code, std::string message) {
    out_.push_back({level, std::move(code), std::move(message)});
  }

  void add_refs() {
    if (row_.kind == Kind::kDeleted)
      add(Level::kDanger, "git-deleted",
          "deletes the repository with all of its history");
    std::vector<std::string> replaced;
    for (const RefMove& ref : git_.refs)
      if (is_replacement(ref)) replaced.push_back(ref.name);
    if (!replaced.empty())
      add(Level::kDanger, "git-replace",
          "git shows other objects than the history has: " + some_of(replaced));
    for (const RefMove& ref : git_.refs)
      if (!ref.to && row_.after)
        add(Level::kWarn, "git-ref-deleted", "deletes " + ref.name);
  }

  void add_objects() {
    if (row_.kind != Kind::kDeleted &&
        git_.objects_removed + git_.packs_removed > 0)
      add(Level::kWarn, "git-objects",
          "removes objects; a commit leaves them in the real repository");
    if (!objects_.forged().empty())
      add(Level::kDanger, "git-object",
          "not the object that its name says: " + some_of(objects_.forged()));
    if (!objects_.unknown().empty())
      add(Level::kDanger, "git-unverified",
          "too large to check that it is what its name says: " +
              some_of(objects_.unknown()));
  }

  // What takes effect with the next push, checkout or commit.
  void add_contents() {
    if (git_.index_hidden > 0)
      add(Level::kDanger, "git-hidden",
          "git will not look whether these files change (assume-unchanged, "
          "skip-worktree): " +
              some_of({git_.first_hidden}, git_.index_hidden));
    if (git_.unreviewed_count > 0) {
      std::vector<std::string> names;
      for (const UnreviewedFile& file : git_.unreviewed)
        names.push_back(fmt::format("{} ({}{})", file.path, file.where,
                                    file.stored ? "" : ", deleted"));
      add(Level::kDanger, "git-unreviewed",
          fmt::format("commits or index have content that no file under review "
                      "shows: {}; `stoplog diff {}` prints it",
                      some_of(names, git_.unreviewed_count),
                      row_.path.str() + "/"));
    }
    if (!git_.unread.empty())
      add(Level::kDanger, "git-unread",
          "cannot be compared with the files under review: " +
              some_of(git_.unread));
    if (!git_.untracked.empty())
      add(Level::kWarn, "git-untracked",
          "commits or index have files of yours that git did not have: " +
              some_of(git_.untracked));
    if (!git_.passing.empty())
      add(Level::kWarn, "git-history",
          fmt::format("{} new, and some have what the last one has not: {}",
                      plural(git_.commits, "commit is", "commits are"),
                      some_of(git_.passing)));
  }

  void add_state() {
    std::vector<std::string> run, others;
    for (const RelPath& other : git_.others)
      (is_obeyed(other) ? run : others).push_back(other.str());
    if (!run.empty())
      add(Level::kDanger, "git-state",
          "git goes on with it, runs commands that it names, or fetches and "
          "pushes where it says: " +
              some_of(run));
    if (!others.empty())
      add(Level::kWarn, "git-state",
          "leaves something for git to go on with: " + some_of(others));
    if (!git_.unreadable.empty())
      add(Level::kDanger, "git-unreadable",
          "git may read there what was not compared: " +
              some_of(git_.unreadable));
  }

  const Change& row_;
  const GitChange& git_;
  const NewObjects& objects_;
  std::vector<Risk> out_;
};

}  // namespace

bool is_replacement(const RefMove& ref) {
  return ref.name.starts_with("refs/replace/") && ref.to;
}

std::vector<Risk> git_row_risks(const Change& row, const GitChange& git,
                                const NewObjects& objects) {
  return Risks(row, git, objects).run();
}

}  // namespace stoplog::diff
