// SPDX-License-Identifier: Apache-2.0
#include "diff/risk_attributes.h"

#include <algorithm>

#include "base/escape.h"
#include "fs/acl.h"

namespace stoplog::diff {
namespace {

constexpr RuleInfo kAttributeRules[] = {
    {"acl-write", Level::kDanger, "somebody else may change it afterwards"},
    {"acl", Level::kWarn, "permissions that no mode shows"},
    {"security-attribute", Level::kDanger, "the kernel acts on it"},
    {"attribute", Level::kWarn, "content that no patch shows"},
};

// acl(5), as in fs/acl.cc
constexpr uint16_t kUser = 0x02, kGroup = 0x08, kMask = 0x10, kOther = 0x20;
constexpr uint16_t kWrite = 2;
constexpr size_t kShown = 60;  // bytes of a name

bool is_acl(std::string_view name) {
  return name == fs::kAclAccess || name == fs::kAclDefault;
}

std::optional<std::string> value_of(const fs::NodeState& state,
                                    std::string_view name) {
  auto it = state.xattrs.find(std::string(name));
  if (it == state.xattrs.end()) return std::nullopt;
  return it->second;
}

// What a new node gets from the default list of the directory that it is in.
std::optional<std::string> inherited(const fs::NodeState& node,
                                     const fs::NodeState& directory,
                                     std::string_view name) {
  auto bytes = value_of(directory, fs::kAclDefault);
  if (!bytes) return std::nullopt;
  if (name == fs::kAclDefault)
    return node.type == fs::Type::kDir ? bytes : std::nullopt;
  auto list = fs::parse_acl(*bytes);
  if (!list) return std::nullopt;
  mode_t mode = node.mode;
  auto own = fs::inherit_acl(*list, mode);
  if (!own) return std::nullopt;
  // Later chmods show in the mode, which is told by itself.
  fs::chmod_acl(*own, node.mode);
  return fs::encode_acl(*own);
}

// The directory as it will be, whose list counts for what is new in it.
std::optional<fs::NodeState> directory_of(const Change& change,
                                          const fs::View& view) {
  if (change.path.is_root()) return std::nullopt;
  auto state = view.draft_state(change.path.parent());
  if (!state || !*state) return std::nullopt;
  return std::move(**state);
}

// Attributes that are new or other than before, by name.
std::vector<std::string> brought(const Change& change, const fs::View& view) {
  std::vector<std::string> names;
  const fs::NodeState& after = *change.after;
  std::optional<fs::NodeState> directory;
  bool looked = false;
  for (const auto& [name, value] : after.xattrs) {
    if (change.before && value_of(*change.before, name) == value) continue;
    if (!change.before && is_acl(name)) {
      if (!looked) directory = directory_of(change, view);
      looked = true;
      if (directory && inherited(after, *directory, name) == value) continue;
    }
    names.push_back(name);
  }
  return names;
}

// "user 1000, group 5, everybody": whom `list` lets write but its owner.
std::string writers(const fs::Acl& list) {
  uint16_t mask = 7;
  for (const fs::AclEntry& entry : list)
    if (entry.tag == kMask) mask = entry.perm;
  std::string text;
  size_t more = 0;
  for (const fs::AclEntry& entry : list) {
    uint16_t perm = entry.tag == kOther
                        ? entry.perm
                        : static_cast<uint16_t>(entry.perm & mask);
    if ((perm & kWrite) == 0) continue;
    std::string who;
    if (entry.tag == kUser) who = fmt::format("user {}", entry.id);
    if (entry.tag == kGroup) who = fmt::format("group {}", entry.id);
    if (entry.tag == kOther) who = "everybody";
    if (who.empty()) continue;
    if (text.size() > kShown)
      ++more;
    else
      text += (text.empty() ? "" : ", ") + who;
  }
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

class AttributeRisks {
 public:
  AttributeRisks(const Change& change, std::vector<Risk>& risks)
      : change_(change), risks_(risks) {}

  void comes(const std::string& name) {
    const std::string& value = change_.after->xattrs.at(name);
    if (name == "security.capability") return;  // a rule of its own
    if (is_acl(name)) return list(name, value);
    if (name.starts_with("security."))
      return add("security-attribute", said(name, value));
    add("attribute", said(name, value));
  }

  void goes(const std::string& name) {
    if (is_acl(name))
      add("acl", fmt::format("loses its {}", word(name)));
    else if (name != "security.capability")
      add("attribute",
          fmt::format("loses the attribute '{}'", name.substr(0, kShown)));
  }

 private:
  static std::string_view word(std::string_view name) {
    return name == fs::kAclDefault ? "default access list" : "access list";
  }

  std::string said(const std::string& name, const std::string& value) const {
    bool is_new = !change_.before || !change_.before->xattrs.contains(name);
    return fmt::format("{} the attribute '{}', {} bytes",
                       is_new ? "carries" : "changes", name.substr(0, kShown),
                       value.size());
  }

  void list(const std::string& name, const std::string& value) {
    auto entries = fs::parse_acl(value);
    if (!entries)
      return add("acl-write",
                 fmt::format("has an {} that cannot be read", word(name)));
    std::string who = writers(*entries);
    std::string whose = name == fs::kAclDefault ? "what is made in it" : "it";
    if (!who.empty())
      return add("acl-write", fmt::format("its {} lets {} write to {}",
                                          word(name), who, whose));
    add("acl", fmt::format(
                   "has a {} of {} entries",
                   word(name) == "access list" ? "new access list" : word(name),
                   entries->size()));
  }

  void add(std::string_view code, std::string message) {
    auto rule =
        std::find_if(std::begin(kAttributeRules), std::end(kAttributeRules),
                     [&](const RuleInfo& info) { return info.code == code; });
    risks_.push_back({rule->level, std::string(code), std::move(message)});
  }

  const Change& change_;
  std::vector<Risk>& risks_;
};

}  // namespace

void add_attribute_risks(const Subject& subject, std::vector<Risk>& risks) {
  const Change& change = subject.change;
  if (!change.after) return;
  AttributeRisks found(change, risks);
  for (const std::string& name : brought(change, subject.view))
    found.comes(name);
  if (!change.before || change.before->type != change.after->type) return;
  for (const auto& [name, value] : change.before->xattrs)
    if (!change.after->xattrs.contains(name)) found.goes(name);
}

bool brings_attributes(const Change& change, const fs::View& view) {
  return change.after && !change.after->xattrs.empty() &&
         !brought(change, view).empty();
}

std::span<const RuleInfo> attribute_rules() { return kAttributeRules; }

}  // namespace stoplog::diff
