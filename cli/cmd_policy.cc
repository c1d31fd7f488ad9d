// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"
#include "base/json.h"
#include "base/sys_file.h"
#include "base/temp_file.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/policy_text.h"
#include "draft/policy.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {
    {"json"}, {"preset", 0, "NAME"}, {"force"}, {"here"}};

Result<draft::Policy> effective(Context& context, const Args& args) {
  const draft::Layout& layout = *TRY(context.layout());
  const draft::Workspace& ws = *TRY(context.workspace());
  draft::PolicyFiles files = TRY(draft::read_policy_files(layout, &ws));
  draft::Policy policy =
      TRY(draft::make_policy(files, args.value("preset").value_or("")));
  for (const std::string& warning : policy.warnings)
    context.out.note(escape(warning));
  return policy;
}

Result<int> init(Context& context, const Args& args) {
  const draft::Layout& layout = *TRY(context.layout());
  bool here = args.has("here");
  std::string dir = here ? TRY(context.workspace())->path : layout.config;
  std::string name =
      here ? draft::kWorkspacePolicyFile : draft::kUserPolicyFile;
  if (!here) TRY(draft::make_private_dir(dir));
  Fd fd = TRY_CTX(sys::openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY),
                  fmt::format("cannot open '{}'", escape(dir)));
  if (!args.has("force") && sys::statat(fd.get(), name))
    return std::unexpected(
        Error(Code::kRefused,
              fmt::format("cannot write '{}/{}': it exists", escape(dir), name))
            .with_hint("--force replaces it"));
  TRY_CTX(write_file(fd.get(), name, here ? kWorkspaceSample : kUserSample,
                     here ? 0644 : 0600),
          fmt::format("cannot write '{}/{}'", escape(dir), name));
  context.out.write(fmt::format("{}/{}\n", dir, name));
  return kDone;
}

Result<int> show(Context& context, const Args& args) {
  draft::Policy policy = TRY(effective(context, args));
  if (args.has("json")) {
    Json j = Json::object();
    j.set("version", 1).set("digest", policy.digest());
    j.set("policy", policy.to_json());
    Json origins = Json::object();
    for (const PolicyLine& line : policy_lines(policy))
      origins.set(line.key, line.origin);
    context.out.write(j.set("origins", origins).dump() + "\n");
    return kDone;
  }
  std::string section;
  for (const PolicyLine& line : policy_lines(policy)) {
    size_t dot = line.key.find('.');
    if (line.key.substr(0, dot) != section) {
      section = line.key.substr(0, dot);
      context.out.write(fmt::format("[{}]\n", section));
    }
    std::string text =
        fmt::format("{} = {}", line.key.substr(dot + 1), line.value);
    context.out.write(
        fmt::format("{:<48} # {}\n", escape(text), escape(line.origin)));
  }
  context.out.write(fmt::format("# digest {}\n", policy.digest()));
  return kDone;
}

Result<int> check(Context& context, const Args& args,
                  const std::string& subject) {
  draft::Policy policy = TRY(effective(context, args));
  Explanation why = TRY(explain(policy, *TRY(context.workspace()), subject));
  if (args.has("json")) {
    Json j = Json::object();
    j.set("version", 1).set("subject", subject).set("kind", why.kind);
    j.set("verdict", why.verdict).set("reasons", Json::strings(why.reasons));
    context.out.write(j.dump() + "\n");
    return kDone;
  }
  context.out.write(
      fmt::format("{} {}: {}\n", why.kind, escape(subject), why.verdict));
  for (const std::string& reason : why.reasons)
    context.out.write("  " + escape(reason) + "\n");
  return kDone;
}

Result<int> run(Context& context, const Args& args) {
  std::string what = args.positionals.empty() ? "show" : args.positionals[0];
  size_t count = args.positionals.size();
  if (what == "show" && count <= 1) return show(context, args);
  if (what == "init" && count == 1) return init(context, args);
  if (what == "check" && count == 2)
    return check(context, args, args.positionals[1]);
  return std::unexpected(
      Error(Code::kUsage, "policy takes init, show, or check with one thing")
          .with_hint("see `stoplog policy --help`"));
}

}  // namespace

extern const Command k_policy_command{
    .name = "policy",
    .summary = "show, explain or start the policy",
    .help =
        "usage: stoplog policy [show|init|check PATH|HOST|CMD]\n"
        "\n"
        "show   the policy in force, each value with where it comes from:\n"
        "       the default, your config.toml, a preset, or the workspace's\n"
        "       .stoplog.toml, which may only tighten\n"
        "init   write a commented config.toml to start from\n"
        "check  say what the policy means for a path, a host or a command\n"
        "\n"
        "      --preset NAME  as `run --preset NAME` would see it\n"
        "      --here         init: the workspace's .stoplog.toml instead\n"
        "      --force        init: replace a file that exists\n"
        "      --json         for programs\n"
        "\n"
        "example: stoplog policy check .env\n",
    .options = kOptions,
    .max = 2,
    .run = run};

}  // namespace stoplog::cli
