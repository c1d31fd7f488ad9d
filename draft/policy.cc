// SPDX-License-Identifier: Apache-2.0
#include "draft/policy.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <charconv>

#include "base/hash.h"
#include "base/strings.h"
#include "base/sys_file.h"
#include "draft/policy_keys.h"

namespace stoplog::draft {
namespace {

constexpr uint64_t kMaxFile = 1u << 20;

struct Preset {
  std::string_view name;
  std::string_view text;
};
// "default" is the policy without a preset.
constexpr Preset kPresets[] = {
    {"default", ""},
    {"strict",
     "[limits]\ntime = \"10m\"\ncpu = \"10m\"\nmemory = \"2G\"\npids = 256\n"
     "disk = \"1G\"\noutput = \"16M\"\n[network]\nallow = []\n"},
    {"build", "[limits]\ntime = \"2h\"\npids = 8192\ndisk = \"40G\"\n"}};

// Three quarters of the machine: an agent may be large, but not take the
// user's own programs with it.
uint64_t default_memory() {
  struct sysinfo info{};
  if (::sysinfo(&info) != 0) return uint64_t{4} << 30;
  uint64_t total = uint64_t{info.totalram} * info.mem_unit;
  return std::max<uint64_t>(total / 4 * 3, uint64_t{512} << 20);
}

Policy default_policy() {
  Policy p;
  p.limits.memory = {default_memory(), "default: 3/4 of this machine's"};
  p.limits.pids.value = 4096;
  p.limits.disk.value = uint64_t{20} << 30;
  p.limits.inodes.value = 2'000'000;
  p.net.value = NetMode::kNone;
  p.mask.value = {".env",   ".env.*",     "*.pem",           "*.key",
                  "id_rsa", "id_ed25519", "id_ecdsa",        ".netrc",
                  ".npmrc", ".pypirc",    ".git-credentials"};
  p.env_pass.value = {"LANG",      "LC_ALL", "LC_CTYPE", "TERM",
                      "COLORTERM", "TZ",     "NO_COLOR", "CLICOLOR_FORCE"};
  p.gate_mode.value = "gated";
  p.max_age.value = std::nullopt;
  p.ignored.value = "hold";
  p.undo_size.value = uint64_t{10} << 30;
  p.history_size.value = uint64_t{20} << 30;
  return p;
}

Error bad_value(const TomlFile& file, const TomlValue& value,
                std::string_view kind) {
  return Error(Code::kInvalid, fmt::format("{}: {} must be {}", file.at(value),
                                           value.dotted(), kind))
      .with_hint("`man 5 stoplog.toml` says what each key takes");
}

std::string unknown_key(const TomlFile& file, const TomlValue& value,
                        const std::string& key) {
  std::vector<std::string_view> names;
  for (const KeySpec& spec : policy_keys()) names.push_back(spec.key);
  std::string_view near = nearest(key, names);
  return fmt::format(
      "{}: unknown key {} is ignored{}", file.at(value), key,
      near.empty() ? std::string() : fmt::format(" (did you mean {}?)", near));
}

bool is_table(const std::string& key) {
  return std::ranges::any_of(policy_keys(), [&](const KeySpec& spec) {
    return std::string_view(spec.key).starts_with(key + ".");
  });
}

// Applies the values of `file` whose path begins with `prefix`.
Status apply_file(Policy& policy, const TomlFile& file, Merge merge,
                  const std::vector<std::string>& prefix) {
  for (const TomlValue& value : file.values) {
    bool is_preset = value.path.size() > 1 && value.path[0] == "preset";
    if (prefix.empty() && is_preset) {
      if (merge == Merge::kTighten)
        policy.warnings.push_back(
            fmt::format("{}: {} is ignored: a workspace's file has no presets",
                        file.at(value), value.dotted()));
      continue;
    }
    if (value.path.size() < prefix.size() ||
        !std::equal(prefix.begin(), prefix.end(), value.path.begin()))
      continue;
    TomlValue inner = value;
    inner.path.erase(inner.path.begin(),
                     inner.path.begin() + static_cast<long>(prefix.size()));
    std::string key = inner.dotted();
    auto spec = std::ranges::find(policy_keys(), key, &KeySpec::key);
    if (spec == policy_keys().end()) {
      if (is_table(key))
        return std::unexpected(bad_value(file, value, "a table"));
      policy.warnings.push_back(unknown_key(file, value, key));
      continue;
    }
    bool good = TRY(spec->apply({policy, inner, file.at(value), merge}));
    if (!good) return std::unexpected(bad_value(file, value, spec->kind));
  }
  return {};
}

bool has_preset(const TomlFile& file, std::string_view name) {
  return std::ranges::any_of(file.values, [&](const TomlValue& v) {
    return v.path.size() > 2 && v.path[0] == "preset" && v.path[1] == name;
  });
}

Status apply_preset(Policy& policy, const PolicyFiles& files,
                    std::string_view name) {
  if (files.user && has_preset(*files.user, name))
    return apply_file(policy, *files.user, Merge::kSet,
                      {"preset", std::string(name)});
  auto built_in = std::ranges::find(kPresets, name, &Preset::name);
  if (built_in == std::end(kPresets)) {
    std::vector<std::string> names = preset_names(files);
    std::vector<std::string_view> views(names.begin(), names.end());
    std::string_view near = nearest(name, views);
    std::string all;
    for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
    return std::unexpected(
        Error(Code::kUsage, fmt::format("there is no preset '{}'", name))
            .with_hint(near.empty() ? "there are: " + all
                                    : fmt::format("did you mean '{}'?", near)));
  }
  TomlFile file =
      TRY(parse_toml(built_in->text, fmt::format("preset {}", name)));
  return apply_file(policy, file, Merge::kSet, {});
}

Result<std::optional<TomlFile>> read_toml(Result<Fd> opened,
                                          const std::string& shown) {
  if (!opened) {
    if (is_nothing(opened.error())) return std::nullopt;
    return std::unexpected(
        std::move(opened.error())
            .context(fmt::format("cannot read the policy '{}'", shown)));
  }
  sys::Stat st = TRY(sys::fstat(opened->get()));
  if (!S_ISREG(st.mode))
    return fail(Code::kInvalid, "cannot read the policy '{}': not a file",
                shown);
  std::string text = TRY_CTX(sys::read_all(opened->get(), kMaxFile),
                             fmt::format("cannot read the policy '{}'", shown));
  return TRY(parse_toml(text, shown));
}

}  // namespace

Result<PolicyFiles> read_policy_files(const Layout& layout,
                                      const Workspace* workspace) {
  PolicyFiles files;
  std::string user = layout.user_policy();
  // The user may keep his configuration behind a symlink (dotfiles): follow.
  int fd = ::open(user.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  Result<Fd> opened = Fd(fd);
  if (fd < 0) opened = fail_errno(errno);
  files.user = TRY(read_toml(std::move(opened), user));
  if (workspace == nullptr) return files;
  Fd root =
      TRY_CTX(sys::openat(AT_FDCWD, workspace->path, O_RDONLY | O_DIRECTORY),
              fmt::format("cannot open workspace '{}'", workspace->path));
  files.workspace =
      TRY(read_toml(sys::open_beneath(root.get(), kWorkspacePolicyFile,
                                      O_RDONLY | O_NONBLOCK),
                    kWorkspacePolicyFile));
  return files;
}

std::vector<std::string> preset_names(const PolicyFiles& files) {
  std::vector<std::string> names;
  for (const Preset& p : kPresets) names.emplace_back(p.name);
  if (files.user)
    for (const TomlValue& v : files.user->values)
      if (v.path.size() > 2 && v.path[0] == "preset")
        names.push_back(v.path[1]);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<Policy> make_policy(const PolicyFiles& files, std::string_view preset) {
  Policy policy = default_policy();
  if (files.user) TRY(apply_file(policy, *files.user, Merge::kSet, {}));
  if (!preset.empty()) {
    TRY(apply_preset(policy, files, preset));
    policy.preset = preset;
  }
  if (files.workspace)
    TRY(apply_file(policy, *files.workspace, Merge::kTighten, {}));
  return policy;
}

Result<NetRule> parse_net_rule(std::string_view text) {
  auto bad = [&] {
    return fail(Code::kInvalid, "'{}' is no host name with an optional port",
                text);
  };
  NetRule rule;
  std::string_view host = text;
  if (host.starts_with('[')) {  // [v6]:port
    size_t close = host.find(']');
    if (close == host.npos) return bad();
    rule.host = host.substr(1, close - 1);
    host.remove_prefix(close + 1);
    if (rule.host.find_first_not_of("0123456789abcdefABCDEF:.") !=
            std::string::npos ||
        rule.host.empty() || (!host.empty() && host[0] != ':'))
      return bad();
  } else {
    size_t colon = host.find(':');
    rule.host = host.substr(0, colon);
    host.remove_prefix(colon == host.npos ? host.size() : colon);
    if (rule.host.empty() || rule.host.size() > 253) return bad();
    for (std::string_view label : split(rule.host, '.')) {
      constexpr std::string_view kLabel =
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
      if (label.empty() || label.size() > 63 || label.front() == '-' ||
          label.back() == '-' || label.find_first_not_of(kLabel) != label.npos)
        return bad();
    }
  }
  if (host.empty()) return rule;
  host.remove_prefix(1);
  unsigned port = 0;
  auto [end, error] =
      std::from_chars(host.data(), host.data() + host.size(), port);
  if (error != std::errc() || end != host.data() + host.size() || port == 0 ||
      port > 65535)
    return bad();
  rule.port = static_cast<uint16_t>(port);
  return rule;
}

Json Policy::to_json() const {
  auto number = [](const Sourced<std::optional<uint64_t>>& n) {
    return n.value ? Json(*n.value) : Json();
  };
  Json l = Json::object();
  l.set("time_ms", number(limits.time)).set("cpu_ms", number(limits.cpu));
  l.set("cpus_milli", number(limits.cpus));
  l.set("memory", number(limits.memory)).set("pids", number(limits.pids));
  l.set("files", number(limits.files)).set("output", number(limits.output));
  l.set("disk", number(limits.disk)).set("inodes", number(limits.inodes));
  Json json = Json::object();
  l.set("required", Json::strings(required.value));
  json.set("limits", l);
  constexpr std::string_view kNet[] = {"none", "host", "allow"};
  json.set("net", kNet[static_cast<size_t>(net.value)]);
  json.set("allow", Json::strings(allow.value));
  json.set("hide", Json::strings(hide.value));
  json.set("mask", Json::strings(mask.value));
  json.set("read_only", Json::strings(read_only.value));
  json.set("env_pass", Json::strings(env_pass.value));
  json.set("gate_mode", gate_mode.value).set("max_age_ms", number(max_age));
  json.set("always_ask", Json::strings(always_ask.value));
  json.set("auto_approve", Json::strings(auto_approve.value));
  if (!dangers.value.empty()) json.set("dangers", Json::strings(dangers.value));
  json.set("ignored", ignored.value).set("undo_size", number(undo_size));
  json.set("history_age_ms", number(history_age));
  json.set("history_size", number(history_size));
  return json;
}

std::string Policy::digest() const {
  return "sha256:" + hex(sha256(to_json().dump()));
}

}  // namespace stoplog::draft
