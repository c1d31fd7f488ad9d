// SPDX-License-Identifier: Apache-2.0
#include "diff/file_patch.h"

#include <algorithm>

#include "base/escape.h"
#include "diff/binary_patch.h"
#include "diff/content_hash.h"
#include "diff/hunks.h"

namespace stoplog::diff {
namespace {

constexpr std::string_view kNoId = "0000000000000000000000000000000000000000";

using State = std::optional<fs::NodeState>;

bool is_blob(const State& state) {
  return state &&
         (state->type == fs::Type::kFile || state->type == fs::Type::kSymlink);
}

// One side as git stores it. The text is there when it fits.
struct Side {
  bool exists = false;
  std::string mode;
  std::string id{kNoId};
  uint64_t size = 0;
  SharedText text;
  const fs::Content* content = nullptr;
};

SharedText shared(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

// Of a side that is absent: nothing.
SharedText text_or_nothing(const Side& side) {
  static const SharedText nothing = shared("");
  return side.text ? side.text : nothing;
}

// With its id when it is no larger than `max_id`.
Result<Side> side_of(const State& state, uint64_t max_id) {
  Side side;
  if (!is_blob(state)) return side;
  side.exists = true;
  side.mode = git_mode(state);
  if (state->type == fs::Type::kSymlink) {
    side.text = shared(state->target);
  } else {
    side.content = state->content.get();
    if (side.content->size() <= kTextLimit)
      side.text = shared(TRY(read_content(*side.content, kTextLimit)));
  }
  side.size = side.text ? side.text->size() : side.content->size();
  if (max_id == 0) return side;
  if (side.text) {
    side.id = hex(git_blob_id(*side.text));
  } else if (side.size <= max_id) {
    side.id = hex(TRY(git_blob_id(*side.content)));
  }
  return side;
}

// A side whose content nobody needs.
Result<Side> head_of(const State& state) {
  Side side;
  side.exists = true;
  side.mode = git_mode(state);
  return side;
}

// "--- a/name"; a tab ends a name with a space in it, as git does for the
// sake of other patch programs.
std::string name_line(std::string_view mark, std::string_view prefix,
                      const RelPath& path, bool exists) {
  if (!exists) return fmt::format("{} /dev/null\n", mark);
  std::string name = fmt::format("{}{}", prefix, path.str());
  bool space = name.find(' ') != std::string::npos;
  return fmt::format("{} {}{}\n", mark, quote_name(name), space ? "\t" : "");
}

// git's percentage: how much of the larger side is in both. Not checked by
// `git apply`; for a reader.
unsigned similarity(const Side& before, const Side& after,
                    const std::vector<Edit>* known) {
  if (!before.text || !after.text || before.text->empty() ||
      after.text->empty())
    return 0;
  auto diff = diff_texts(before.text, after.text, known);
  if (!diff) return 0;
  uint64_t gone = 0;
  for (const Edit& e : diff->edits)
    gone += diff->old_lines.range(e.old_line, e.old_count).size();
  uint64_t kept = before.text->size() - gone;
  uint64_t larger = std::max(before.text->size(), after.text->size());
  return std::min<unsigned>(99, static_cast<unsigned>(kept * 100 / larger));
}

class FilePatch {
 public:
  FilePatch(const FilePatchOptions& options, const std::vector<Edit>* known,
            std::vector<std::string>& left_out, const Sink& sink)
      : options_(options), known_(known), left_out_(left_out), sink_(sink) {}

  // `old_path` and `path` differ for a rename only. `same`: both sides have the
  // same content, which was not read then.
  Status write(const RelPath& old_path, const RelPath& path, Side before,
               Side after, bool same) {
    bool renamed = old_path != path;
    std::string head =
        fmt::format("diff --git {} {}\n", quote_name("a/" + old_path.str()),
                    quote_name("b/" + path.str()));
    bool same_mode = before.mode == after.mode;
    if (!before.exists) {
      head += fmt::format("new file mode {}\n", after.mode);
    } else if (!after.exists) {
      head += fmt::format("deleted file mode {}\n", before.mode);
    } else if (!same_mode) {
      head +=
          fmt::format("old mode {}\nnew mode {}\n", before.mode, after.mode);
    }
    if (renamed)
      head +=
          fmt::format("similarity index {}%\nrename from {}\nrename to {}\n",
                      same ? 100 : similarity(before, after, known_),
                      quote_name(old_path.str()), quote_name(path.str()));
    if (same && same_mode && !renamed) return {};
    sink_(head);
    if (same) return {};
    bool keeps_mode = before.exists && after.exists && same_mode;
    if (options_.exact)
      sink_(fmt::format("index {}..{}{}\n", before.id, after.id,
                        keeps_mode ? " " + before.mode : ""));
    return write_content(old_path, path, std::move(before), std::move(after));
  }

 private:
  Status write_content(const RelPath& old_path, const RelPath& path,
                       Side before, Side after) {
    if (before.size == 0 && after.size == 0) return {};
    bool text =
        (!before.exists || before.text) && (!after.exists || after.text);
    auto has_nul = [](const Side& side) {
      return side.text && side.text->find('\0') != std::string::npos;
    };
    if (text && !has_nul(before) && !has_nul(after)) {
      auto diff =
          diff_texts(text_or_nothing(before), text_or_nothing(after), known_);
      if (diff) {
        sink_(name_line("---", "a/", old_path, before.exists));
        sink_(name_line("+++", "b/", path, after.exists));
        write_hunks(*diff);
        return {};
      }
      if (diff.error().err() != EFBIG) return std::unexpected(diff.error());
    }
    bool too_much = std::max(before.size, after.size) > options_.max_literal;
    if (too_much || !options_.exact) {
      sink_(fmt::format(
          "Binary files {} and {} differ\n",
          before.exists ? quote_name("a/" + old_path.str()) : "/dev/null",
          after.exists ? quote_name("b/" + path.str()) : "/dev/null"));
      if (too_much)
        left_out_.push_back(fmt::format(
            "'{}' has more than {} bytes: the patch names it without content",
            path.str(), options_.max_literal));
      return {};
    }
    sink_("GIT binary patch\n");
    TRY(write_side(after));
    return write_side(before);  // so that `git apply -R` works
  }

  Status write_side(const Side& side) const {
    if (side.text || !side.exists)
      return write_literal(*text_or_nothing(side), sink_);
    return write_literal(*side.content, sink_);
  }

  void write_hunks(const TextDiff& diff) const {
    auto range = [](uint32_t start, uint32_t count) {
      return count == 1 ? fmt::format("{}", start)
                        : fmt::format("{},{}", start, count);
    };
    for (const Hunk& hunk : make_hunks(diff, options_.context)) {
      std::string out = fmt::format(
          "@@ -{} +{} @@{}{}\n", range(hunk.old_start, hunk.old_lines),
          range(hunk.new_start, hunk.new_lines), hunk.header.empty() ? "" : " ",
          hunk.header);
      for (const Line& line : hunk.lines) {
        out += line.origin;
        out += line.text;
        if (!line.text.ends_with('\n'))
          out += "\n\\ No newline at end of file\n";
        if (out.size() > 64 << 10) {
          sink_(out);
          out.clear();
        }
      }
      sink_(out);
    }
  }

  const FilePatchOptions& options_;
  const std::vector<Edit>* known_;  // of the two texts; may be null
  std::vector<std::string>& left_out_;
  const Sink& sink_;
};

}  // namespace

void name_unsayable(const Change& change, std::vector<std::string>& left_out) {
  auto say = [&](std::string_view what) {
    left_out.push_back(fmt::format("'{}' {}", change.shown_path(), what));
  };
  const State& shown = change.after ? change.after : change.before;
  bool dir = shown->type == fs::Type::kDir;
  if (change.too_deep != 0) {
    say("has names beneath it that are too deep to be shown");
  } else if (!is_blob(shown) && !dir) {
    say("is a special file, which git does not know");
  } else if (dir && change.kind != Kind::kType &&
             !change.is_moved_directory()) {
    say(change.kind == Kind::kMode
            ? "has another mode: git keeps no modes of directories"
        : shown->xattrs.empty()
            ? "is an empty directory, which git does not know"
            : "is a directory with attributes, which git does not know");
  } else if (change.mode_changed &&
             git_mode(change.before) == git_mode(change.after)) {
    say("has another mode or attribute that git does not keep");
  }
}

std::string git_mode(const State& state) {
  if (!is_blob(state)) return "";
  if (state->type == fs::Type::kSymlink) return "120000";
  return (state->mode & S_IXUSR) != 0 ? "100755" : "100644";
}

Status write_file_patch(const Change& change, const FilePatchOptions& options,
                        std::vector<std::string>& left_out, const Sink& sink) {
  name_unsayable(change, left_out);
  const RelPath& old_path = change.from ? *change.from : change.path;
  bool both = is_blob(change.before) && is_blob(change.after);
  bool retyped = both && change.before->type != change.after->type;
  bool same = both && !retyped && !change.content_changed;
  const uint64_t max_id = options.exact ? options.max_literal : 0;
  Side before =
      TRY(same ? head_of(change.before) : side_of(change.before, max_id));
  Side after =
      TRY(same ? head_of(change.after) : side_of(change.after, max_id));
  if (!before.exists && !after.exists) return {};
  FilePatch patch(options, retyped ? nullptr : change.edits.get(), left_out,
                  sink);
  if (!retyped)
    return patch.write(old_path, change.path, std::move(before),
                       std::move(after), same);
  TRY(patch.write(old_path, old_path, std::move(before), {}, false));
  return patch.write(change.path, change.path, {}, std::move(after), false);
}

Result<unsigned> similarity_of(const Change& change) {
  if (!change.content_changed) return 100u;
  return similarity(TRY(side_of(change.before, 0)),
                    TRY(side_of(change.after, 0)), change.edits.get());
}

Status write_pure_rename(const Moved& moved, const Sink& sink) {
  if (moved.state.type != fs::Type::kFile &&
      moved.state.type != fs::Type::kSymlink)
    return {};
  sink(fmt::format(
      "diff --git {} {}\nsimilarity index 100%\n"
      "rename from {}\nrename to {}\n",
      quote_name("a/" + moved.from.str()), quote_name("b/" + moved.path.str()),
      quote_name(moved.from.str()), quote_name(moved.path.str())));
  return {};
}

}  // namespace stoplog::diff
