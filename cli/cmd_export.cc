// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"
#include "base/sys_file.h"
#include "base/temp_file.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/opened.h"
#include "diff/patch.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"patch"}, {"ignored"}};

Result<diff::PatchReport> write_to(const Opened& opened,
                                   const diff::ChangeSet& set, bool ignored,
                                   const diff::Sink& sink) {
  return diff::write_patch(*opened.view, set,
                           {.ignored = ignored, .git = false}, sink);
}

Result<diff::PatchReport> write_file_whole(const std::string& file,
                                           const Opened& opened,
                                           const diff::ChangeSet& set,
                                           bool ignored) {
  size_t slash = file.rfind('/');
  std::string dir = slash == file.npos ? "." : file.substr(0, slash + 1);
  Fd fd = TRY(sys::openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY));
  TempFile temp = TRY(TempFile::create(fd.get(), 0644));
  Status written;
  diff::PatchReport report =
      TRY(write_to(opened, set, ignored, [&](std::string_view text) {
        if (written) written = sys::write_full(temp.fd(), text);
      }));
  TRY(std::move(written));
  TRY(temp.commit(slash == file.npos ? file : file.substr(slash + 1)));
  return report;
}

Result<int> run(Context& context, const Args& args) {
  if (!args.has("patch"))
    return std::unexpected(
        Error(Code::kUsage, "this version exports patches only")
            .with_hint("`stoplog export --patch [FILE]`"));
  draft::Draft draft = TRY(context.need_draft());
  Opened opened = TRY(open_draft(context, draft, {}));
  diff::ChangeSet set =
      TRY(changes_of(opened, TRY(load_policy(context)),
                     {.digest = false, .count_lines = false, .risks = false}));
  bool ignored = args.has("ignored");
  diff::PatchReport report;
  if (args.positionals.empty()) {
    report = TRY(write_to(opened, set, ignored, [&](std::string_view text) {
      context.out.write(text);
    }));
  } else {
    report =
        TRY_CTX(write_file_whole(args.positionals[0], opened, set, ignored),
                fmt::format("cannot write '{}'", escape(args.positionals[0])));
  }
  for (const std::string& line : report.not_in_patch)
    context.out.note(escape(line));
  return kDone;
}

}  // namespace

extern const Command k_export_command{
    .name = "export",
    .summary = "the draft as a git patch",
    .help =
        "usage: stoplog export --patch [FILE] [--ignored]\n"
        "\n"
        "Writes the draft's net changes as a patch in git's format to FILE, "
        "or\n"
        "to stdout: `git apply --binary` of it gives the draft's tree. What "
        "git\n"
        "cannot say (empty directories, special files) is named.\n"
        "\n"
        "      --patch    a patch\n"
        "      --ignored  files that git ignores, too\n"
        "\n"
        "example: stoplog export --patch work.patch\n",
    .options = kOptions,
    .max = 1,
    .run = run};

}  // namespace stoplog::cli
