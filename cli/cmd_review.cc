// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/review_flow.h"

namespace stoplog::cli {
namespace {

Result<int> run(Context& context, const Args&) {
  return review_draft(context, TRY(context.need_draft()));
}

}  // namespace

extern const Command k_review_command{
    .name = "review",
    .summary = "decide on a full screen, file by file, hunk by hunk",
    .help =
        "usage: stoplog review\n"
        "\n"
        "Shows what the draft holds as it is now: files on the left, dangers\n"
        "and deletions first, their hunks on the right.\n"
        "\n"
        "  j k  line      J K  hunk        [ ]  file      n N  undecided\n"
        "  y    approve   x    reject      a d  rest of the file\n"
        "  s    split     { }  context     /    search    !    next danger\n"
        "  u U  undo, redo a decision      w    new since the last look\n"
        "  c    commit what is approved    q    leave     ?    all keys\n"
        "\n"
        "Decisions are kept when you leave. Commit stays closed while a "
        "danger\n"
        "has not been seen. Without a full screen: `stoplog approve -p`.\n"
        "\n"
        "example: stoplog run -- make format; stoplog review\n",
    .run = run};

}  // namespace stoplog::cli
