// SPDX-License-Identifier: Apache-2.0
#include "diff/git_object.h"

#include <zlib.h>

#include <algorithm>

#include "base/strings.h"

namespace stoplog::diff {
namespace {

constexpr size_t kParents = 32;  // an octopus larger than that is a bomb

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

bool is_ref_name(std::string_view name) {
  return name.starts_with("refs/") && name.size() < 1024 &&
         std::none_of(
             name.begin(), name.end(),
             [](char c) {
               return static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
             });
}

}  // namespace

bool is_git_id(std::string_view text) {
  return (text.size() == 40 || text.size() == 64) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Result<Commit> parse_loose_commit(std::string_view bytes) {
  std::string text = TRY(inflate_some(bytes, kCommitLimit));
  std::string_view rest = text;
  size_t nul = rest.find('\0');
  if (!rest.starts_with("commit ") || nul == std::string_view::npos)
    return fail(Code::kInvalid, "not a commit");
  rest.remove_prefix(nul + 1);
  Commit commit;
  while (!rest.empty()) {
    std::string_view line = take_line(rest);
    if (line.empty()) break;  // the message begins
    if (line.starts_with("parent ") && is_git_id(line.substr(7)) &&
        commit.parents.size() < kParents)
      commit.parents.emplace_back(line.substr(7));
  }
  commit.subject = take_line(rest).substr(0, 200);
  return commit;
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

}  // namespace stoplog::diff
