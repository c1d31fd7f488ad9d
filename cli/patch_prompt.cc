// SPDX-License-Identifier: Apache-2.0
#include "cli/patch_prompt.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/escape.h"
#include "base/strings.h"
#include "base/sys_answers.h"
#include "base/sys_file.h"
#include "base/sys_terminal.h"
#include "cli/review_file.h"
#include "cli/review_text.h"
#include "cli/review_words.h"
#include "diff/paint.h"

namespace stoplog::cli {
namespace {

constexpr size_t kMaxAnswer = 4096;

// Lines of input, one at a time; nullopt at its end.
class Answers {
 public:
  explicit Answers(int fd) : fd_(fd) {}
  Result<std::optional<std::string>> next() {
    while (true) {
      size_t end = buffer_.find('\n');
      if (end != std::string::npos || buffer_.size() > kMaxAnswer) {
        end = std::min(end, buffer_.size());
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return std::optional(std::string(trim(line)));
      }
      std::byte piece[1024];
      size_t got = TRY(sys::read_some(fd_, piece));
      if (got == 0) {
        if (buffer_.empty()) return std::optional<std::string>();
        buffer_ += '\n';
        continue;
      }
      buffer_.append(reinterpret_cast<const char*>(piece), got);
    }
  }

 private:
  int fd_;
  std::string buffer_;
};

enum class Next { kFile, kQuit };

constexpr std::string_view kHelp =
    "y - approve this\n"
    "n - leave this undecided: held, and nothing is recorded\n"
    "x - reject this; asks for a reason\n"
    "q - quit; what was answered is kept\n"
    "a - approve this and all later hunks of the file\n"
    "d - leave this and all later hunks of the file undecided\n"
    "g - go to a hunk by its number\n"
    "/ - go to the next hunk that holds a text\n"
    "j - leave this undecided, see the next undecided hunk\n"
    "J - leave this undecided, see the next hunk\n"
    "k - leave this undecided, see the previous undecided hunk\n"
    "K - leave this undecided, see the previous hunk\n"
    "s - split this hunk\n"
    "? - this help\n";

// What an answer says: g and / may have more behind them, any other key is one
// letter (`abort` approves nothing). ' ': no key.
char key_of(std::string_view answer) {
  if (answer.empty()) return ' ';
  char key = answer.front();
  return answer.size() == 1 || key == 'g' || key == '/' ? key : ' ';
}

struct Ask {
  diff::Hunk hunk;
  bool mode = false;
  bool answered = false;
};

class Prompt {
 public:
  explicit Prompt(const PromptRequest& request)
      : request_(request), answers_(request.input) {}

  Result<PromptEnd> run() {
    std::vector<size_t> order;
    for (size_t index : diff::display_order(request_.set))
      if (wanted(request_.set.changes[index])) order.push_back(index);
    end_.asked = order.size();
    for (size_t i = 0; i < order.size(); i++) {
      Next next = TRY(file(request_.set.changes[order[i]], i, order.size()));
      if (next == Next::kQuit) {
        end_.quit = i + 1 < order.size();
        break;
      }
    }
    return end_;
  }

 private:
  bool wanted(const diff::Change& change) const {
    if (!request_.decided_too && !request_.decisions.summary(change).undecided)
      return false;
    if (request_.paths.empty())
      return diff::is_listed(change, request_.ignored, {});
    return std::ranges::any_of(request_.paths, [&](const RelPath& path) {
      return change.path.is_within(path);
    });
  }

  Status print(std::string_view text) {
    return sys::write_full(request_.output, text);
  }
  std::string paint(std::string_view code, std::string text) const {
    if (!request_.color) return text;
    return fmt::format("\x1b[{}m{}\x1b[m", code, text);
  }

