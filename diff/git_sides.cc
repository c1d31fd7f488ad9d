// SPDX-License-Identifier: Apache-2.0
#include "diff/git_sides.h"

#include <algorithm>

#include "diff/content_hash.h"
#include "diff/git_config.h"
#include "diff/git_object.h"
#include "diff/git_shown.h"

namespace stoplog::diff {
namespace {

constexpr size_t kSymbolic = 5;  // refs that name refs
constexpr uint64_t kConfigLimit = 1u << 20;
constexpr uint64_t kLogLimit = 16u << 20;

bool is_directory(const std::optional<fs::NodeState>& state) {
  return state && state->type == fs::Type::kDir;
}

}  // namespace

Result<std::string> text_of(const std::optional<fs::NodeState>& state,
                            uint64_t limit) {
  if (!state) return std::string();
  if (state->type != fs::Type::kFile || !state->content)
    return fail(Code::kInvalid, "not a file");
  return read_content(*state->content, limit);
}

GitSides::GitSides(const fs::View& view, RelPath directory,
                   const std::vector<Change>& parts)
    : view_(view), directory_(std::move(directory)) {
  for (const Change& part : parts)
    if (part.path != directory_) by_name_[relative(part)] = &part;
}

std::string GitSides::relative(const Change& part) const {
  return part.path.str().substr(directory_.str().size() + 1);
}

const Change* GitSides::change(const std::string& rel) const {
  auto it = by_name_.find(rel);
  return it == by_name_.end() ? nullptr : it->second;
}

bool GitSides::is_new(const std::string& rel) const {
  const Change* part = change(rel);
  return part != nullptr && !part->before;
}

Result<std::string> GitSides::read(Side side, const std::string& rel,
                                   uint64_t limit) const {
  if (const Change* part = change(rel)) {
    const auto& state = side == Side::kBase ? part->before : part->after;
    return is_directory(state) ? std::string() : text_of(state, limit);
  }
  auto path = TRY(RelPath::parse(directory_.str() + "/" + rel));
  auto state = TRY(view_.draft_state(path));
  return is_directory(state) ? std::string() : text_of(state, limit);
}

RelPath GitSides::common() const {
  RelPath above = directory_.parent();
  return above.name() == "worktrees" ? above.parent() : directory_;
}

std::string GitSides::config() const {
  RelPath path = common() / "config";
  auto state = view_.real_state(path);
  if (state && !*state) state = view_.draft_state(path);
  auto text = state ? text_of(*state, kConfigLimit) : std::string();
  return text.value_or("");
}

std::optional<RelPath> GitSides::work_tree() const {
  if (directory_.name() == ".git") return directory_.parent();
  if (directory_.parent().name() == "worktrees") return std::nullopt;
  auto keys = parse_git_config(config());
  auto at = keys.find("core.worktree");
  return at == keys.end() ? std::nullopt
                          : resolve_beneath(directory_, at->second.back());
}

bool GitSides::packed_changed() const {
  const Change* part = change("packed-refs");
  return part != nullptr &&
         !is_directory(part->after ? part->after : part->before);
}

const GitSides::Refs& GitSides::packed(Side side) {
  const bool own = side == Side::kDraft && packed_changed();
  auto& known = packed_[own];
  if (known) return *known;
  auto text = read(side, "packed-refs", kPackedRefsLimit);
  auto refs = text ? parse_packed_refs(*text)
                   : Result<Refs>(std::unexpected(text.error()));
  if (!refs) note_unreadable("packed-refs: " + refs.error().text());
  // Refs that cannot be read were not deleted.
  if (!refs && own)
    known = packed(Side::kBase);
  else
    known = refs ? std::move(*refs) : Refs();
  return *known;
}

std::optional<std::string> GitSides::target(Side side,
                                            const std::string& name) {
  auto text = read(side, name, kRefFile);
  if (!text) {
    note_unreadable(name + ": " + text.error().text());
    return std::string(kUnreadableRef);
  }
  if (text->empty()) {
    const Refs& refs = packed(side);
    auto it = refs.find(name);
    return it != refs.end() ? std::optional(it->second) : std::nullopt;
  }
  auto ref = parse_ref(*text);
  if (!ref) note_unreadable(name + ": " + ref.error().text());
  return ref ? *ref : std::string(kUnreadableRef);
}

bool GitSides::has_gone(const std::string& name) const {
  const Change* part = change(name);
  if (part == nullptr || !part->drift) return false;
  const auto& seen = part->before;
  auto real = view_.real_state(part->path);
  return seen && seen->type == fs::Type::kFile && real && !*real;
}

std::optional<std::string> GitSides::packed_since(const std::string& name) {
  if (!packed_since_) {
    auto real = view_.real_state(common() / "packed-refs");
    auto text = real ? text_of(*real, kPackedRefsLimit)
                     : Result<std::string>(std::unexpected(real.error()));
    auto refs = text ? parse_packed_refs(*text)
                     : Result<Refs>(std::unexpected(text.error()));
    packed_since_ = refs ? std::move(*refs) : Refs();
  }
  auto at = packed_since_->find(name);
  return at != packed_since_->end() ? std::optional(at->second) : std::nullopt;
}

// "OLD NEW WHO WHEN\tWHAT\n" for each move.
std::optional<std::string> GitSides::logged(const std::string& name) const {
  auto text = read(Side::kBase, "logs/" + name, kLogLimit);
  if (!text || !text->ends_with('\n')) return std::nullopt;
  std::string_view last = *text;
  last.remove_suffix(1);
  last.remove_prefix(last.rfind('\n') + 1);  // npos + 1 is 0
  last.remove_prefix(std::min(last.size(), last.find(' ') + 1));
  std::string id(last.substr(0, last.find(' ')));
  return is_git_id(id) ? std::optional(std::move(id)) : std::nullopt;
}

std::optional<std::string> GitSides::head(Side side) {
  auto at = target(side, "HEAD");
  for (size_t i = 0; i < kSymbolic && at && at->starts_with("ref: "); i++)
    at = target(side, at->substr(5));
  return at && is_git_id(*at) ? at : std::nullopt;
}

std::vector<std::string> GitSides::draft_packs() const {
  std::vector<std::string> out;
  auto path = RelPath::parse(directory_.str() + "/objects/pack");
  auto entries =
      path ? view_.draft_list(*path) : std::unexpected(Error(ENOENT));
  if (!entries) return out;
  for (const fs::DirEntry& entry : *entries)
    if (entry.type == fs::Type::kFile && entry.name.ends_with(".pack"))
      out.push_back("objects/pack/" + entry.name);
  return out;
}

void GitSides::note_unreadable(std::string why) {
  if (std::ranges::find(unreadable_, why) == unreadable_.end())
    unreadable_.push_back(std::move(why));
}

}  // namespace stoplog::diff
