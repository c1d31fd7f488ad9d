// SPDX-License-Identifier: Apache-2.0
#include "fs/rules.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace stoplog::fs {
namespace {

// Not globs: this is asked for every name that the agent looks up, and thirty
// patterns over each parent of a path cost as much as the request itself.
constexpr std::array<std::string_view, 13> kNames = {
    ".env",        "id_rsa",      "id_dsa",           "id_ecdsa",
    "id_ed25519",  "id_ecdsa_sk", "id_ed25519_sk",    ".netrc",
    "_netrc",      ".pypirc",     ".git-credentials", ".pgpass",
    ".vault-token"};
constexpr std::array<std::string_view, 8> kEndings = {
    ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk"};
constexpr std::string_view kEnvPrefix = ".env.";

// A comment in most formats, so that a loader reads no variable from it rather
// than failing on the first line.
constexpr std::string_view kMaskContent =
    "# masked by stoplog: the content is kept from commands in a draft\n";

char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }

bool equal_fold(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

Status add(std::vector<std::pair<Rule, Glob>>& out, Rule rule,
           const std::vector<std::string>& patterns) {
  for (const auto& pattern : patterns)
    out.emplace_back(rule, TRY(Glob::parse(pattern)));
  return {};
}

}  // namespace

bool looks_like_secret(std::string_view path) {
  size_t slash = path.rfind('/');
  std::string_view name =
      slash == std::string_view::npos ? path : path.substr(slash + 1);
  for (std::string_view known : kNames)
    if (equal_fold(name, known)) return true;
  if (name.size() > kEnvPrefix.size() &&
      equal_fold(name.substr(0, kEnvPrefix.size()), kEnvPrefix))
    return true;
  return std::any_of(kEndings.begin(), kEndings.end(), [&](auto ending) {
    return name.size() > ending.size() &&
           equal_fold(name.substr(name.size() - ending.size()), ending);
  });
}

Result<std::unique_ptr<RuleSet>> RuleSet::create(RulesSpec spec) {
  static std::atomic<uint64_t> made{0};
  std::unique_ptr<RuleSet> out(new RuleSet());
  out->serial_ = ++made;
  TRY(add(out->globs_, Rule::kHide, spec.hide));
  TRY(add(out->globs_, Rule::kDeny, spec.deny));
  TRY(add(out->globs_, Rule::kMask, spec.mask));
  TRY(add(out->globs_, Rule::kReadOnly, spec.read_only));
  out->default_masks_ = spec.default_masks;
  out->tracked_ = std::move(spec.tracked);
  return out;
}

bool RuleSet::empty() const { return globs_.empty() && !default_masks_; }

bool RuleSet::hides() const {
  return !globs_.empty() && globs_.front().first == Rule::kHide;
}

// What holds for all beneath a directory. Names are looked up directory by
// directory: the last one that a thread asked about is most often the next.
Rule RuleSet::rule_beneath(std::string_view directory) const {
  struct Last {
    uint64_t set = 0;
    std::string directory;
    Rule rule = Rule::kNone;
  };
  thread_local Last last;
  if (last.set == serial_ && last.directory == directory) return last.rule;
  Rule found = Rule::kNone;
  for (const auto& [rule, glob] : globs_) {
    if (!glob.covers(directory, true)) continue;
    found = rule;
    break;
  }
  last.set = serial_;
  last.directory = directory;
  last.rule = found;
  return found;
}

Rule RuleSet::rule(std::string_view path, bool is_directory) const {
  size_t slash = path.rfind('/');
  Rule found = slash == std::string_view::npos
                   ? Rule::kNone
                   : rule_beneath(path.substr(0, slash));
  for (const auto& [rule, glob] : globs_) {
    if (rule <= found) break;
    if (!glob.matches(path, is_directory)) continue;
    found = rule;
    break;
  }
  if (found >= Rule::kMask || !default_masks_ || is_directory) return found;
  if (!looks_like_secret(path)) return found;
  return tracked_ && tracked_(path) ? found : Rule::kMask;
}

Rule RuleSet::evaded(std::string_view from, std::string_view to) const {
  for (const auto& [rule, glob] : globs_) {
    if (rule == Rule::kMask) continue;
    auto before = glob.reached(from), after = glob.reached(to);
    if (!std::ranges::includes(before, after)) return rule;
    if (rule == Rule::kReadOnly && before != after) return rule;
  }
  return Rule::kNone;
}

std::string_view RuleSet::mask_content(std::string_view) const {
  return kMaskContent;
}

}  // namespace stoplog::fs