  Status header(const diff::Change& change, size_t at, size_t count) {
    std::string out = paint(
        "1", fmt::format("file {} of {}: {} ({})", at + 1, count,
                         escape(change.shown_path()), name_of(change.kind)));
    out += '\n';
    for (const diff::Risk& risk : change.risks) {
      std::string line =
          fmt::format("{} {}: {}",
                      risk.level == diff::Level::kDanger ? "DANGER" : "warning",
                      risk.code, escape(risk.message));
      if (risk.level == diff::Level::kInfo) continue;
      out += paint(risk.level == diff::Level::kDanger ? "1;31" : "33",
                   std::move(line)) +
             '\n';
    }
    if (change.drift) out += "drift: " + escape(*change.drift) + '\n';
    if (change.command != 0 && request_.command_text)
      out += fmt::format("made by command {}: {}\n", change.command,
                         escape(request_.command_text(change.command)));
    for (const std::string& note : loaded_.notes) out += escape(note) + '\n';
    return print(out);
  }

  Status show_hunk(const diff::Hunk& hunk) {
    std::string out =
        paint("36", fmt::format("@@ -{},{} +{},{} @@ {}", hunk.old_start,
                                hunk.old_lines, hunk.new_start, hunk.new_lines,
                                escape(hunk.header, Escape::kLine)));
    std::string by = makers_text(makers_.of(hunk.first_edit, hunk.edit_count));
    out += (by.empty() ? "" : "  by " + by) + '\n';
    for (size_t i = 0; i < hunk.lines.size(); ++i) {
      out += shown_line(hunk.lines, i, request_.color) + '\n';
      if (!hunk.lines[i].text.ends_with('\n'))
        out += "\\ no newline at end of file\n";
      if (out.size() > (64 << 10)) {
        TRY(print(out));
        out.clear();
      }
    }
    return print(out);
  }

  Result<std::optional<std::string>> ask(std::string_view question) {
    // What a command asked the terminal before answers no question of ours.
    if (!std::exchange(asked_, true))
      sys::forget_input(request_.input, request_.output);
    std::optional<std::string> answer;
    do {
      TRY(print(paint("1;34", std::string(question)) + " "));
      answer = TRY(answers_.next());
    } while (answer && !sys::is_typed(*answer));
    // Without an echo of the newline the next line would follow the prompt.
    if (!answer) TRY(print("\n"));
    return answer;
  }

  Result<Next> file(const diff::Change& change, size_t at, size_t count) {
    loaded_ = load_file(change);
    const diff::TextDiff* text = loaded_.text ? &*loaded_.text : nullptr;
    decision_ = request_.decisions.get(change, text);
    TRY(header(change, at, count));
    bool parts = has_parts(change) && text != nullptr;
    makers_ = {};
    if (parts && request_.makers)
      if (auto makers = request_.makers(change);
          makers && makers->edits.size() == text->edits.size())
        makers_ = std::move(*makers);
    pieces_.clear();
    if (parts && change.mode_changed) pieces_.push_back({{}, true, false});
    if (text != nullptr)
      for (diff::Hunk& hunk : diff::make_hunks(*text, request_.context))
        pieces_.push_back({std::move(hunk), false, false});
    if (!parts) return whole(change);
    if (decision_.parts.empty()) {
      decision_.parts.assign(text->edits.size(), decision_.whole);
      decision_.mode = decision_.whole;
    }
    if (!request_.decided_too)
      for (Ask& piece : pieces_)
        piece.answered = verdict_of(piece) != Verdict::kNone;
    return hunks(change);
  }

  Result<Next> whole(const diff::Change& change) {
    for (const Ask& piece : pieces_) TRY(show_hunk(piece.hunk));
    std::string question =
        fmt::format("Approve {} [y,n,x,q,a,d,?]?", question_of(change));
    while (true) {
      auto answer = TRY(ask(question));
      char key = answer ? key_of(*answer) : 'q';
      switch (key) {
        case 'y':
        case 'a':
          decision_.whole = Verdict::kApproved;
          TRY(record(change));
          return Next::kFile;
        case 'n':
        case 'd':
          decision_.whole = Verdict::kNone;
          TRY(record(change));
          return Next::kFile;
        case 'x':
          if (!TRY(ask_reason())) break;
          decision_.whole = Verdict::kRejected;
          TRY(record(change));
          return Next::kFile;
        case 'j':
        case 'J':
          return Next::kFile;
        case 'q':
          return Next::kQuit;
        default:
          TRY(explain(key, *answer));
      }
    }
  }

