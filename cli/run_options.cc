// SPDX-License-Identifier: Apache-2.0
#include "cli/run_options.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "base/escape.h"
#include "base/glob.h"
#include "base/relpath.h"
#include "base/sys_file.h"
#include "base/units.h"
#include "jail/environment.h"

namespace stoplog::cli {
namespace {

std::string variable(std::span<const std::string> environment,
                     std::string_view name) {
  for (const std::string& entry : environment)
    if (entry.size() > name.size() && entry.starts_with(name) &&
        entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  return "";
}

Error bad_value(std::string_view option, std::string_view value,
                const Error& error) {
  return Error(Code::kUsage, fmt::format("bad value '{}' of --{}: {}",
                                         escape(value), option, error.text()))
      .with_hint("see `stoplog run --help`");
}

// What is to be shown at its own path: as it was given, where that is a path
// which the jail can have, too.
Result<std::string> host_path(const std::string& given) {
  if (auto there = sys::openat(AT_FDCWD, given, O_PATH); !there)
    return fail(Code::kUsage, "cannot bind '{}': {}", escape(given),
                there.error().text());
  if (given.starts_with('/') && RelPath::parse(given.substr(1))) return given;
  std::unique_ptr<char, void (*)(void*)> real(
      ::realpath(given.c_str(), nullptr), ::free);
  if (!real) return fail_errno(errno, "cannot find '{}'", escape(given));
  return std::string(real.get());
}

// An option given by hand must be held; a default is best effort.
template <typename Parse>
Status limit(const Args& args, std::string_view option,
             const std::optional<uint64_t>& fallback, draft::Limit& out,
             Parse parse) {
  if (auto text = args.value(option)) {
    Result<uint64_t> value = parse(*text);
    if (!value) return std::unexpected(bad_value(option, *text, value.error()));
    out = {*value, true};
  } else if (fallback) {
    out = {*fallback, false};
  }
  return {};
}

Result<uint64_t> duration_ms(const std::string& text) {
  auto ms = TRY(parse_duration(text));
  if (ms.count() <= 0) return fail(Code::kUsage, "must be more than nothing");
  return static_cast<uint64_t>(ms.count());
}

Result<uint64_t> bytes(const std::string& text) {
  uint64_t size = TRY(parse_size(text));
  if (size == 0) return fail(Code::kUsage, "must be more than nothing");
  return size;
}

Result<uint64_t> count(const std::string& text) {
  return parse_number(text, "", 1, uint64_t{1} << 40);
}

// "1.5" as 1500.
Result<uint64_t> thousandths(const std::string& text) {
  size_t dot = text.find('.');
  std::string whole = text.substr(0, dot);
  std::string part = dot == std::string::npos ? "" : text.substr(dot + 1);
  bool fits = part.size() <= 3 && (dot == std::string::npos || !part.empty());
  part.resize(3, '0');
  auto before = parse_number(whole.empty() ? "0" : whole, "", 0, 1'000'000);
  auto after = parse_number(part, "", 0, 999);
  if (!fits || !before || !after)
    return fail(Code::kUsage, "not a number of processors such as 2 or 1.5");
  uint64_t value = *before * 1000 + *after;
  if (value == 0) return fail(Code::kUsage, "must be more than nothing");
  return value;
}

constexpr uint64_t kFewestFiles = 8;
constexpr uint64_t kLeastMemory = 1 << 20;

Status take_limits(const Args& args, const draft::PolicyLimits& policy,
                   const std::vector<std::string>& required,
                   draft::Limits& out) {
  TRY(limit(args, "time", policy.time.value, out.time_ms, duration_ms));
  TRY(limit(args, "cpu", policy.cpu.value, out.cpu_ms, duration_ms));
  TRY(limit(args, "cpus", policy.cpus.value, out.cpus_milli, thousandths));
  TRY(limit(args, "memory", policy.memory.value, out.memory, bytes));
  if (out.memory.value && *out.memory.value < kLeastMemory)
    return fail(Code::kUsage,
                "cannot limit memory to {}: no program runs in less than {}",
                print_size(*out.memory.value), print_size(kLeastMemory));
  TRY(limit(args, "pids", policy.pids.value, out.pids, count));
  TRY(limit(args, "files", policy.files.value, out.files, count));
  // Three are the streams; the loader opens more before the program runs.
  if (out.files.value && *out.files.value < kFewestFiles)
    return fail(Code::kUsage,
                "cannot limit open files to {}: no program starts with fewer "
                "than {}",
                *out.files.value, kFewestFiles);
  TRY(limit(args, "output", policy.output.value, out.output, bytes));
  TRY(limit(args, "disk", policy.disk.value, out.disk, bytes));
  TRY(limit(args, "inodes", policy.inodes.value, out.inodes, count));
  const std::pair<std::string_view, draft::Limit*> limits[] = {
      {"time", &out.time_ms},  {"cpu", &out.cpu_ms}, {"cpus", &out.cpus_milli},
      {"memory", &out.memory}, {"pids", &out.pids},  {"files", &out.files},
      {"output", &out.output}, {"disk", &out.disk},  {"inodes", &out.inodes}};
  for (const auto& [name, one] : limits)
    if (one->value && std::ranges::find(required, name) != required.end())
      one->asked = true;
  return {};
}

Status take_network(const RunInput& input, RunPlan& plan) {
  std::string net = input.args.value("net").value_or("");
  if (net == "host") {
    plan.shape.host_network = true;
    return {};
  }
  if (net == "none") return {};
  if (input.args.has("net") && !net.empty())
    return std::unexpected(
        Error(Code::kUnsupported,
              fmt::format("this version cannot hold an allow list of hosts "
                          "('{}')",
                          net))
            .with_hint("--net takes 'none' (the default) and 'host'"));
  if (!input.policy.allow.value.empty() && !input.args.has("net"))
    plan.notes.push_back(fmt::format(
        "the allow list of {} is not held by this version: no network",
        input.policy.allow.origin));
  return {};
}

// Programs that do nothing without the network, by the names that they are
// called by; behind what fetches and runs one, too.
bool is_known_agent(const std::vector<std::string>& argv) {
  constexpr std::string_view kAgents[] = {
      "aider", "amp",   "claude", "claude-code", "cline",        "codex",
      "crush", "droid", "gemini", "gemini-cli",  "cursor-agent", "copilot",
      "goose", "qwen",  "kimi",   "opencode",    "openhands",    "qwen-code"};
  constexpr std::string_view kRunners[] = {"npx", "bunx", "uvx", "pnpx"};
  auto name_of = [](std::string_view word) {
    return word.substr(word.rfind('/') + 1);
  };
  auto is_among = [](auto& names, std::string_view name) {
    return std::ranges::find(names, name) != std::end(names);
  };
  size_t at = is_among(kRunners, name_of(argv[0])) ? 1 : 0;
  return at < argv.size() && is_among(kAgents, name_of(argv[at]));
}

void append(std::vector<std::string>& to, std::vector<std::string> more) {
  for (std::string& item : more) to.push_back(std::move(item));
}

// NAME is taken from the caller; one that he does not have is left out.
Status take_variables(const RunInput& input, draft::RunRequest& request) {
  for (const std::string& entry : input.environment)
    if (jail::passes(entry.substr(0, entry.find('='))))
      request.env.push_back(entry);
  std::vector<std::string> names = input.policy.env_pass.value;
  append(names, input.args.values("env"));
  for (const std::string& name : names) {
    if (name.empty() || name.front() == '=')
      return fail(Code::kUsage,
                  "bad value '{}' of --env: not NAME or NAME=VALUE",
                  escape(name));
    if (name.find('=') != std::string::npos) {
      request.env_extra.push_back(name);
      continue;
    }
    for (const std::string& entry : input.environment)
      if (entry.starts_with(name + "=")) request.env_extra.push_back(entry);
  }
  return {};
}

}  // namespace

std::vector<std::string> caller_environment() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry)
    out.emplace_back(*entry);
  return out;
}

