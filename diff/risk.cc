// SPDX-License-Identifier: Apache-2.0
#include "diff/risk.h"

#include <algorithm>
#include <map>

#include "base/glob.h"
#include "base/strings.h"
#include "base/units.h"
#include "diff/git_config.h"
#include "diff/git_meta.h"
#include "diff/risk_attributes.h"
#include "diff/risk_names.h"
#include "diff/risk_node.h"
#include "diff/risk_package.h"
#include "diff/risk_spelling.h"
#include "diff/risk_text.h"
#include "diff/select.h"

namespace stoplog::diff {
namespace {

bool is_only_comments(std::string_view text) {
  // Line by line: a list of them would be sixteen times the text.
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trim(text.substr(0, end));
    if (!line.empty() && line[0] != '#') return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

// A directory that git takes for a repository when somebody enters it, though
// it is not called ".git". git follows links here, and commondir to objects and
// refs elsewhere. Where there is a ".git" beside it, that one is taken.
bool is_bare_repository(const fs::View& view, const RelPath& directory) {
  if (is_inside_git(directory / "x")) return false;
  auto is = [&](const char* name, std::optional<fs::Type> type) {
    auto state = view.draft_state(directory / name);
    return state && *state &&
           (!type || (*state)->type == *type ||
            (*state)->type == fs::Type::kSymlink);
  };
  using enum fs::Type;
  return !is(".git", std::nullopt) && is("HEAD", kFile) &&
         (is("commondir", kFile) || (is("objects", kDir) && is("refs", kDir)));
}

// What makes a directory such a one in which there was configuration before.
bool completes_repository(const Subject& subject) {
  const Change& change = subject.change;
  const std::string_view name = change.path.name();
  if (change.before || (name != "HEAD" && name != "objects" && name != "refs"))
    return false;
  const RelPath parent = change.path.parent();
  auto config = subject.view.draft_state(parent / "config");
  return config && *config && is_bare_repository(subject.view, parent);
}

// Configuration and hooks of such a one.
bool add_bare(const Subject& subject, std::vector<Risk>& risks) {
  const RelPath& path = subject.change.path;
  RelPath parent = path.parent();
  if (completes_repository(subject)) {
    risks.push_back({Level::kDanger, "git-config",
                     "executes on host unasked: git takes this directory for "
                     "a repository, and its configuration can name commands"});
    return true;
  }
  if (path.name() == "commondir" && is_bare_repository(subject.view, parent)) {
    risks.push_back({Level::kDanger, "git-info",
                     "git takes configuration and hooks from where it says"});
    return true;
  }
  if ((path.name() == "config" || path.name() == "config.worktree") &&
      subject.new_text && is_bare_repository(subject.view, parent)) {
    risks.push_back(
        risk_of_git_config(subject.old_text.value_or(""), *subject.new_text));
    return true;
  }
  if (parent.name() == "hooks" && !path.name().ends_with(".sample") &&
      is_bare_repository(subject.view, parent.parent())) {
    risks.push_back({Level::kDanger, "git-hook",
                     "executes on host unasked: a hook of a bare repository"});
    return true;
  }
  return false;
}

// Our own policy for this workspace. A new one can only tighten; one that was
// there holds later commands back.
void add_own_policy(const Change& change, std::vector<Risk>& risks) {
  constexpr std::string_view kPolicy = ".stoplog.toml";
  if (change.path.str() != kPolicy &&
      (!change.from || change.from->str() != kPolicy))
    return;
  const bool is_new = !change.before && !change.from;
  risks.push_back({is_new ? Level::kWarn : Level::kDanger, "stoplog-policy",
                   is_new ? "stoplog obeys it in this workspace from then on"
                          : "stoplog obeys it: what it hid, masked or asked "
                            "for may no longer be"});
}

// direnv asks again when .envrc changes, not when what it loads does.
void add_loaded_by_envrc(const Subject& subject, std::vector<Risk>& risks) {
  constexpr std::string_view kLoaded[] = {
      "flake.nix",   "flake.lock",  "shell.nix",   "default.nix",
      "devenv.nix",  "devenv.yaml", "devbox.json", "devenv.local.nix",
      "devenv.lock", ".env",        ".env.local",  "devbox.lock"};
  const Change& change = subject.change;
  if (std::ranges::find(kLoaded, change.path.name()) == std::end(kLoaded) ||
      (!change.content_changed && !change.from))
    return;
  auto envrc = subject.view.draft_state(change.path.parent() / ".envrc");
  if (!envrc || !*envrc) return;
  risks.push_back({Level::kDanger, "direnv",
                   "executes on host unasked: the .envrc beside it may load "
                   "it on entering the directory, and direnv does not ask "
                   "again"});
}

// A rule of names speaks of what is there afterwards; a deleted hook runs
// nothing.
void add_names(const Subject& subject, std::vector<Risk>& risks) {
  const Change& change = subject.change;
  add_own_policy(change, risks);
  add_spelling_risks(change, subject.view, risks);
  if (!change.after || change.after->type == fs::Type::kDir) return;
  bool is_file = change.after->type == fs::Type::kFile;
  add_loaded_by_envrc(subject, risks);
  auto rules = match_names(change.path);
  if (add_bare(subject, risks)) return;
  for (const NameRule* rule : rules) {
    if (rule->code == "git-config" && subject.new_text && is_file) {
      risks.push_back(
          risk_of_git_config(subject.old_text.value_or(""), *subject.new_text));
      continue;
    }
    // `git init` writes info/exclude with nothing but comments in it.
    if (rule->code == "git-info" && subject.new_text && !change.before &&
        is_only_comments(*subject.new_text))
      continue;
    // git ships samples that it never runs.
    bool sample =
        rule->code == "git-hook" && change.path.str().ends_with(".sample");
    risks.push_back({sample ? Level::kInfo : rule->level,
                     std::string(rule->code), std::string(rule->message)});
  }
  // Through a link everything beneath comes from elsewhere.
  if (change.after->type != fs::Type::kSymlink) return;
  for (const NameRule* rule : match_beneath(change.path))
    if (std::find(rules.begin(), rules.end(), rule) == rules.end())
      risks.push_back(
          {rule->level, std::string(rule->code),
           fmt::format("a link in place of a directory: {}", rule->message)});
}

void add_policy(const Change& change, const std::vector<PolicyRule>& policy,
                std::vector<Risk>& risks) {
  auto hits = [](const Glob& glob, const Change& one) {
    bool dir = one.after && one.after->type == fs::Type::kDir;
    return glob.covers(one.path.str(), dir) ||
           (one.from && glob.covers(one.from->str(), dir));
  };
  for (const PolicyRule& rule : policy) {
    if (rule.glob.empty()) continue;
    auto glob = Glob::parse(rule.glob);
    if (!glob) continue;  // the policy was checked when it was read
    bool hit = hits(*glob, change);
    if (!hit && change.git)
      hit = std::ranges::any_of(change.git->parts, [&](const Change& part) {
        return hits(*glob, part);
      });
    if (hit)
      risks.push_back({rule.level, rule.code,
                       rule.message.empty()
                           ? fmt::format("your policy names '{}'", rule.glob)
                           : rule.message});
  }
}

void raise(const std::vector<PolicyRule>& policy, std::vector<Risk>& risks) {
  for (const PolicyRule& rule : policy)
    for (Risk& risk : risks)
      if (rule.glob.empty() && risk.code == rule.code)
        risk.level = std::max(risk.level, rule.level);
}

void add_text(const Subject& subject, std::vector<Risk>& risks) {
  const Change& change = subject.change;
  if (!change.after || !subject.new_text) return;
  std::string_view now = *subject.new_text;
  std::string_view old = subject.old_text.value_or("");
  bool renamed = change.from && (change.from->name() != change.path.name() ||
                                 (is_installed_package(change.from->str()) &&
                                  !is_installed_package(change.path.str())));
  std::vector<Risk> found;
  if (change.content_changed)
    found = now.find('\0') == std::string_view::npos
                ? risks_of_text(old, now, subject.diff)
                : risks_of_bytes(old, now);
  // Under another name its scripts were none, and fewer where it was installed.
  if (change.content_changed || renamed) {
    std::vector<Risk> more =
        risks_of_package(change.path.str(), renamed ? "" : old, now);
    found.insert(found.end(), more.begin(), more.end());
  }
  risks.insert(risks.end(), std::make_move_iterator(found.begin()),
               std::make_move_iterator(found.end()));
}

void sort_risks(std::vector<Risk>& risks) {
  std::stable_sort(
      risks.begin(), risks.end(),
      [](const Risk& a, const Risk& b) { return a.level > b.level; });
}

// Case folded as far as ASCII goes: what macOS and Windows would confuse.
Hash128 folded_hash(std::string_view name) {
  std::string out(name);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return xxh3(std::as_bytes(std::span(out)));
}

}  // namespace

std::vector<Risk> assess(const Subject& subject,
                         const std::vector<PolicyRule>& policy) {
  std::vector<Risk> risks;
  add_names(subject, risks);
  add_node_risks(subject, risks);
  add_attribute_risks(subject, risks);
  add_text(subject, risks);
  add_policy(subject.change, policy, risks);
  raise(policy, risks);
  sort_risks(risks);
  return risks;
}

std::vector<Risk> assess_names(const Subject& subject,
                               const std::vector<PolicyRule>& policy) {
  std::vector<Risk> risks;
  add_names(subject, risks);
  add_policy(subject.change, policy, risks);
  raise(policy, risks);
  sort_risks(risks);
  return risks;
}

void assess_policy(Change& change, const std::vector<PolicyRule>& policy) {
  add_policy(change, policy, change.risks);
  sort_risks(change.risks);
}

void raise_levels(ChangeSet& set, const std::vector<PolicyRule>& policy) {
  if (std::ranges::none_of(
          policy, [](const PolicyRule& rule) { return rule.glob.empty(); }))
    return;
  for (Change& change : set.changes) {
    raise(policy, change.risks);
    sort_risks(change.risks);
  }
}

void assess_set(ChangeSet& set, const fs::View& view) {
  // Only new names can collide; each asks for the list of its directory once.
  std::map<std::string, std::vector<Change*>> by_directory;
  for (Change& change : set.changes)
    if (change.after && (!change.before || change.from) && !change.ignored &&
        !is_inside_git(change))
      by_directory[change.path.parent().str()].push_back(&change);
  for (auto& [directory, changes] : by_directory) {
    auto path = RelPath::parse(directory);
    if (!path) continue;
    auto entries = view.draft_list(*path);
    if (!entries) continue;  // the directory itself is gone: nothing collides
    // Hashes alone: there may be a million names, and this is a warning.
    std::vector<Hash128> names;
    names.reserve(entries->size());
    for (const fs::DirEntry& entry : *entries)
      names.push_back(folded_hash(entry.name));
    std::ranges::sort(names);
    for (Change* change : changes) {
      if (std::ranges::equal_range(names, folded_hash(change->path.name()))
              .size() < 2)
        continue;
      change->risks.push_back(
          {Level::kWarn, "case-collision",
           "differs from its neighbour in case only: one of them is lost on "
           "macOS and Windows"});
      sort_risks(change->risks);
    }
  }
}

std::vector<RuleInfo> risk_rules() {
  std::vector<RuleInfo> out;
  for (const NameRule& rule : name_rules())
    out.push_back({rule.code, rule.level, rule.why});
  for (const RuleInfo& rule : node_rules()) out.push_back(rule);
  for (const RuleInfo& rule : attribute_rules()) out.push_back(rule);
  for (RuleInfo rule : std::initializer_list<RuleInfo>{
           {"secret", Level::kDanger, "what was pushed once is not secret"},
           {"package-script", Level::kWarn, "runs when it is called"},
           {"bidi", Level::kWarn, "Trojan Source: shown in another order"},
           {"invisible", Level::kWarn, "a name that only looks like another"},
           {"mixed-script", Level::kWarn, "a look-alike letter in a name"},
           {"carriage-return", Level::kWarn, "a terminal overwrites the line"},
           {"control-character", Level::kWarn, "a terminal obeys it"},
           {"minified", Level::kWarn, "cannot be reviewed by reading"},
           {"generated", Level::kInfo, "the source of it matters more"},
           {"git-lookalike", Level::kDanger, "is .git on other file systems"},
           {"odd-name", Level::kWarn, "imitates the columns of a list"},
           {"case-collision", Level::kWarn, "two names, one file elsewhere"},
           {"policy", Level::kDanger, "the user asked to be asked"}})
    out.push_back(rule);
  return out;
}

}  // namespace stoplog::diff
