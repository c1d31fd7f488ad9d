// SPDX-License-Identifier: Apache-2.0
#include "gate/merge_nodes.h"

#include <set>
#include <utility>

#include "base/escape.h"

namespace stoplog::gate {
namespace {

using Xattrs = std::map<std::string, std::string>;

bool is_access(const std::string& name) {
  return name.starts_with("system.posix_acl_");
}

// A list's mask is the mode's bits of the group: one without the other is
// another right than either side gave.
std::pair<mode_t, Xattrs> access_of(const Node& node) {
  Xattrs lists;
  for (const auto& [name, value] : node.xattrs)
    if (is_access(name)) lists.emplace(name, value);
  return {node.mode, std::move(lists)};
}

// Null: both sides changed it, and not alike.
template <typename T>
const T* either(const T& base, const T& real, const T& draft) {
  if (base == draft) return &real;
  if (base == real || real == draft) return &draft;
  return nullptr;
}

std::optional<std::string> value_of(const Node& node, const std::string& name) {
  auto at = node.xattrs.find(name);
  if (at == node.xattrs.end()) return std::nullopt;
  return at->second;
}

}  // namespace

Whose content_of(const Sides& sides) {
  if (same_content(sides.base, sides.draft)) return Whose::kReal;
  if (same_content(sides.base, sides.real) ||
      same_content(sides.real, sides.draft))
    return Whose::kDraft;
  return Whose::kBoth;
}

std::string merge_attributes(const Sides& sides, Node& merged) {
  const auto& [base, real, draft] = sides;
  const auto of_base = access_of(base), of_real = access_of(real),
             of_draft = access_of(draft);
  const auto* access = either(of_base, of_real, of_draft);
  if (access == nullptr)
    return real.mode == draft.mode
               ? "its access list was changed on both sides"
               : fmt::format(
                     "its mode was changed on both sides: {:04o} in "
                     "the real tree, {:04o} in the draft",
                     real.mode, draft.mode);
  using Owner = std::pair<uid_t, gid_t>;
  const Owner owners[] = {
      {base.uid, base.gid}, {real.uid, real.gid}, {draft.uid, draft.gid}};
  const auto* owner = either(owners[0], owners[1], owners[2]);
  if (owner == nullptr) return "its owner was changed on both sides";
  Xattrs xattrs = access->second;
  std::set<std::string> names;
  for (const Node* node : {&base, &real, &draft})
    for (const auto& [name, value] : node->xattrs)
      if (!is_access(name)) names.insert(name);
  for (const std::string& name : names) {
    const auto was = value_of(base, name), is = value_of(real, name),
               wanted = value_of(draft, name);
    const auto* value = either(was, is, wanted);
    if (value == nullptr)
      return fmt::format("its attribute {} was changed on both sides",
                         quote_name(name));
    if (*value) xattrs.emplace(name, **value);
  }
  merged.mode = access->first;
  merged.uid = owner->first;
  merged.gid = owner->second;
  merged.xattrs = std::move(xattrs);
  return "";
}

}  // namespace stoplog::gate
