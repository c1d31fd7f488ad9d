// SPDX-License-Identifier: Apache-2.0
// `run`: finds or makes the draft and its daemon, hands the command over, and
// relays its streams until it has ended.
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/escape.h"
#include "base/sys_file.h"
#include "base/temp_file.h"
#include "cli/command.h"
#include "cli/doctor_checks.h"
#include "cli/exit_codes.h"
#include "cli/interrupted.h"
#include "cli/review_flow.h"
#include "cli/run_dry.h"
#include "cli/run_options.h"
#include "cli/run_summary.h"
#include "draft/client.h"
#include "draft/ledger.h"
#include "draft/report.h"
#include "jail/relay.h"

namespace stoplog::cli {
namespace {

constexpr OptionSpec kOptions[] = {
    {"new"},
    {"force"},
    {"time", 0, "D"},
    {"cpu", 0, "D"},
    {"cpus", 0, "N"},
    {"memory", 0, "SIZE"},
    {"pids", 0, "N"},
    {"files", 0, "N"},
    {"output", 0, "SIZE"},
    {"disk", 0, "SIZE"},
    {"inodes", 0, "N"},
    {"net", 0, "none|host"},
    {"env", 0, "NAME[=VALUE]", true},
    {"hide", 0, "GLOB", true},
    {"mask", 0, "GLOB", true},
    {"ro", 0, "GLOB", true},
    {"bind-ro", 0, "PATH", true},
    {"preset", 0, "NAME"},
    {"dry-run"},
    {"report", 0, "FILE"},
    {"review"},
    {"quiet"},
};

mode_t current_umask() {
  mode_t mask = ::umask(077);
  ::umask(mask);
  return mask;
}

// How long daemons may come and go before one takes the command.
constexpr auto kPatience = std::chrono::seconds(20);

struct Finished {
  uint32_t command = 0;
  draft::Outcome outcome;
  bool cut = false;        // its output, as was seen when it had ended
  bool open_line = false;  // what is said of it begins on a new one
};

using Started = draft::Client::Started;

// Another client may replace the daemon between our welcome and the command;
// and one whose jail was killed answers so until it has seen its commands end.
Result<Started> start_command(const draft::Layout& layout,
                              const std::string& draft, const RunPlan& plan,
                              const jail::Relay& relay) {
  std::vector<int> fds;
  for (int fd : relay.command_fds())
    if (fd >= 0) fds.push_back(fd);
  auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    if (auto started = TRY(draft::Client::run_at_once(layout, draft, plan.shape,
                                                      plan.request, fds)))
      return std::move(*started);
    draft::Client client = TRY(
        draft::Client::connect_or_start(layout, draft, {.shape = plan.shape}));
    auto run = client.run(plan.request, fds);
    if (run) return Started{std::move(client), std::move(*run)};
    if (!draft::went_away_before_it_read(run.error()) ||
        std::chrono::steady_clock::now() >= deadline)
      return std::unexpected(std::move(run).error());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// From the handing over to the end. An error means that the daemon died under
// the command.
Result<Finished> relay_command(Started& command,
                               const draft::RunRequest& request,
                               jail::Relay& relay, Context& context,
                               bool quiet) {
  draft::Client& client = command.client;
  draft::RunStarted& started = command.run;
  relay.sent();
  if (started.terminal) TRY(relay.use_terminal(std::move(started.terminal)));
  if (!quiet)
    for (const std::string& note : started.notes) context.out.note(note);
  Finished done{.command = started.command, .outcome = {}};
  Status broken;
  jail::RelayHooks hooks;
  hooks.event_fd = client.fd();
  hooks.has_event = [&] { return client.has_event(); };
  hooks.on_event = [&] {
    auto event = client.next_event();
    if (!event) {
      broken = std::unexpected(std::move(event).error());
      return jail::Event::kEnded;
    }
    if (event->command != done.command) return jail::Event::kGoOn;
    if (event->kind == draft::RunEventKind::kStopped)
      return jail::Event::kStopped;
    if (event->kind != draft::RunEventKind::kEnded) return jail::Event::kGoOn;
    done.outcome = std::move(event->outcome);
    return jail::Event::kEnded;
  };
  hooks.on_signal = [&](int signal) {
    (void)client.signal(done.command, signal);
  };
  hooks.output_limit = request.limits.output.value;
  hooks.on_output_limit = [&](uint64_t measured) {
    (void)client.over_output(done.command, measured);
  };
  const jail::RelayResult relayed = relay.run(hooks);
  TRY(std::move(broken));
  done.open_line = relayed.open_line;
  // It was done before the limit could end it. What it wrote is cut all the
  // same, and nobody shall take the beginning for the whole.
  if (relayed.output_limited && done.outcome.killed_by.empty()) {
    done.outcome.killed_by = "output";
    done.outcome.exit = kLimit;
    done.outcome.limit = *hooks.output_limit;
    done.outcome.measured = relayed.output_bytes;
    done.cut = true;
  }
  return done;
}

// The daemon had put it on record by then: the record is to say the same as we.
Status record_cut(Context& context, const draft::Draft& draft,
                  const Finished& done) {
  auto ledger = TRY(draft::Ledger::open(*TRY(context.layout()), draft.id));
  TRY(ledger.append("cut", draft::cut_entry(done.command, done.outcome),
                    Sync::kNo));
  return {};
}

// Before the command: what cannot be reported is not run. Invalid: not asked
// for.
Result<Fd> open_report(const Args& args) {
  auto path = args.value("report");
  if (!path) return Fd();
  return TRY_CTX(
      sys::openat(AT_FDCWD, *path, O_WRONLY | O_CREAT | O_TRUNC, 0666),
      fmt::format("cannot write the report '{}'", escape(*path)));
}

struct Prepared {
  draft::Draft draft;
  bool created = false;
  RunPlan plan;
};

Result<Prepared> prepare(Context& context, const Args& args) {
  if (draft::inside_jail())
    return std::unexpected(
        Error(Code::kUnsupported, "a jail cannot hold another one")
            .with_hint("this shell is already inside of stoplog: run the "
                       "command as it is"));
  const draft::Layout* layout = TRY(context.layout());
  const draft::Workspace* workspace = TRY(context.workspace());
  draft::PolicyFiles files = TRY(draft::read_policy_files(*layout, workspace));
  draft::Policy policy =
      TRY(draft::make_policy(files, args.value("preset").value_or("")));
  RunPlan plan =
      TRY(plan_run({.args = args,
                    .policy = policy,
                    .environment = caller_environment(),
                    .cwd = workspace->cwd ? workspace->cwd->str() : "",
                    .umask = current_umask()}));
  for (std::string& warning : policy.warnings)
    plan.notes.push_back(std::move(warning));
  if (args.has("dry-run"))
    return Prepared{.draft = {}, .created = false, .plan = std::move(plan)};
  // What a command sees first is no half of a commit.
  TRY(finish_interrupted(context));
  auto made =
      TRY(context.find_or_make_draft(args.has("force"), args.has("new")));
  if (made.created)
    if (std::string note = workspace_note(look_at_workspace(workspace->path));
        !note.empty())
      plan.notes.push_back(std::move(note));
  return Prepared{std::move(made.draft), made.created, std::move(plan)};
}

int exit_of(Context& context, const draft::Outcome& outcome) {
  if (!outcome.failure.empty()) {
    context.out.error(Error(Code::kErrno, escape(outcome.failure)));
    return outcome.failure_code != 0 ? outcome.failure_code : kRunFailed;
  }
  return outcome.exit;
}

Result<int> run_in_draft(Context& context, const Args& args,
                         const jail::Streams& streams) {
  const bool quiet = args.has("quiet");
  Prepared prepared = TRY(prepare(context, args));
  RunPlan& plan = prepared.plan;
  if (args.has("dry-run")) {
    context.out.write(TRY(
        dry_run_text(*TRY(context.workspace()), *TRY(context.layout()), plan)));
    return kDone;
  }
  if (!quiet)
    for (const std::string& note : plan.notes) context.out.note(note);
  if (!quiet && !plan.hint.empty()) context.out.hint(plan.hint);
  Fd report = TRY(open_report(args));
  jail::Relay relay = TRY(jail::Relay::open(streams));
  std::array<int, 3> fds = relay.command_fds();
  for (unsigned i = 0; i < 3; ++i)
    if (fds[i] < 0)
      plan.request.tty_streams =
          static_cast<uint8_t>(plan.request.tty_streams | 1u << i);
  plan.request.terminal = TRY(relay.terminal_shape());
  Started started = TRY(
      start_command(*TRY(context.layout()), prepared.draft.id, plan, relay));
  Finished done =
      TRY(relay_command(started, plan.request, relay, context, quiet));
  if (!quiet && done.open_line &&
      streams.kind[2] == jail::StreamKind::kTerminal)
    (void)sys::write_full(2, "\n");
  // Else the command decides whether its summary is read.
  const bool terminal = streams.kind[2] == jail::StreamKind::kTerminal;
  if (!quiet && terminal) context.out.settle_terminal();
  if (done.cut)
    if (Status told = record_cut(context, prepared.draft, done); !told)
      context.out.note("the record does not say that the output was cut: " +
                       told.error().text());
  int code = exit_of(context, done.outcome);
  AfterRun after{.draft = prepared.draft,
                 .created = prepared.created,
                 .request = plan.request,
                 .command = done.command,
                 .outcome = done.outcome,
                 .automatic = plan.automatic,
                 .quiet = quiet,
                 .report = args.has("report"),
                 .terminal = terminal};
  Result<Json> changed = after_run(context, started.client, after);
  if (!changed) context.out.error(changed.error());
  if (!report) return code;
  Json told = draft::run_report(prepared.draft.name, done.command, plan.request,
                                TRY(context.workspace())->path, done.outcome,
                                changed ? *changed : Json());
  // The exit code is the command's, whatever becomes of its report.
  if (Status written = sys::write_full(report.get(), told.dump() + "\n");
      !written)
    context.out.error(
        std::move(written).error().context("cannot write the report"));
  return code;
}

Result<int> run(Context& context, const Args& args) {
  // Memory that is given back is faulted in again a moment later, and this
  // process does not live long.
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
  ::mallopt(M_TOP_PAD, 512 << 10);
  // Before anything is opened: a closed stream must not be taken for one.
  jail::Streams streams = jail::look_at_streams();
  auto code = run_in_draft(context, args, streams);
  if (code && args.has("review") && !args.has("dry-run")) {
    // The draft that it ran in is the one asked for, or the current one. The
    // exit code stays the command's.
    auto draft = context.need_draft();
    auto reviewed = draft ? review_draft(context, *draft)
                          : std::unexpected(std::move(draft).error());
    if (!reviewed)
      context.out.error(std::move(reviewed).error().context("cannot review"));
  }
  return code;
}

}  // namespace

extern const Command k_run_command{
    .name = "run",
    .summary = "run a command in the jail, over the draft",
    .help =
        "usage: stoplog run [OPTIONS] [-- CMD...]\n"
        "\n"
        "Runs CMD ($SHELL by default) jailed over the workspace. What it "
        "writes\n"
        "is held in the draft; the real files stay as they are.\n"
        "\n"
        "      --new              in a new draft\n"
        "      --time D  --cpu D  ends it after this time, or time at work\n"
        "      --cpus N           no faster than N processors\n"
        "      --memory SIZE  --pids N  --files N (open ones)  --output SIZE\n"
        "      --disk SIZE  --inodes N   held by the draft\n"
        "      --net none|host    network; none by default\n"
        "      --env NAME[=VALUE] pass or set a variable\n"
        "      --hide, --mask, --ro GLOB   not there, content replaced, "
        "read-only\n"
        "      --bind-ro PATH     show a directory of the host, read-only\n"
        "      --preset NAME      of the policy\n"
        "      --dry-run          print the walls and limits, run nothing\n"
        "      --report FILE      how it ended, as JSON\n"
        "      --review  --quiet  --force (a home directory as workspace)\n"
        "\n"
        "example: stoplog run --time 10m --memory 2G -- make test\n",
    .options = kOptions,
    .max = kAnyNumber,
    .command_follows = true,
    .run = run};

}  // namespace stoplog::cli
