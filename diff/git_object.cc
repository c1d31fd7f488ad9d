// SPDX-License-Identifier: Apache-2.0
#include "diff/git_object.h"

#include <zlib.h>

#include <algorithm>

#include "base/hash.h"
#include "base/relpath.h"
#include "base/strings.h"

namespace stoplog::diff {
namespace {

constexpr size_t kParents = 1000;  // an octopus larger than that is a bomb

// At most `limit` bytes of the inflated stream.
Result<std::string> inflate_some(std::string_view bytes, size_t limit) {
  z_stream z{};
  if (inflateInit(&z) != Z_OK) return fail_errno(ENOMEM);
  std::string out(limit, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  int result = inflate(&z, Z_SYNC_FLUSH);
  out.resize(out.size() - z.avail_out);
  inflateEnd(&z);
  if (result != Z_STREAM_END && result != Z_OK && result != Z_BUF_ERROR)
    return fail(Code::kInvalid, "not a deflated object");
  return out;
}

std::string_view take_line(std::string_view& text) {
  size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// git makes none that ends so: it would be the lock of another.
bool has_lock_name(std::string_view name) {
  return name.ends_with(".lock") || name.find(".lock/") != name.npos;
}

bool is_ref_name(std::string_view name) {
  return name.starts_with("refs/") && name.size() < 1024 &&
         !has_lock_name(name) &&
         std::none_of(
             name.begin(), name.end(),
             [](char c) {
               return static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
             });
}

// ".git" in any case: file systems there are that make one of both.
bool is_git_name(std::string_view name) {
  return name.size() == 4 && name[0] == '.' && (name[1] | 0x20) == 'g' &&
         (name[2] | 0x20) == 'i' && (name[3] | 0x20) == 't';
}

}  // namespace

bool is_git_id(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Result<Commit> parse_commit(std::string_view rest) {
  std::string_view line = take_line(rest);
  if (!line.starts_with("tree ") || !is_git_id(line.substr(5)))
    return fail(Code::kInvalid, "a commit does not begin with its tree");
  Commit commit;
  commit.tree = line.substr(5);
  bool parents = true;  // they come next, one after the other
  for (line = take_line(rest); !line.empty(); line = take_line(rest)) {
    bool parent = line.starts_with("parent ");
    parents = parents && parent;
    if (parent != parents || line.starts_with("tree "))
      return fail(Code::kInvalid, "a commit has headers that git never makes");
    if (!parent) continue;
    if (!is_git_id(line.substr(7)) || commit.parents.size() >= kParents)
      return fail(Code::kInvalid, "the parents of a commit cannot be read");
    commit.parents.emplace_back(line.substr(7));
  }
  commit.subject = take_line(rest).substr(0, 200);
  return commit;
}

Result<Commit> parse_loose_commit(std::string_view bytes) {
  std::string text = TRY(inflate_some(bytes, kCommitLimit));
  std::string_view rest = text;
  size_t nul = rest.find('\0');
  if (!rest.starts_with("commit ") || nul == std::string_view::npos)
    return fail(Code::kInvalid, "not a commit");
  return parse_commit(rest.substr(nul + 1));
}

Result<std::vector<TreeEntry>> parse_tree(std::string_view data,
                                          size_t id_size) {
  std::vector<TreeEntry> out;
  while (!data.empty()) {
    size_t space = data.find(' '), nul = data.find('\0');
    if (space == data.npos || nul == data.npos || space > 6 || space > nul ||
        data.size() - nul - 1 < id_size)
      return fail(Code::kInvalid, "a tree is damaged");
    TreeEntry entry;
    for (char c : data.substr(0, space)) {
      if (c < '0' || c > '7') return fail(Code::kInvalid, "a tree is damaged");
      entry.mode = entry.mode * 8 + static_cast<uint32_t>(c - '0');
    }
    entry.name = data.substr(space + 1, nul - space - 1);
    if (!is_valid_name(entry.name) || is_git_name(entry.name))
      return fail(Code::kInvalid, "a tree has a name that git never makes");
    std::string_view id = data.substr(nul + 1, id_size);
    entry.id =
        hex({reinterpret_cast<const unsigned char*>(id.data()), id.size()});
    out.push_back(std::move(entry));
    data.remove_prefix(nul + 1 + id_size);
  }
  return out;
}

Result<TagTarget> parse_tag(std::string_view data) {
  std::string_view object = take_line(data), type = take_line(data);
  if (!object.starts_with("object ") || !is_git_id(object.substr(7)) ||
      !type.starts_with("type "))
    return fail(Code::kInvalid, "a tag is damaged");
  return TagTarget{std::string(type.substr(5)), std::string(object.substr(7))};
}

Result<std::string> parse_ref(std::string_view bytes) {
  std::string_view text = trim(bytes.substr(0, 2048));
  if (is_git_id(text)) return std::string(text);
  if (text.starts_with("ref: ") && is_ref_name(text.substr(5)))
    return std::string(text);
  return fail(Code::kInvalid, "not a ref");
}

Result<std::map<std::string, std::string>> parse_packed_refs(
    std::string_view bytes) {
  std::map<std::string, std::string> refs;
  while (!bytes.empty()) {
    std::string_view line = take_line(bytes);
    if (line.empty() || line[0] == '#' || line[0] == '^') continue;
    size_t space = std::min(line.find(' '), line.size());
    std::string_view name = line.substr(std::min(space + 1, line.size()));
    if (!is_git_id(line.substr(0, space)) || !is_ref_name(name))
      return fail(Code::kInvalid, "packed-refs has a line that is no ref");
    refs[std::string(name)] = line.substr(0, space);
  }
  return refs;
}

std::string packed_refs_text(const std::map<std::string, std::string>& refs) {
  std::string out = "# pack-refs with: sorted \n";
  for (const auto& [name, id] : refs) out += id + " " + name + "\n";
  return out;
}

Result<std::vector<std::string>> parse_ref_log(std::string_view bytes) {
  std::vector<std::string> ids;
  while (!bytes.empty()) {
    std::string_view line = take_line(bytes);
    size_t size = std::min(line.find(' '), line.size());
    if (!is_git_id(line.substr(0, size)) || line.size() < 2 * size + 1 ||
        !is_git_id(line.substr(size + 1, size)))
      return fail(Code::kInvalid, "has a line that git never writes");
    ids.emplace_back(line.substr(size + 1, size));
  }
  return ids;
}

}  // namespace stoplog::diff
