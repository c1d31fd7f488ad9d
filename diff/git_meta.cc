// SPDX-License-Identifier: Apache-2.0
#include "diff/git_meta.h"

#include "diff/git_object.h"
#include "diff/paint.h"

namespace stoplog::diff {
namespace {

std::string short_target(const std::optional<std::string>& target) {
  if (!target) return "nothing";
  if (target->starts_with("ref: refs/heads/")) return target->substr(16);
  if (target->starts_with("ref: ")) return target->substr(5);
  return is_git_id(*target) ? target->substr(0, 7) : *target;
}

std::string short_name(const std::string& ref) {
  return ref.starts_with("refs/heads/") ? ref.substr(11) : ref;
}

}  // namespace

std::string GitChange::summary() const {
  std::string out;
  auto add = [&](const std::string& text) {
    out += (out.empty() ? "" : ", ") + text;
  };
  for (size_t i = 0; i < refs.size() && i < 5; i++) {
    const RefMove& ref = refs[i];
    std::string text =
        fmt::format("{} {} → {}", short_name(ref.name), short_target(ref.from),
                    short_target(ref.to));
    if (!ref.subjects.empty())
      text +=
          fmt::format(" \"{}\"{}", ref.subjects.front().substr(0, 72),
                      ref.subjects.size() > 1
                          ? fmt::format(" and {} more", ref.subjects.size() - 1)
                          : "");
    add(text);
  }
  if (refs.size() > 5) add(fmt::format("{} more refs", refs.size() - 5));
  if (commits > 0) add(plural(commits, "commit", "commits"));
  if (index_changed)
    add(fmt::format("index +{} ~{} -{}", index_added, index_modified,
                    index_removed));
  if (objects_added > 0)
    add(plural(objects_added, "object", "objects") + " added");
  if (objects_removed > 0)
    add(plural(objects_removed, "object", "objects") + " removed");
  if (packs_added > 0) add(plural(packs_added, "pack", "packs") + " added");
  if (packs_removed > 0)
    add(plural(packs_removed, "pack", "packs") + " removed");
  if (!others.empty()) add(plural(others.size(), "other file", "other files"));
  for (const std::string& why : unreadable) add(why);
  return out;
}

}  // namespace stoplog::diff
