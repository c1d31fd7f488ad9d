// SPDX-License-Identifier: Apache-2.0
#include "cli/review_looked.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/hash.h"
#include "base/strings.h"
#include "diff/git_meta.h"

namespace stoplog::cli {
namespace {

constexpr std::string_view kHead = "stoplog looked 1";
// Beyond this only the state is kept: then the whole file is old or new.
constexpr size_t kMaxEdits = 2000;

uint64_t begin_of(const Sha256Digest& digest) {
  uint64_t out = 0;
  std::memcpy(&out, digest.data(), sizeof out);
  return out;
}

uint64_t path_key(const diff::Change& change) {
  return begin_of(sha256(change.path.str()));
}

void add_side(std::string& out, const std::optional<fs::NodeState>& state,
              const std::optional<Sha256Digest>& digest) {
  if (!state) {
    out += "absent\n";
    return;
  }
  out += fmt::format("{} {:o} {} {} {}\n", static_cast<int>(state->type),
                     state->mode, state->uid, state->gid, state->rdev);
  out += fmt::format("{}:{}\n", state->target.size(), state->target);
  for (const auto& [name, value] : state->xattrs)
    out += fmt::format("{}:{}{}:{}\n", name.size(), name, value.size(), value);
  if (digest)
    out += hex(*digest);
  else  // not hashed: an ignored file
    out += fmt::format("{} {}.{}", state->size, state->mtime.tv_sec,
                       state->mtime.tv_nsec);
  out += '\n';
}

uint64_t state_key(const diff::Change& change) {
  std::string text = fmt::format("{}\n", name_of(change.kind));
  if (change.git) text += hex(change.git->meaning);
  if (change.from) text += fmt::format("from {}\n", change.from->str());
  add_side(text, change.before, change.old_sha256);
  add_side(text, change.after, change.new_sha256);
  for (const diff::Risk& risk : change.risks) text += risk.code + "\n";
  return begin_of(sha256(text));
}

bool parse_key(std::string_view text, uint64_t& out) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), out, 16);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Looked Looked::parse(std::string_view text) {
  // The last line is the check of all before it.
  size_t check = text.rfind("\nsha256 ");
  if (check == text.npos) return {};
  std::string_view body = text.substr(0, check + 1);
  std::string_view given = trim(text.substr(check + 8));
  if (given != hex(sha256(body))) return {};
  std::vector<std::string_view> lines = split(body, '\n');
  if (lines.front() != kHead) return {};
  Looked out;
  for (size_t i = 1; i < lines.size(); i++) {
    if (lines[i].empty()) continue;
    std::vector<std::string_view> words = split(lines[i], ' ');
    uint64_t path = 0;
    File file;
    if (words.size() < 2 || !parse_key(words[0], path) ||
        !parse_key(words[1], file.state))
      return {};
    for (size_t w = 2; w < words.size(); w++) {
      uint64_t edit = 0;
      if (!parse_key(words[w], edit)) return {};
      file.edits.push_back(edit);
    }
    std::ranges::sort(file.edits);
    out.files_.emplace(path, std::move(file));
  }
  return out;
}

std::string Looked::print() const {
  std::string out = fmt::format("{}\n", kHead);
  std::vector<uint64_t> paths;
  for (const auto& [path, file] : files_) paths.push_back(path);
  std::ranges::sort(paths);
  for (uint64_t path : paths) {
    const File& file = files_.at(path);
    out += fmt::format("{:016x} {:016x}", path, file.state);
    for (uint64_t edit : file.edits) out += fmt::format(" {:016x}", edit);
    out += '\n';
  }
  out += fmt::format("sha256 {}\n", hex(sha256(out)));
  return out;
}

Look Looked::at(const diff::Change& change) const {
  if (files_.empty()) return Look::kNever;  // 100,000 hashes not taken
  auto found = files_.find(path_key(change));
  if (found == files_.end()) return Look::kNever;
  return found->second.state == state_key(change) ? Look::kSame
                                                  : Look::kChanged;
}

bool Looked::has_edit(const diff::Change& change, const diff::TextDiff& text,
                      size_t edit) const {
  auto found = files_.find(path_key(change));
  if (found == files_.end()) return false;
  return std::ranges::binary_search(found->second.edits,
                                    begin_of(diff::edit_digest(text, edit)));
}

void Looked::mark(const diff::Change& change, const diff::TextDiff* text) {
  File file{.state = state_key(change), .edits = {}};
  if (text != nullptr && text->edits.size() <= kMaxEdits)
    for (size_t i = 0; i < text->edits.size(); i++)
      file.edits.push_back(begin_of(diff::edit_digest(*text, i)));
  std::ranges::sort(file.edits);
  files_[path_key(change)] = std::move(file);
}

void Looked::take(const Looked& other, const diff::Change& change) {
  uint64_t key = path_key(change);
  auto found = other.files_.find(key);
  if (found != other.files_.end()) files_[key] = found->second;
}

void Looked::keep_only(const diff::ChangeSet& set) {
  if (files_.empty()) return;
  std::unordered_map<uint64_t, File> kept;
  for (const diff::Change& change : set.changes) {
    auto found = files_.find(path_key(change));
    if (found != files_.end()) kept.insert(files_.extract(found));
  }
  files_ = std::move(kept);
}

}  // namespace stoplog::cli