  Status explain(char key, const std::string& answer) {
    if (key == 'e')
      return print(
          "a hunk cannot be edited here: change the file in the draft, with "
          "`stoplog run`\n");
    if (answer.size() > 1)
      return print(
          fmt::format("one letter is expected, not '{}'\n", escape(answer)));
    return print(kHelp);
  }

  static std::string question_of(const diff::Change& change) {
    switch (change.kind) {
      case diff::Kind::kAdded:
        return "this addition";
      case diff::Kind::kDeleted:
        return "this deletion";
      case diff::Kind::kRenamed:
        return "this move";
      case diff::Kind::kMode:
        return "this change of mode";
      case diff::Kind::kType:
        return "this change of type";
      case diff::Kind::kModified:
        return "this change";
    }
    return "this change";
  }

  Result<Next> hunks(const diff::Change& change) {
    auto first = step(0, true, false);
    if (!first) return Next::kFile;
    at_ = *first;
    bool show = true;
    while (true) {
      if (std::exchange(show, true)) TRY(show_piece(change));
      auto answer = TRY(ask(fmt::format(
          "({}/{}) Approve this {} [y,n,x,q,a,d,j,J,k,K,g,/{},?]?", at_ + 1,
          pieces_.size(), pieces_[at_].mode ? "mode" : "hunk",
          pieces_[at_].hunk.edit_count > 1 ? ",s" : "")));
      if (!answer) return Next::kQuit;
      char key = key_of(*answer);
      if (key == 'q') return Next::kQuit;
      if (TRY(decide(change, key))) {
        auto next = step(at_, true, true);
        if (!next) return Next::kFile;
        at_ = *next;
        continue;
      }
      if (moved_) continue;
      show = TRY(go(key, *answer));
    }
  }

  // y n x a d: true when answered. `moved_` is set when nothing more is to be
  // done with the key.
  Result<bool> decide(const diff::Change& change, char key) {
    moved_ = false;
    switch (key) {
      case 'y':
      case 'n':
        give(pieces_[at_], key == 'y' ? Verdict::kApproved : Verdict::kNone);
        break;
      case 'x':
        if (!TRY(ask_reason())) {
          moved_ = true;
          return false;
        }
        give(pieces_[at_], Verdict::kRejected);
        break;
      case 'a':
      case 'd':
        for (size_t i = at_; i < pieces_.size(); i++)
          if (i == at_ || !pieces_[i].answered)
            give(pieces_[i], key == 'a' ? Verdict::kApproved : Verdict::kNone);
        break;
      default:
        return false;
    }
    TRY(record(change));
    return true;
  }

  // The keys that move: true when the hunk is to be shown again.
  Result<bool> go(char key, const std::string& answer) {
    std::optional<size_t> to;
    switch (key) {
      case 'j':
      case 'k':
        to = step(at_, key == 'j', true);
        break;
      case 'J':
        if (at_ + 1 < pieces_.size()) to = at_ + 1;
        break;
      case 'K':
        if (at_ > 0) to = at_ - 1;
        break;
      case 's':
        return split();
      case 'g':
        to = TRY(number(std::string(trim(answer.substr(1)))));
        break;
      case '/':
        to = TRY(find(std::string(answer.substr(1))));
        break;
      default:
        TRY(explain(key, answer));
        return false;
    }
    if (!to) {
      TRY(print("no such hunk\n"));
      return false;
    }
    at_ = *to;
    return true;
  }

  Result<std::optional<size_t>> number(std::string text) {
    if (text.empty()) {
      auto answer = TRY(ask("which hunk?"));
      text = answer.value_or("");
    }
    size_t n = 0;
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc() || n < 1 || n > pieces_.size())
      return std::optional<size_t>();
    return std::optional(n - 1);
  }

