// SPDX-License-Identifier: Apache-2.0
#include "diff/git_shown.h"

#include <algorithm>

#include "base/strings.h"
#include "diff/content_hash.h"
#include "diff/git_inflate.h"
#include "diff/git_object.h"
#include "diff/hunks.h"

namespace stoplog::diff {
namespace {

constexpr uint64_t kPerFile = 4096;    // that each costs at least
constexpr size_t kRemembered = 50000;  // files

std::string to_hex(const std::string& raw) {
  return hex({reinterpret_cast<const unsigned char*>(raw.data()), raw.size()});
}

}  // namespace

std::optional<RelPath> resolve_beneath(const RelPath& directory,
                                       std::string_view text) {
  if (text.empty() || text[0] == '/') return std::nullopt;
  RelPath at = directory;
  for (std::string_view part : split(text, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (at.is_root()) return std::nullopt;
      at = at.parent();
    } else if (is_valid_name(part)) {
      at = at / part;
    } else {
      return std::nullopt;
    }
  }
  return at;
}

std::optional<RelPath> ShownFiles::place_of(const std::string& path) const {
  if (!place_.work_tree) return std::nullopt;
  auto parsed = RelPath::parse(full(path));
  return parsed ? std::optional(std::move(*parsed)) : std::nullopt;
}

std::string ShownFiles::full(const std::string& path) const {
  if (!place_.work_tree || place_.work_tree->is_root()) return path;
  return place_.work_tree->str() + "/" + path;
}

std::optional<fs::NodeState> ShownFiles::state(const std::string& path) const {
  auto at = place_of(path);
  auto found = at ? place_.view.draft_state(*at)
                  : Result<std::optional<fs::NodeState>>(std::nullopt);
  return found ? std::move(*found) : std::nullopt;
}

bool ShownFiles::shows(const std::string& path, uint32_t mode,
                       const std::string& id) {
  auto at = place_of(path);
  auto there = state(path);
  if (!at || !there) return false;
  if (mode == 0160000)
    return there->type == fs::Type::kDir && submodule_head(*at) == id;
  if (place_.facts != nullptr && place_.facts->is_ignored(*at, false))
    return false;
  if (mode == 0120000)
    return there->type == fs::Type::kSymlink && blob_id(there->target) == id;
  if ((mode & 0170000) != 0100000 || there->type != fs::Type::kFile ||
      !there->content || ((mode ^ there->mode) & 0100) != 0)
    return false;
  const Ids& ids = ids_of(path, *there);
  return ids.as_is == id || (!ids.with_lf.empty() && ids.with_lf == id);
}

bool ShownFiles::is_real(const std::string& path, const std::string& id) {
  auto at = place_of(path);
  auto found = at ? place_.view.real_state(*at)
                  : Result<std::optional<fs::NodeState>>(std::nullopt);
  if (!found || !*found) return false;
  const fs::NodeState& there = **found;
  if (there.type == fs::Type::kSymlink) return blob_id(there.target) == id;
  if (there.type != fs::Type::kFile || !there.content) return false;
  Ids ids = hash(there);
  return ids.as_is == id || (!ids.with_lf.empty() && ids.with_lf == id);
}

const ShownFiles::Ids& ShownFiles::ids_of(const std::string& path,
                                          const fs::NodeState& state) {
  auto it = known_.find(path);
  if (it != known_.end()) return it->second;
  if (known_.size() >= kRemembered) known_.clear();
  return known_[path] = hash(state);
}

std::string ShownFiles::blob_id(std::string_view text) const {
  return to_hex(object_id(place_.format, "blob", text));
}

ShownFiles::Ids ShownFiles::hash(const fs::NodeState& state) {
  const fs::Content& content = *state.content;
  const uint64_t size = content.size();
  if (size + kPerFile > left_) {
    spent_ = true;
    return {};
  }
  left_ -= size + kPerFile;
  if (size <= kTextLimit) {
    auto text = read_content(content, kTextLimit);
    if (!text) return {};
    Ids ids{blob_id(*text), {}};
    if (text->find("\r\n") == std::string::npos) return ids;
    std::string lf;
    for (size_t i = 0; i < text->size(); i++)
      if ((*text)[i] != '\r' || i + 1 == text->size() || (*text)[i + 1] != '\n')
        lf += (*text)[i];
    ids.with_lf = blob_id(lf);
    return ids;
  }
  ObjectHash hash(place_.format);
  hash.update(fmt::format("blob {}", size));
  hash.update(std::string_view("\0", 1));
  std::string block(kHashBlock, '\0');
  for (uint64_t at = 0; at < size;) {
    block.resize(std::min<uint64_t>(kHashBlock, size - at));
    if (!read_bytes(content, at, block)) return {};
    hash.update(block);
    at += block.size();
  }
  return {to_hex(hash.finish()), {}};
}

std::optional<std::string> ShownFiles::text_at(const RelPath& path,
                                               uint64_t limit) const {
  auto found = place_.view.draft_state(path);
  if (!found || !*found || !(*found)->content) return std::nullopt;
  auto text = read_content(*(*found)->content, limit);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

// The git directory of a submodule's work tree, where the real tree has one.
std::optional<RelPath> ShownFiles::repository_at(const RelPath& path) const {
  std::optional<RelPath> git = path / ".git";
  if (auto text = text_at(*git, kRefFile)) {
    std::string_view link = trim(*text);
    git = link.starts_with("gitdir: ") ? resolve_beneath(path, link.substr(8))
                                       : std::nullopt;
  }
  if (!git) return std::nullopt;
  auto real = place_.view.real_state(*git / "HEAD");
  return real && *real ? git : std::nullopt;
}

std::optional<std::string> ShownFiles::submodule_head(
    const RelPath& path) const {
  auto git = repository_at(path);
  if (!git) return std::nullopt;
  auto head = parse_ref(text_at(*git / "HEAD", kRefFile).value_or(""));
  if (!head) return std::nullopt;
  if (!head->starts_with("ref: ")) return *head;
  std::string name = head->substr(5);
  auto loose = RelPath::parse(git->str() + "/" + name);
  if (auto text = loose ? text_at(*loose, kRefFile) : std::nullopt) {
    auto id = parse_ref(*text);
    return id ? std::optional(*id) : std::nullopt;
  }
  auto packed = parse_packed_refs(
      text_at(*git / "packed-refs", kPackedRefsLimit).value_or(""));
  if (!packed || !packed->contains(name)) return std::nullopt;
  return packed->at(name);
}

}  // namespace stoplog::diff
