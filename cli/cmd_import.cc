// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/escape.h"
#include "base/json.h"
#include "base/sys_file.h"
#include "cli/bundle_flow.h"
#include "cli/command.h"
#include "cli/exit_codes.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"json"}};

// A symlink to a bundle is as good as the bundle; a FIFO is not.
Result<Fd> open_bundle(const std::string& file) {
  std::error_code error;
  std::string path = std::filesystem::canonical(file, error);
  if (error) return fail_errno(error.value());
  Fd fd = TRY(sys::openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK));
  if (!S_ISREG(TRY(sys::fstat(fd.get())).mode))
    return fail(Code::kInvalid, "it is no regular file");
  return fd;
}

Result<int> run(Context& context, const Args& args) {
  const std::string& file = args.positionals[0];
  const std::string cannot = fmt::format("cannot import '{}'", escape(file));
  Fd fd = TRY_CTX(open_bundle(file), cannot);
  std::optional<std::string> name;
  if (args.positionals.size() > 1) name = args.positionals[1];
  auto got = read_bundle(context, fd.get(), name);
  if (!got && got.error().code() == Code::kUsage && !name)
    return std::unexpected(
        std::move(got.error())
            .context(cannot)
            .with_hint(
                fmt::format("`stoplog import '{}' NAME` gives it another name",
                            escape(file))));
  BundleRead read = TRY_CTX(std::move(got), cannot);
  bool same = read.digest == read.made_digest;
  if (args.has("json"))
    context.out.write(Json::object()
                          .set("version", 1)
                          .set("name", read.draft.name)
                          .set("id", read.draft.id)
                          .set("digest", read.digest)
                          .set("same_digest", same)
                          .dump() +
                      "\n");
  else
    context.out.write(read.draft.name + "\n");
  if (!same)
    context.out.note(
        "the change set has another digest here than where it was made: "
        "owners, ignore rules or the policy differ");
  context.out.hint("it is the current draft now; `stoplog status` shows it");
  return kDone;
}

}  // namespace

extern const Command k_import_command{
    .name = "import",
    .summary = "take a draft that `export` wrote",
    .help =
        "usage: stoplog import FILE [NAME] [--json]\n"
        "\n"
        "Makes a draft over this workspace from a bundle that `stoplog "
        "export`\n"
        "wrote, on this machine or another: all its marks, data and record,\n"
        "under its own name or NAME, and makes it the current one. The "
        "workspace\n"
        "must have what the draft saw: where it differs nothing is made, exit "
        "3,\n"
        "and the paths are named. Approvals are given anew.\n"
        "\n"
        "      --json  for programs\n"
        "\n"
        "example: stoplog import work.stoplog\n",
    .options = kOptions,
    .min = 1,
    .max = 2,
    .run = run};

}  // namespace stoplog::cli
