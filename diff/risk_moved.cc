// SPDX-License-Identifier: Apache-2.0
#include "diff/risk_moved.h"

#include <algorithm>
#include <map>

#include "base/glob.h"
#include "diff/link_target.h"
#include "diff/risk_names.h"
#include "diff/risk_package.h"

namespace stoplog::diff {
namespace {

constexpr std::string_view kPackage =
    "a package that was installed: npm runs more of its scripts from here";

class MovedRisks {
 public:
  MovedRisks(const fs::View& view, const DiffOptions& options, Change& row)
      : view_(view),
        options_(options),
        row_(row),
        names_(match_beneath(row.path)) {
    for (const PolicyRule& rule : options.rules)
      if (auto glob = Glob::parse(rule.glob); glob && !rule.glob.empty())
        globs_.emplace_back(std::move(*glob), &rule);
  }

  Status run(const ChangeSet& set) {
    // Nearer to the top, as many ".." lead out; further down they do not.
    links_ = row_.path.components().size() < row_.from->components().size();
    packages_ = is_installed_package(row_.from->str() + "/x/package.json") &&
                !is_installed_package(row_.path.str() + "/x/package.json");
    if (names_.empty() && globs_.empty() && !links_ && !packages_) return {};
    auto done = for_each_moved(view_, set, row_, [&](const Moved& moved) {
      return ++looked_ > kMovedLooked ? Status(fail_errno(EFBIG)) : look(moved);
    });
    if (!done && looked_ <= kMovedLooked) return done;
    if (!done) say_all();
    tell();
    return {};
  }

 private:
  struct Found {
    Risk risk;
    std::string first;
    size_t count = 0;
  };

  void note(std::string_view key, Level level, std::string_view code,
            std::string_view message, const RelPath& path) {
    Found& found = found_[std::string(key)];
    if (found.count++ > 0) return;
    found.risk = {level, std::string(code), std::string(message)};
    found.first = path.str();
  }

  Status look(const Moved& moved) {
    if (!names_.empty())
      for (const NameRule* rule : match_names(moved.path))
        if (std::ranges::find(names_, rule) != names_.end())
          note(rule->code, rule->level, rule->code, rule->message, moved.path);
    for (const auto& [glob, rule] : globs_)
      if (glob.covers(moved.path.str()) || glob.covers(moved.from.str()))
        note("policy " + rule->glob, rule->level, rule->code,
             rule->message.empty()
                 ? fmt::format("your policy names '{}'", rule->glob)
                 : rule->message,
             moved.path);
    if (packages_ && is_installed_package(moved.from.str()) &&
        !is_installed_package(moved.path.str()))
      note("package", Level::kDanger, "package-hook", kPackage, moved.path);
    if (links_ && moved.state.type == fs::Type::kSymlink &&
        leaves_workspace(view_, moved.path, moved.state.target,
                         options_.real_root) &&
        !leaves_workspace(view_, moved.from, moved.state.target,
                          options_.real_root))
      note("link", Level::kDanger, "symlink-outside",
           "a symlink that leads out of the workspace from here", moved.path);
    return {};
  }

  // Too much to look at: what could be there is said instead.
  void say_all() {
    auto unseen = [&](Level level, std::string_view code,
                      std::string_view message) {
      if (!found_.contains(std::string(code)))
        row_.risks.push_back(
            {level, std::string(code),
             fmt::format("too many files to look at each: {}", message)});
    };
    for (const NameRule* rule : names_)
      unseen(rule->level, rule->code, rule->message);
    for (const auto& [glob, rule] : globs_)
      if (!found_.contains("policy " + rule->glob))
        unseen(rule->level, rule->code,
               fmt::format("your policy's '{}' may be among them", rule->glob));
    if (packages_ && !found_.contains("package"))
      unseen(Level::kDanger, "package-hook", kPackage);
    if (links_ && !found_.contains("link"))
      unseen(Level::kDanger, "symlink-outside",
             "links among them may lead out of the workspace");
  }

  void tell() {
    for (auto& [key, found] : found_) {
      found.risk.message += fmt::format(
          ": {}{}", found.first,
          found.count > 1 ? fmt::format(" and {} more", found.count - 1) : "");
      row_.risks.push_back(std::move(found.risk));
    }
    std::ranges::stable_sort(row_.risks, std::ranges::greater(), &Risk::level);
  }

  const fs::View& view_;
  const DiffOptions& options_;
  Change& row_;
  std::vector<const NameRule*> names_;
  std::vector<std::pair<Glob, const PolicyRule*>> globs_;
  bool links_ = false;
  bool packages_ = false;  // they leave node_modules
  size_t looked_ = 0;
  std::map<std::string, Found> found_;
};

}  // namespace

Status assess_moved(ChangeSet& set, const fs::View& view,
                    const DiffOptions& options) {
  for (Change& change : set.changes)
    // Whether an ignored row is in the digest is for its risks to say.
    if (change.is_moved_directory() && (options.risks || change.ignored))
      TRY(MovedRisks(view, options, change).run(set));
  return {};
}

}  // namespace stoplog::diff