  Result<std::optional<size_t>> find(std::string text) {
    if (text.empty()) {
      auto answer = TRY(ask("search for?"));
      text = answer.value_or("");
    }
    for (size_t step = 1; step <= pieces_.size(); step++) {
      size_t i = (at_ + step) % pieces_.size();
      for (const diff::Line& line : pieces_[i].hunk.lines)
        if (matches(line.text, text)) return std::optional(i);
    }
    return std::optional<size_t>();
  }

  Result<bool> split() {
    Ask piece = pieces_[at_];
    if (piece.hunk.edit_count < 2) {
      TRY(print("this cannot be split further\n"));
      return false;
    }
    auto apart = diff::split_hunk(*loaded_.text, piece.hunk, request_.context);
    TRY(print(fmt::format("split into {} hunks\n", apart.size())));
    auto place = pieces_.erase(pieces_.begin() + static_cast<ptrdiff_t>(at_));
    for (diff::Hunk& hunk : apart) {
      place = pieces_.insert(place, {std::move(hunk), false, false});
      ++place;
    }
    return true;
  }

  // The next or previous piece without an answer; from `at` itself unless
  // `beyond`.
  std::optional<size_t> step(size_t at, bool forward, bool beyond) const {
    auto size = std::ssize(pieces_);
    auto i = static_cast<ptrdiff_t>(at);
    if (beyond) i += forward ? 1 : -1;
    for (; i >= 0 && i < size; i += forward ? 1 : -1)
      if (!pieces_[static_cast<size_t>(i)].answered)
        return static_cast<size_t>(i);
    // Those that were left undecided on the way come again, as in git.
    if (!forward) return std::nullopt;
    for (i = 0; i < size && i <= static_cast<ptrdiff_t>(at); i++)
      if (!pieces_[static_cast<size_t>(i)].answered &&
          static_cast<size_t>(i) != at)
        return static_cast<size_t>(i);
    return std::nullopt;
  }

  Verdict verdict_of(const Ask& piece) const {
    if (piece.mode) return decision_.mode;
    Verdict first = decision_.parts[piece.hunk.first_edit];
    for (size_t e = 1; e < piece.hunk.edit_count; e++)
      if (decision_.parts[piece.hunk.first_edit + e] != first)
        return Verdict::kNone;
    return first;
  }

  void give(Ask& piece, Verdict verdict) {
    piece.answered = true;
    if (piece.mode) decision_.mode = verdict;
    for (size_t e = 0; e < piece.hunk.edit_count; e++)
      decision_.parts[piece.hunk.first_edit + e] = verdict;
  }

  Status show_piece(const diff::Change& change) {
    const Ask& piece = pieces_[at_];
    if (!piece.mode) return show_hunk(piece.hunk);
    return print(fmt::format("mode {} -> {}\n", diff::mode_text(*change.before),
                             diff::mode_text(*change.after)));
  }

  // False when it was called off by the end of input.
  Result<bool> ask_reason() {
    auto answer = TRY(ask("reason (may be empty):"));
    if (!answer) return false;
    if (answer->empty() || decision_.reason.find(*answer) != std::string::npos)
      return true;
    if (!decision_.reason.empty()) decision_.reason += "; ";
    decision_.reason += answer->substr(0, 500);
    return true;
  }

  Status record(const diff::Change& change) {
    const diff::TextDiff* text = loaded_.text ? &*loaded_.text : nullptr;
    FileDecision now = normalized(change, decision_);
    if (now == request_.decisions.get(change, text)) return {};
    request_.decisions.put(change, text, now);
    end_.decided++;
    return request_.decisions.save();
  }

  const PromptRequest& request_;
  Answers answers_;
  bool asked_ = false;
  PromptEnd end_;
  LoadedFile loaded_;
  FileDecision decision_;
  FileMakers makers_;  // of the file's edits, when they are known
  std::vector<Ask> pieces_;
  size_t at_ = 0;
  bool moved_ = false;
};

}  // namespace

Result<PromptEnd> run_patch_prompt(const PromptRequest& request) {
  return Prompt(request).run();
}

}  // namespace stoplog::cli
