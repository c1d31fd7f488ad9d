// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "base/escape.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/sys_file.h"
#include "base/units.h"
#include "cli/bundle_flow.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/opened.h"
#include "cli/out_file.h"
#include "diff/patch.h"
#include "diff/render.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"patch"}, {"ignored"}, {"json"}};

Result<diff::PatchReport> write_to(const Opened& opened,
                                   const diff::ChangeSet& set, bool ignored,
                                   const diff::Sink& sink) {
  diff::PatchOptions options{.ignored = ignored, .git = false};
  options.progress = [](size_t, size_t) { return noted_interrupt() == 0; };
  auto report = TRY(diff::write_patch(*opened.view, set, options, sink));
  TRY(check_interrupt());
  return report;
}

Result<diff::PatchReport> write_patch_file(const OutFile& file,
                                           const Opened& opened,
                                           const diff::ChangeSet& set,
                                           bool ignored) {
  diff::PatchReport report;
  TRY(file.write(0644, [&](int fd) -> Status {
    Status written;
    report = TRY(write_to(opened, set, ignored, [&](std::string_view text) {
      if (written) written = sys::write_full(fd, text);
    }));
    return written;
  }));
  return report;
}

Result<int> export_bundle(Context& context, const Args& args) {
  const std::string& file = args.positionals[0];
  draft::Draft draft = TRY(context.need_draft());
  OutFile out = TRY(OutFile::at(file));
  Opened opened = TRY(open_draft(context, draft, {.only_marks = true}));
  BundleWritten written;
  // 0600: it holds what the agent was shown and made.
  TRY_CTX(out.write(0600,
                    [&](int fd) -> Status {
                      written = TRY(write_bundle(context, opened, fd));
                      return {};
                    }),
          fmt::format("cannot write '{}'", escape(file)));
  for (const std::string& note : written.notes) context.out.note(note);
  if (args.has("json"))
    context.out.write(Json::object()
                          .set("version", 1)
                          .set("name", draft.name)
                          .set("digest", written.digest)
                          .set("bytes", written.bytes)
                          .dump() +
                      "\n");
  else
    context.out.write(fmt::format("draft '{}' in '{}', {}\n", draft.name,
                                  escape(file), print_size(written.bytes)));
  return kDone;
}

Result<int> run(Context& context, const Args& args) {
  if (!args.has("patch")) {
    if (args.has("ignored"))
      return fail(Code::kUsage, "--ignored goes with --patch");
    if (args.positionals.empty())
      return std::unexpected(
          Error(Code::kUsage, "'export' needs a file to write to")
              .with_hint("`stoplog export FILE`, or `stoplog export "
                         "--patch` for a patch"));
    return export_bundle(context, args);
  }
  draft::Draft draft = TRY(context.need_draft());
  std::optional<OutFile> file;
  if (!args.positionals.empty()) file = TRY(OutFile::at(args.positionals[0]));
  Opened opened = TRY(open_draft(context, draft, {}));
  diff::ChangeSet set =
      TRY(changes_of(opened, TRY(load_policy(context)),
                     {.digest = false, .count_lines = false, .risks = false}));
  bool ignored = args.has("ignored");
  diff::PatchReport report;
  if (args.positionals.empty() && context.out.terminal()) {
    // For eyes, as `diff` shows it.
    TRY(diff::render_terminal(
        *opened.view, set,
        {.terminal = true,
         .color = context.out.color(),
         .width = context.out.width(),
         .ignored = ignored},
        [&](std::string_view text) { context.out.write(text); }));
  } else if (args.positionals.empty()) {
    report = TRY(write_to(opened, set, ignored, [&](std::string_view text) {
      context.out.write(text);
    }));
  } else {
    report =
        TRY_CTX(write_patch_file(*file, opened, set, ignored),
                fmt::format("cannot write '{}'", escape(args.positionals[0])));
  }
  for (const std::string& line : report.not_in_patch)
    context.out.note(escape(line));
  return kDone;
}

}  // namespace

extern const Command k_export_command{
    .name = "export",
    .summary = "the draft as one file, or as a git patch",
    .help =
        "usage: stoplog export FILE [--json]\n"
        "       stoplog export --patch [FILE] [--ignored]\n"
        "\n"
        "Writes the whole draft to FILE, one zstd file: its timeline, data "
        "and\n"
        "record, and fingerprints of what it knows of the real tree. `stoplog\n"
        "import` takes it on another machine, over the same tree. Approvals\n"
        "do not travel. With --patch: its net changes in git's format, to "
        "FILE\n"
        "or stdout; `git apply --binary` of it gives the draft's tree. What "
        "git\n"
        "cannot say (empty directories, special files) is named.\n"
        "\n"
        "      --patch    a patch\n"
        "      --ignored  files that git ignores, too (with --patch)\n"
        "      --json     for programs\n"
        "\n"
        "example: stoplog export work.stoplog\n",
    .options = kOptions,
    .max = 1,
    .run = run};

}  // namespace stoplog::cli
