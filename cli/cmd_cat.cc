// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"
#include "base/hash.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/marks.h"
#include "cli/opened.h"

namespace stoplog::cli {
namespace {

struct Subject {
  std::optional<fs::Mark> mark;
  std::string path;
};

// "MARK:PATH" when what stands before the colon is a mark; a file's name may
// hold a colon, too.
Subject subject_of(const Opened& opened, const std::string& word) {
  size_t colon = word.find(':');
  if (colon != word.npos) {
    auto mark = find_mark(opened.view->marks(), word.substr(0, colon));
    if (mark) return {std::move(*mark), word.substr(colon + 1)};
  }
  return {std::nullopt, word};
}

// Bytes at the end that may begin a character which goes on after them.
size_t unfinished(std::string_view text) {
  for (size_t n = 1; n <= 3 && n <= text.size(); ++n) {
    auto c = static_cast<unsigned char>(text[text.size() - n]);
    if ((c & 0xc0) == 0x80) continue;
    size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
    return whole > n ? n : 0;
  }
  return 0;
}

Status copy_out(Context& context, const fs::Content& content) {
  std::vector<std::byte> block(256u << 10);
  for (uint64_t at = 0;;) {
    size_t n = TRY(content.read(at, block));
    if (n == 0) return {};
    std::string_view text(reinterpret_cast<const char*>(block.data()), n);
    if (context.out.terminal()) {
      // Read again with what follows; the last bytes of a file as they are.
      if (n > 3) text.remove_suffix(unfinished(text));
      context.out.write(escape(text, Escape::kText));
    } else {
      context.out.write(text);
    }
    at += text.size();
  }
}

// A content that a commit kept and named, which no draft has.
Result<int> print_object(Context& context, std::string_view name) {
  Sha256Digest id;
  if (!unhex(name, id))
    return fail(Code::kUsage, "'{}' is no object's name", escape(name));
  Doorstep door = TRY(open_doorstep(context));
  auto content = TRY_CTX(door.objects->content(id), "cannot read the object");
  TRY(copy_out(context, *content));
  return kDone;
}

Result<int> run(Context& context, const Args& args) {
  constexpr std::string_view kObject = "object:";
  if (args.positionals[0].starts_with(kObject))
    return print_object(context, args.positionals[0].substr(kObject.size()));
  draft::Draft draft = TRY(context.need_draft());
  Opened opened = TRY(open_draft(context, draft, {}));
  Subject subject = subject_of(opened, args.positionals[0]);
  RelPath path =
      TRY(draft::workspace_path(*TRY(context.workspace()), subject.path));
  std::unique_ptr<fs::View> then;
  if (subject.mark) then = TRY(view_at(opened, subject.mark->position));
  const fs::View& view =
      then ? *then : static_cast<const fs::View&>(*opened.view);
  std::optional<fs::NodeState> state = TRY(view.draft_state(path));
  // No such file: a mark was meant, and there is none.
  const std::string& word = args.positionals[0];
  if (size_t colon = word.find(':');
      !state && !subject.mark && word.starts_with('@') && colon != word.npos)
    TRY(find_mark(opened.view->marks(), word.substr(0, colon)));
  if (!state)
    return std::unexpected(
        Error(Code::kUsage,
              fmt::format("the draft has no file '{}'{}", escape(path.str()),
                          subject.mark ? " there" : ""))
            .with_hint("a PATH is seen from the current directory; `stoplog "
                       "status` lists what is held"));
  if (state->type == fs::Type::kSymlink) {
    context.out.write(context.out.terminal() ? escape(state->target) + "\n"
                                             : state->target);
    return kDone;
  }
  if (state->type != fs::Type::kFile || !state->content)
    return fail(Code::kUsage, "'{}' is no file", escape(path.str()));
  TRY_CTX(copy_out(context, *state->content),
          fmt::format("cannot read '{}'", escape(path.str())));
  return kDone;
}

}  // namespace

extern const Command k_cat_command{
    .name = "cat",
    .summary = "a file as the draft has it",
    .help =
        "usage: stoplog cat [MARK:]PATH | object:ID\n"
        "\n"
        "Prints the file at PATH as the draft has it now, or had it at MARK:\n"
        "@4 is before command 4, @4. after it, or a snapshot's name. To a "
        "pipe\n"
        "byte for byte; on a terminal what could harm it is escaped. object:ID "
        "is\n"
        "a content that a commit kept, as it was named.\n"
        "\n"
        "example: stoplog cat @2:src/main.c\n",
    .min = 1,
    .max = 1,
    .run = run};

}  // namespace stoplog::cli
