// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>

#include "base/escape.h"
#include "base/interrupt.h"
#include "base/strings.h"
#include "base/sys_process.h"
#include "base/sys_terminal.h"
#include "cli/command.h"
#include "cli/exit_codes.h"

namespace stoplog::cli {

#define STOPLOG_COMMANDS(X) \
  X(approve)                \
  X(cat)                    \
  X(commit)                 \
  X(complete_line)          \
  X(completion)             \
  X(daemon)                 \
  X(diff)                   \
  X(discard)                \
  X(doctor)                 \
  X(drafts)                 \
  X(export)                 \
  X(fork)                   \
  X(gc)                     \
  X(help)                   \
  X(import)                 \
  X(log)                    \
  X(mount)                  \
  X(policy)                 \
  X(ps)                     \
  X(reject)                 \
  X(review)                 \
  X(rm)                     \
  X(rollback)               \
  X(run)                    \
  X(show)                   \
  X(snapshot)               \
  X(status)                 \
  X(stop)                   \
  X(switch)                 \
  X(undo)                   \
  X(unmount)                \
  X(version)

#define STOPLOG_DECLARE(name) extern const Command k_##name##_command;
STOPLOG_COMMANDS(STOPLOG_DECLARE)
#undef STOPLOG_DECLARE

namespace {

#define STOPLOG_ENTRY(name) &k_##name##_command,
const Command* const kCommands[] = {STOPLOG_COMMANDS(STOPLOG_ENTRY)};
#undef STOPLOG_ENTRY

constexpr OptionSpec kGlobalOptions[] = {
    {"C", 'C', "DIR", true}, {"workspace", 0, "DIR"},
    {"draft", 'd', "DRAFT"}, {"color", 0, "auto|always|never"},
    {"help", 'h', nullptr},  {"version", 0, nullptr}};

Result<ColorMode> color_mode(const std::string& word) {
  if (word == "auto") return ColorMode::kAuto;
  if (word == "always") return ColorMode::kAlways;
  if (word == "never") return ColorMode::kNever;
  return fail(Code::kUsage,
              "cannot use --color {}: it is auto, always or never",
              escape(word));
}

// Takes the global options out of `args` and acts on -C.
Status take_globals(Args& args, Globals& globals) {
  // As git's: each from where the one before led to, and "" leads nowhere.
  for (const std::string& dir : args.values("C"))
    if (!dir.empty() && ::chdir(dir.c_str()) != 0)
      return fail(Code::kUsage, "cannot change to directory '{}': {}",
                  escape(dir), ::strerror(errno));
  if (auto dir = args.value("workspace")) globals.workspace = dir;
  if (auto name = args.value("draft")) globals.draft = name;
  if (auto mode = args.value("color")) globals.color = TRY(color_mode(*mode));
  for (const char* name : {"C", "workspace", "draft", "color"})
    args.options.erase(name);
  return {};
}

// "cannot ...", of the commands that are not called by a verb.
std::string_view verb_of(std::string_view command) {
  constexpr std::pair<std::string_view, std::string_view> kVerbs[] = {
      {"status", "show what is held"},    {"diff", "show the patch"},
      {"log", "show the timeline"},       {"show", "show the commit"},
      {"cat", "show the file"},           {"ps", "show what runs"},
      {"drafts", "list the drafts"},      {"rm", "remove the draft"},
      {"snapshot", "name this state"},    {"rollback", "roll back"},
      {"gc", "reclaim anything"},         {"policy", "use the policy"},
      {"doctor", "examine this machine"}, {"completion", "print a completion"},
      {"help", "show the help"},          {"version", "show the version"}};
  for (const auto& [name, verb] : kVerbs)
    if (name == command) return verb;
  return command;
}

// Every error says first what could not be done, then why. What was asked for
// and declined did not fail.
Error in_form(Error error, const Command& command) {
  if (error.code() == Code::kDeclined || command.summary.empty() ||
      error.text().starts_with("cannot "))
    return error;
  return std::move(error).context(
      fmt::format("cannot {}", verb_of(command.name)));
}

// The reason alone could be said of the workspace.
Error with_place(Error error, Context& context) {
  auto layout = context.layout();
  const bool kept_out = error.err() == EROFS || error.err() == EACCES;
  if (!kept_out || !error.hint().empty() || !layout) return error;
  const std::string& state = (*layout)->state;
  if (::access(state.c_str(), W_OK) == 0 || errno == ENOENT) return error;
  return std::move(error).with_hint(
      fmt::format("stoplog keeps its drafts in '{}', which cannot be written; "
                  "XDG_STATE_HOME names another place",
                  escape(state)));
}

// These work on more than one draft, or on none; who names one that is not
// there means another workspace, or another command.
Status check_draft_given(const Command& command, Context& context) {
  constexpr std::string_view kBesides[] = {"drafts", "gc",     "import", "rm",
                                           "show",   "switch", "undo"};
  const bool besides =
      std::ranges::find(kBesides, command.name) != std::ranges::end(kBesides);
  if (besides && context.globals().draft) TRY(context.find_draft());
  return {};
}

Result<int> run_command(const Command& command,
                        std::span<const std::string> words, Globals& globals,
                        Output& out) {
  std::vector<OptionSpec> options(command.options.begin(),
                                  command.options.end());
  for (const OptionSpec& global : kGlobalOptions) {
    // A command's own letter wins, except that it never hides --help.
    bool taken = std::ranges::any_of(options, [&](const OptionSpec& o) {
      return std::string_view(o.name) == global.name;
    });
    if (taken || std::string_view(global.name) == "version") continue;
    options.push_back(global);
  }
  bool wants_help = std::ranges::any_of(
      words, [](const std::string& w) { return w == "--help" || w == "-h"; });
  ArgSpec spec{.command = command.name,
               .options = options,
               .command_follows = command.command_follows,
               .min = wants_help ? 0 : command.min,
               .max = command.max};
  auto parsed = parse_args(words, spec);
  if (!parsed)
    return std::unexpected(in_form(std::move(parsed).error(), command));
  Args args = std::move(*parsed);
  if (args.has("help")) {
    out.write(command.help);
    return kDone;
  }
  TRY(take_globals(args, globals));
  out.set_color(globals.color);
  if (args.positionals.size() < command.min)  // "--help" was after "--"
    return fail(Code::kUsage, "cannot {}: '{}' needs an argument",
                verb_of(command.name), command.name);
  // The daemon reads its signals from an fd.
  if (command.name != "daemon") catch_interrupts();
  Context context(globals, out);
  if (auto known = check_draft_given(command, context); !known)
    return std::unexpected(in_form(std::move(known.error()), command));
  auto code = command.run(context, args);
  if (!code)
    return std::unexpected(
        with_place(in_form(std::move(code.error()), command), context));
  return code;
}

// An option of a command's before the command.
Error misplaced(Error error, std::span<const std::string> words) {
  Error told = std::move(error).context("cannot read the command line");
  if (told.hint().starts_with("did you mean")) return told;
  for (const std::string& word : words) {
    const Command* command = find_command(word);
    if (command == nullptr || command->summary.empty()) continue;
    return std::move(told).with_hint(
        fmt::format("the options of '{0}' stand after it: see `stoplog {0} "
                    "--help`",
                    command->name));
  }
  return told;
}

Result<int> dispatch(std::span<const std::string> words, Output& out,
                     const Command*& command) {
  auto parsed = parse_args(words, {.command = "",
                                   .options = kGlobalOptions,
                                   .command_follows = true,
                                   .min = 0,
                                   .max = kAnyNumber});
  if (!parsed)
    return std::unexpected(misplaced(std::move(parsed).error(), words));
  Args args = std::move(*parsed);
  Globals globals;
  TRY(take_globals(args, globals));
  out.set_color(globals.color);
  if (args.has("help")) {
    out.write(overview());
    return kDone;
  }
  if (args.has("version")) args.positionals = {"version"};
  if (args.positionals.empty()) {
    out.flush();
    (void)!::write(2, overview().data(), overview().size());
    return kUsageError;
  }
  command = find_command(args.positionals[0]);
  if (command == nullptr)
    return std::unexpected(unknown_command(args.positionals[0]));
  std::span<const std::string> rest(args.positionals);
  return run_command(*command, rest.subspan(1), globals, out);
}

// Nothing is promised of what was done until then, so that running out of
// memory is no other exit code; what a commit had begun is recovered by the
// next command.
Error bug_of(std::exception_ptr thrown) {
  std::string what = "something unknown was thrown";
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    return Error(Code::kInternal, "cannot go on: out of memory");
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
  }
  return Error(Code::kInternal, "cannot go on: a bug in stoplog: " + what)
      .with_hint(
          "nothing that is held is lost; please report it with the "
          "command and `stoplog version`");
}

[[noreturn]] void end_by_bug() {
  sys::CrashGuard::put_back();
  // An Output of its own: another thread may be inside the program's.
  Output(ColorMode::kAuto).error(bug_of(std::current_exception()));
  ::_exit(kBug);
}

}  // namespace

