// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"
#include "base/json.h"
#include "base/sys_file.h"
#include "cli/command.h"
#include "cli/doctor_checks.h"
#include "cli/exit_codes.h"
#include "cli/review_text.h"
#include "draft/jail_setup.h"
#include "draft/workspace.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {{"json"}};

using jail::Check;
using jail::Verdict;

const char* word_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarn:
      return "warn";
    case Verdict::kFail:
      return "fail";
  }
  return "fail";
}

std::string json_of(const std::vector<Check>& checks, const jail::Held& limits,
                    bool ok) {
  Json list = Json::array();
  for (const Check& check : checks)
    list.push(Json::object()
                  .set("name", check.name)
                  .set("state", word_of(check.verdict))
                  .set("detail", check.detail)
                  .set("hint", check.hint.empty() ? Json() : Json(check.hint)));
  Json held = Json::object();
  for (jail::LimitKind kind : jail::kAllLimits)
    held.set(jail::limit_name(kind), jail::mechanism_name(limits[kind]));
  // By the daemon itself, whatever the machine.
  held.set("disk", "overlay").set("inodes", "overlay");
  return Json::object()
             .set("version", 1)
             .set("ok", ok)
             .set("checks", list)
             .set("limits", held)
             .dump() +
         "\n";
}

constexpr size_t kIndent = 17;
constexpr size_t kWhole = 1 << 20;  // not broken

// On a terminal broken at blanks, what follows under what came first; `head` is
// as wide as the indent, and safe.
void write_wrapped(Output& out, std::string head, std::string_view raw) {
  size_t width = out.terminal() && out.width() > 2 * kIndent
                     ? out.width() - kIndent
                     : kWhole;
  for (const std::string& row : wrap(raw, width)) {
    out.write(head + row + "\n");
    head.assign(kIndent, ' ');
  }
}

void print(Output& out, const Check& check) {
  const char* color = check.verdict == Verdict::kOk     ? "32"
                      : check.verdict == Verdict::kWarn ? "33"
                                                        : "31;1";
  std::string word = fmt::format("{:<4}", word_of(check.verdict));
  if (out.color()) word = fmt::format("\x1b[{}m{}\x1b[m", color, word);
  std::string head = fmt::format("{} {:<11} ", word, check.name);
  write_wrapped(out, head, check.detail);
  if (!check.hint.empty())
    write_wrapped(out, std::string(kIndent, ' '), "hint: " + check.hint);
}

std::string limits_text(const jail::Held& limits) {
  std::string text = "limits: ";
  for (jail::LimitKind kind : jail::kAllLimits)
    text += limits[kind] == jail::Mechanism::kNone
                ? fmt::format("{} by nothing, ", jail::limit_name(kind))
                : fmt::format("{} by {}, ", jail::limit_name(kind),
                              jail::mechanism_name(limits[kind]));
  return text + "disk and inodes by overlay";
}

Result<int> run(Context& context, const Args& args) {
  const draft::Layout& layout = *TRY(context.layout());
  std::vector<Check> checks;
  // What fails in here fails by intent, and is not to be mended.
  if (draft::inside_jail())
    checks.push_back({.name = "inside",
                      .verdict = Verdict::kFail,
                      .detail = "this is the inside of a stoplog jail, which "
                                "cannot hold another one",
                      .hint = "run commands as they are; what follows is of "
                              "the jail, not of the machine"});
  checks.push_back(check_kernel());
  checks.push_back(check_fuse());
  checks.push_back(check_fusermount());
  jail::ProbeReport probe =
      jail::probe_jail(draft::jail_identity("doctor", {}));
  checks.insert(checks.end(), probe.checks.begin(), probe.checks.end());
  auto workspace = context.workspace();
  checks.push_back(check_watches());
  checks.push_back(check_rings());
  checks.push_back(
      check_reflink(layout, workspace ? (*workspace)->path : std::string()));
  checks.push_back(check_space(layout));
  checks.push_back(check_state(layout));
  if (workspace)
    checks.push_back(judge_workspace(look_at_workspace((*workspace)->path)));
  bool ok = true;
  for (const Check& check : checks)
    if (check.verdict == Verdict::kFail) ok = false;
  if (args.has("json")) {
    context.out.write(json_of(checks, probe.limits, ok));
    return ok ? kDone : kCannotHold;
  }
  for (const Check& check : checks) print(context.out, check);
  size_t width = context.out.terminal() ? context.out.width() : kWhole;
  for (const std::string& row : wrap(limits_text(probe.limits), width))
    context.out.write(row + "\n");
  context.out.write(ok ? "`stoplog run` works here\n"
                       : "`stoplog run` does not work here\n");
  return ok ? kDone : kCannotHold;
}

}  // namespace

extern const Command k_doctor_command{
    .name = "doctor",
    .summary = "what this machine can hold, and why not",
    .help =
        "usage: stoplog doctor [--json]\n"
        "\n"
        "Tries each mechanism that stoplog stands on: FUSE, namespaces, "
        "AppArmor,\n"
        "seccomp, Landlock, control groups, watches, reflink, room on the "
        "disk, what\n"
        "earlier runs left. Says what follows from one that is missing, and "
        "what to\n"
        "do. Exit 0 when `run` would work, else 5.\n"
        "\n"
        "      --json  for programs\n"
        "\n"
        "example: stoplog doctor\n",
    .options = kOptions,
    .run = run};

}  // namespace stoplog::cli
