// SPDX-License-Identifier: Apache-2.0
#include "cli/review_file.h"

#include <sys/sysmacros.h>

#include <algorithm>

#include "base/hash.h"
#include "base/strings.h"
#include "base/units.h"
#include "diff/content_hash.h"
#include "diff/file_patch.h"
#include "diff/git_meta.h"
#include "diff/git_unreviewed.h"

namespace stoplog::cli {
namespace {

constexpr uint64_t kLoadAtOnce = 128 << 10;

std::string side_text(const std::optional<fs::NodeState>& state) {
  if (!state) return "nothing";
  switch (state->type) {
    case fs::Type::kFile:
      return fmt::format("file of {}", print_size(state->size));
    case fs::Type::kDir:
      return "directory";
    case fs::Type::kSymlink:
      return fmt::format("symlink to {}", state->target);
    case fs::Type::kFifo:
      return "fifo";
    case fs::Type::kSocket:
      return "socket";
    case fs::Type::kChar:
    case fs::Type::kBlock:
      return fmt::format("{} device {}:{}",
                         state->type == fs::Type::kChar ? "character" : "block",
                         major(state->rdev), minor(state->rdev));
  }
  return "unknown";
}

bool is_file(const std::optional<fs::NodeState>& state) {
  return state && state->type == fs::Type::kFile;
}

// The patch from what is shown to what is stored, as far as it is no book.
void note_unreviewed(const diff::GitChange& git,
                     std::vector<std::string>& notes) {
  constexpr size_t kLines = 2000;
  if (git.unreviewed_count == 0) return;
  notes.push_back(
      fmt::format("files that no review shows: {}", git.unreviewed_count));
  for (const diff::UnreviewedFile& file : git.unreviewed)
    notes.push_back(fmt::format("    {} ({}{})", file.path, file.where,
                                file.stored ? "" : ", deleted"));
  std::string patch;
  std::vector<std::string> left_out;
  for (const diff::Change& change : diff::unreviewed_changes(git).changes)
    if (!diff::write_file_patch(change, {}, left_out,
                                [&](std::string_view s) { patch += s; }))
      break;
  size_t lines = 0;
  for (std::string_view line : split(patch, '\n')) {
    if (lines++ == kLines) {
      notes.push_back("… `stoplog diff .git/` prints all of it");
      return;
    }
    notes.emplace_back(line);
  }
}

void note_git(const diff::GitChange& git, std::vector<std::string>& notes) {
  for (const diff::RefMove& ref : git.refs) {
    notes.push_back(fmt::format("{}: {} -> {}", ref.name,
                                ref.from.value_or("none"),
                                ref.to.value_or("gone")));
    for (const std::string& subject : ref.subjects)
      notes.push_back("    " + subject);
  }
  if (git.index_changed)
    notes.push_back(fmt::format("index: {} added, {} modified, {} removed",
                                git.index_added, git.index_modified,
                                git.index_removed));
  if (git.objects_added + git.objects_removed > 0)
    notes.push_back(fmt::format("objects: {} added, {} removed",
                                git.objects_added, git.objects_removed));
  if (git.packs_added + git.packs_removed > 0)
    notes.push_back(fmt::format("packs: {} added, {} removed", git.packs_added,
                                git.packs_removed));
  if (git.commits > 0)
    notes.push_back(fmt::format("new commits: {}", git.commits));
  note_unreviewed(git, notes);
  for (const RelPath& other : git.others)
    notes.push_back("also: " + other.str());
  for (const std::string& sentence : git.unreadable) notes.push_back(sentence);
}

void note_mode(const fs::NodeState& a, const fs::NodeState& b,
               std::vector<std::string>& notes) {
  if (a.mode != b.mode)
    notes.push_back(
        fmt::format("mode {} -> {}", diff::mode_text(a), diff::mode_text(b)));
  if (a.uid != b.uid || a.gid != b.gid)
    notes.push_back(
        fmt::format("owner {}:{} -> {}:{}", a.uid, a.gid, b.uid, b.gid));
}

// Modes, owners and attributes, as far as they differ.
void note_metadata(const diff::Change& change,
                   std::vector<std::string>& notes) {
  if (!change.after) return;
  static const fs::NodeState kNothing;
  const fs::NodeState& a = change.before ? *change.before : kNothing;
  const fs::NodeState& b = *change.after;
  if (change.before) note_mode(a, b, notes);
  for (const auto& [name, value] : b.xattrs) {
    auto old = a.xattrs.find(name);
    if (old == a.xattrs.end())
      notes.push_back(fmt::format("attribute {} added", name));
    else if (old->second != value)
      notes.push_back(fmt::format("attribute {} changed", name));
  }
  for (const auto& [name, value] : a.xattrs)
    if (!b.xattrs.contains(name))
      notes.push_back(fmt::format("attribute {} removed", name));
}

// What is shown is what the decision is bound to: the draft is not locked while
// a person reads, so the content is compared with the hash that was taken.
Result<std::string> text_of(const std::optional<fs::NodeState>& state,
                            const std::optional<Sha256Digest>& digest) {
  if (!state || !state->content) return std::string();
  std::string text = TRY(diff::read_content(*state->content, diff::kTextLimit));
  if (digest && *digest != sha256(text))
    return fail(Code::kDrift,
                "it changed while you were reading: start the review again");
  return text;
}

// Nullopt: there are no lines in it.
Result<std::optional<diff::TextDiff>> compare(const diff::Change& change) {
  std::string before = TRY(text_of(change.before, change.old_sha256));
  std::string after = TRY(text_of(change.after, change.new_sha256));
  for (const std::string* side : {&before, &after})
    if (side->find('\0') != std::string::npos) return std::nullopt;
  return TRY(diff::diff_texts(std::move(before), std::move(after)));
}

// What stands for lines where there are none.
void note_bytes(const diff::Change& change, const char* why,
                std::vector<std::string>& notes) {
  notes.push_back(why);
  auto side = [&](const char* word, const std::optional<fs::NodeState>& state,
                  const std::optional<Sha256Digest>& digest) {
    if (!state) return;
    notes.push_back(fmt::format("{}: {} bytes{}", word, state->size,
                                digest ? ", sha256 " + hex(*digest) : ""));
  };
  side("before", change.before, change.old_sha256);
  side("after", change.after, change.new_sha256);
}

uint64_t cost(const diff::Change& change) {
  uint64_t sum = 0;
  if (is_file(change.before)) sum += change.before->size;
  if (is_file(change.after)) sum += change.after->size;
  return sum;
}

}  // namespace

LoadedFile load_file(const diff::Change& change) {
  LoadedFile out;
  if (change.git) {
    note_git(*change.git, out.notes);
    return out;
  }
  if (change.from) out.notes.push_back("moved from " + change.from->str());
  if (change.is_moved_directory())
    out.notes.push_back("a directory, moved with all that lies beneath it");
  note_metadata(change, out.notes);
  bool files = (is_file(change.before) || !change.before) &&
               (is_file(change.after) || !change.after);
  if (!files) {
    if (!change.is_moved_directory())
      out.notes.push_back(fmt::format("{} -> {}", side_text(change.before),
                                      side_text(change.after)));
    return out;
  }
  if (!change.content_changed && change.before && change.after) return out;
  constexpr char kBinary[] = "binary: decided as a whole";
  constexpr char kLarge[] = "too large to compare by lines: decided as a whole";
  if (change.binary || change.too_large) {
    note_bytes(change, change.binary ? kBinary : kLarge, out.notes);
    return out;
  }
  auto text = compare(change);
  if (!text) {
    if (text.error().err() == EFBIG)
      note_bytes(change, kLarge, out.notes);
    else
      out.notes.push_back("cannot be read: " + text.error().text());
    return out;
  }
  if (!*text) {
    note_bytes(change, kBinary, out.notes);
    return out;
  }
  // Looked at before it is known to differ (ReviewInput::early).
  bool same = change.before && change.after && (*text)->edits.empty();
  if (same)
    out.notes.push_back("the same content on both sides");
  else if ((*text)->edits.empty())
    out.notes.push_back("an empty file");
  out.text = std::move(**text);
  return out;
}

LoadedFile load_file(const diff::Change& change, const LookAtOne& look) {
  if (!look) return load_file(change);
  auto seen = look(change);
  // What is wrong with it is said when all is known.
  if (!seen) return load_file(change);
  if (!*seen) {
    LoadedFile same = load_file(change);
    same.unchanged = true;
    return same;
  }
  auto known = std::make_shared<const diff::Change>(std::move(**seen));
  LoadedFile out = load_file(*known);
  out.change = std::move(known);
  return out;
}

std::shared_ptr<const LoadedFile> DirectSource::get(size_t index) {
  return std::make_shared<const LoadedFile>(
      load_file(set_.changes[index], look_));
}

Result<std::unique_ptr<FileLoader>> FileLoader::create(
    const diff::ChangeSet& set, LookAtOne look) {
  auto files =
      TRY(Files::create([&set, look](size_t index, const Files::Unwanted&) {
        return std::optional(load_file(set.changes[index], look));
      }));
  return std::unique_ptr<FileLoader>(
      new FileLoader(set, std::move(look), std::move(files)));
}

std::shared_ptr<const LoadedFile> FileLoader::get(size_t index) {
  if (cost(set_.changes[index]) > kLoadAtOnce) return files_->get(index);
  if (auto kept = files_->kept(index)) return kept;
  auto file =
      std::make_shared<const LoadedFile>(load_file(set_.changes[index], look_));
  files_->keep(index, file);
  return file;
}

}  // namespace stoplog::cli