draft::Shape base_shape(const draft::Policy& policy,
                        std::span<const std::string> environment) {
  draft::Shape shape;
  shape.hide = policy.hide.value;
  shape.mask = policy.mask.value;
  shape.read_only = policy.read_only.value;
  shape.read_only_workspace = policy.gate_mode.value == "observe";
  shape.path = variable(environment, "PATH");
  shape.home = variable(environment, "HOME");
  shape.time_zone = variable(environment, "TZ");
  return shape;
}

Result<RunPlan> plan_run(const RunInput& input) {
  RunPlan plan;
  const Args& args = input.args;
  plan.shape = base_shape(input.policy, input.environment);
  plan.automatic = input.policy.gate_mode.value == "auto";
  append(plan.shape.hide, args.values("hide"));
  append(plan.shape.mask, args.values("mask"));
  append(plan.shape.read_only, args.values("ro"));
  for (const char* option : {"hide", "mask", "ro"})
    for (const std::string& pattern : args.values(option))
      if (auto glob = Glob::parse(pattern); !glob)
        return std::unexpected(bad_value(option, pattern, glob.error()));
  for (const std::string& path : args.values("bind-ro"))
    plan.shape.bind_ro.push_back(TRY(host_path(path)));
  TRY(take_network(input, plan));

  draft::RunRequest& request = plan.request;
  request.cwd = input.cwd;
  request.umask = input.umask;
  request.policy_digest = input.policy.digest();
  request.preset = input.policy.preset;
  request.shell = variable(input.environment, "SHELL");
  request.argv = args.positionals;
  if (request.argv.empty())
    request.argv = {request.shell.empty() ? "/bin/sh" : request.shell};
  for (const std::string& word : request.argv)
    if (word.find('\0') != std::string::npos)
      return fail(Code::kUsage, "a word of the command holds a NUL");
  if (!plan.shape.host_network && is_known_agent(request.argv))
    plan.hint =
        "an agent reaches no network here, and may wait for it in vain: --net "
        "host gives it the machine's";
  TRY(take_variables(input, request));
  TRY(take_limits(args, input.policy.limits, input.policy.required.value,
                  request.limits));
  return plan;
}

}  // namespace stoplog::cli