std::span<const Command* const> all_commands() { return kCommands; }

std::span<const OptionSpec> global_options() { return kGlobalOptions; }

Error unknown_command(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Command* c : kCommands)
    if (!c->summary.empty()) names.push_back(c->name);
  Error error(Code::kUsage,
              fmt::format("cannot run '{}': unknown command", escape(name)));
  std::string_view near = nearest(name, names);
  if (!near.empty())
    return std::move(error).with_hint(fmt::format("did you mean '{}'?", near));
  return std::move(error).with_hint("`stoplog help` lists them");
}

const Command* find_command(std::string_view name) {
  for (const Command* c : kCommands)
    if (c->name == name) return c;
  return nullptr;
}

int run_guarded(Output& out,
                const std::function<Result<int>(const Command*& named)>& body) {
  // What a thread throws, or a destructor, arrives nowhere else.
  std::set_terminate(end_by_bug);
  const Command* command = nullptr;
  Result<int> code = kBug;
  try {
    code = body(command);
  } catch (...) {
    code = std::unexpected(bug_of(std::current_exception()));
  }
  out.finish();
  if (code && out.failure()) {
    if (out.done().empty())
      code = std::unexpected(*out.failure());
    else
      out.note(
          fmt::format("{} is done, but {}", out.done(), out.failure()->text()));
  }
  if (!code) out.error(code.error());
  end_if_interrupted();
  if (code) return *code;
  if (command != nullptr && command->name == "run")
    return run_exit_code_of(code.error());
  return exit_code_of(code.error());
}

int run_program(std::vector<std::string> words) {
  if (!sys::hold_standard_streams()) return kCannotHold;
  Output out(ColorMode::kAuto);
  return run_guarded(out, [&](const Command*& command) {
    return dispatch(words, out, command);
  });
}

}  // namespace stoplog::cli
