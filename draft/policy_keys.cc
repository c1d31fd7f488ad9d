// SPDX-License-Identifier: Apache-2.0
#include "draft/policy_keys.h"

#include <algorithm>

#include "base/glob.h"
#include "base/units.h"
#include "diff/risk.h"

namespace stoplog::draft {
namespace {

using Number = Sourced<std::optional<uint64_t>>;
using List = Sourced<std::vector<std::string>>;

void ignored_because(const KeyContext& c, std::string_view why) {
  c.policy.warnings.push_back(
      fmt::format("{}: {} is ignored: {}", c.origin, c.value.dotted(), why));
}

constexpr std::string_view kLoosens =
    "a workspace's file may only tighten the policy";

// Bounds: the smaller one is the tighter one, and none is the loosest.
void put_bound(const KeyContext& c, Number& slot,
               std::optional<uint64_t> value) {
  if (c.merge == Merge::kTighten) {
    bool tighter = value && (!slot.value || *value <= *slot.value);
    if (!tighter) return ignored_because(c, kLoosens);
  }
  slot = {value, c.origin};
}

// "none" takes a bound away.
std::optional<std::string> text_of(const KeyContext& c) {
  const auto* text = std::get_if<std::string>(&c.value.value);
  if (text == nullptr) return std::nullopt;
  return *text;
}

template <Number PolicyLimits::* kSlot>
Result<bool> duration(const KeyContext& c) {
  auto text = text_of(c);
  if (!text) return false;
  if (*text == "none") {
    put_bound(c, c.policy.limits.*kSlot, std::nullopt);
    return true;
  }
  auto parsed = parse_duration(*text);
  if (!parsed || parsed->count() <= 0) return false;
  put_bound(c, c.policy.limits.*kSlot, static_cast<uint64_t>(parsed->count()));
  return true;
}

template <Number PolicyLimits::* kSlot>
Result<bool> size(const KeyContext& c) {
  std::optional<uint64_t> value;
  if (const auto* number = std::get_if<int64_t>(&c.value.value)) {
    if (*number <= 0) return false;
    value = static_cast<uint64_t>(*number);
  } else {
    auto text = text_of(c);
    if (!text) return false;
    if (*text != "none") {
      auto parsed = parse_size(*text);
      if (!parsed || *parsed == 0) return false;
      value = *parsed;
    }
  }
  put_bound(c, c.policy.limits.*kSlot, value);
  return true;
}

template <Number PolicyLimits::* kSlot, uint64_t kScale>
Result<bool> count(const KeyContext& c) {
  if (text_of(c) == "none") {
    put_bound(c, c.policy.limits.*kSlot, std::nullopt);
    return true;
  }
  const auto* number = std::get_if<int64_t>(&c.value.value);
  if (number == nullptr || *number <= 0) return false;
  put_bound(c, c.policy.limits.*kSlot, static_cast<uint64_t>(*number) * kScale);
  return true;
}

Result<bool> max_age(const KeyContext& c) {
  auto text = text_of(c);
  if (!text) return false;
  if (*text == "none") {
    put_bound(c, c.policy.max_age, std::nullopt);
    return true;
  }
  auto parsed = parse_duration(*text);
  if (!parsed || parsed->count() <= 0) return false;
  put_bound(c, c.policy.max_age, static_cast<uint64_t>(parsed->count()));
  return true;
}

const std::vector<std::string>* list_of(const KeyContext& c) {
  return std::get_if<std::vector<std::string>>(&c.value.value);
}

bool all_globs(const std::vector<std::string>& list) {
  return std::ranges::all_of(
      list, [](const std::string& g) { return Glob::parse(g).has_value(); });
}

void add_all(const KeyContext& c, List& slot,
             const std::vector<std::string>& list) {
  if (c.merge == Merge::kSet) {
    slot = {list, c.origin};
    return;
  }
  for (const std::string& item : list)
    if (std::ranges::find(slot.value, item) == slot.value.end())
      slot.value.push_back(item);
  slot.origin += " and " + c.origin;
}

// More globs hide more: both lists hold.
template <List Policy::* kSlot>
Result<bool> added_globs(const KeyContext& c) {
  const auto* list = list_of(c);
  if (list == nullptr || !all_globs(*list)) return false;
  add_all(c, c.policy.*kSlot, *list);
  return true;
}

// More that must be held is stricter: both lists hold.
Result<bool> required_limits(const KeyContext& c) {
  constexpr std::string_view kLimits[] = {"time",   "cpu",  "cpus",
                                          "memory", "pids", "files",
                                          "output", "disk", "inodes"};
  const auto* list = list_of(c);
  if (list == nullptr) return false;
  for (const std::string& name : *list)
    if (std::ranges::find(kLimits, name) == std::end(kLimits)) return false;
  add_all(c, c.policy.required, *list);
  return true;
}

// More dangers are stricter: both lists hold.
Result<bool> raised_risks(const KeyContext& c) {
  const auto* list = list_of(c);
  if (list == nullptr) return false;
  auto rules = diff::risk_rules();
  for (const std::string& code : *list)
    if (std::ranges::find(rules, code, &diff::RuleInfo::code) == rules.end())
      return false;
  add_all(c, c.policy.dangers, *list);
  return true;
}

// Fewer entries allow less: only what both name holds.
void put_allowing(const KeyContext& c, List& slot,
                  const std::vector<std::string>& list) {
  if (c.merge == Merge::kSet) {
    slot = {list, c.origin};
    return;
  }
  std::vector<std::string> both;
  for (const std::string& item : list) {
    if (std::ranges::find(slot.value, item) != slot.value.end())
      both.push_back(item);
    else
      ignored_because(c, fmt::format("'{}' is not in the user's list", item));
  }
  slot = {both, slot.origin + " and " + c.origin};
}

Result<bool> allow(const KeyContext& c) {
  const auto* list = list_of(c);
  if (list == nullptr) return false;
  for (const std::string& rule : *list)
    if (!parse_net_rule(rule)) return false;
  put_allowing(c, c.policy.allow, *list);
  c.policy.net = {
      c.policy.allow.value.empty() ? NetMode::kNone : NetMode::kAllow,
      c.policy.allow.origin};
  return true;
}

Result<bool> env_pass(const KeyContext& c) {
  const auto* list = list_of(c);
  if (list == nullptr) return false;
  for (const std::string& name : *list)
    if (name.empty() || name.find('=') != name.npos) return false;
  put_allowing(c, c.policy.env_pass, *list);
  return true;
}

Result<bool> auto_approve(const KeyContext& c) {
  const auto* list = list_of(c);
  if (list == nullptr || !all_globs(*list)) return false;
  put_allowing(c, c.policy.auto_approve, *list);
  return true;
}

// A choice of two words, of which the first is the looser.
template <Sourced<std::string> Policy::* kSlot>
Result<bool> choice(const KeyContext& c, std::string_view loose,
                    std::string_view tight) {
  auto text = text_of(c);
  if (!text || (*text != loose && *text != tight)) return false;
  Sourced<std::string>& slot = c.policy.*kSlot;
  if (c.merge == Merge::kTighten && *text == loose && slot.value == tight) {
    ignored_because(c, kLoosens);
    return true;
  }
  slot = {*text, c.origin};
  return true;
}

// From the tightest to the loosest.
constexpr std::string_view kModes[] = {"observe", "hold", "gated", "auto"};

Result<bool> gate_mode(const KeyContext& c) {
  auto text = text_of(c);
  if (!text) return false;
  auto wanted = std::ranges::find(kModes, *text);
  if (wanted == std::end(kModes)) return false;
  Sourced<std::string>& slot = c.policy.gate_mode;
  if (c.merge == Merge::kTighten &&
      wanted > std::ranges::find(kModes, slot.value)) {
    ignored_because(c, kLoosens);
    return true;
  }
  slot = {*text, c.origin};
  return true;
}

// Not for a workspace's file: an agent could make old commits final with it.
Result<bool> undo_size(const KeyContext& c) {
  auto text = text_of(c);
  if (!text) return false;
  std::optional<uint64_t> value;
  if (*text != "none") {
    auto parsed = parse_size(*text);
    if (!parsed || *parsed == 0) return false;
    value = *parsed;
  }
  if (c.merge == Merge::kTighten)
    ignored_because(c, "only the user's file may say how long undo reaches");
  else
    c.policy.undo_size = {value, c.origin};
  return true;
}

Result<bool> gate_ignored(const KeyContext& c) {
  return choice<&Policy::ignored>(c, "commit", "hold");
}

// A workspace's file could be the agent's: a shorter history is not tighter.
bool is_users_own(const KeyContext& c) {
  if (c.merge != Merge::kTighten) return true;
  ignored_because(c, "only the user's file says what history is kept");
  return false;
}

Result<bool> history_age(const KeyContext& c) {
  auto text = text_of(c);
  auto parsed = text && *text != "none" ? parse_duration(*text)
                                        : Result<Millis>(Millis(0));
  if (!text || !parsed || (*text != "none" && parsed->count() <= 0))
    return false;
  if (!is_users_own(c)) return true;
  c.policy.history_age = {std::nullopt, c.origin};
  if (*text != "none")
    c.policy.history_age.value = static_cast<uint64_t>(parsed->count());
  return true;
}

Result<bool> history_size(const KeyContext& c) {
  auto text = text_of(c);
  auto parsed = text && *text != "none" ? parse_size(*text)
                                        : Result<uint64_t>(uint64_t{0});
  if (!text || !parsed || (*text != "none" && *parsed == 0)) return false;
  if (!is_users_own(c)) return true;
  c.policy.history_size = {std::nullopt, c.origin};
  if (*text != "none") c.policy.history_size.value = *parsed;
  return true;
}

constexpr std::string_view kDuration =
    "a duration such as \"30m\", or \"none\"";
constexpr std::string_view kSize = "a size such as \"512M\", or \"none\"";
constexpr std::string_view kCount = "a number above 0, or \"none\"";
constexpr std::string_view kGlobs = "a list of globs";

constexpr KeySpec kKeys[] = {
    {"limits.time", kDuration, duration<&PolicyLimits::time>},
    {"limits.cpu", kDuration, duration<&PolicyLimits::cpu>},
    {"limits.cpus", kCount, count<&PolicyLimits::cpus, 1000>},
    {"limits.memory", kSize, size<&PolicyLimits::memory>},
    {"limits.pids", kCount, count<&PolicyLimits::pids, 1>},
    {"limits.files", kCount, count<&PolicyLimits::files, 1>},
    {"limits.output", kSize, size<&PolicyLimits::output>},
    {"limits.disk", kSize, size<&PolicyLimits::disk>},
    {"limits.inodes", kCount, count<&PolicyLimits::inodes, 1>},
    {"limits.required", "a list of names of limits", required_limits},
    {"network.allow", "a list of \"host\" or \"host:port\"", allow},
    {"files.hide", kGlobs, added_globs<&Policy::hide>},
    {"files.mask", kGlobs, added_globs<&Policy::mask>},
    {"files.read_only", kGlobs, added_globs<&Policy::read_only>},
    {"env.pass", "a list of names of variables", env_pass},
    {"gate.mode", "\"observe\", \"hold\", \"gated\" or \"auto\"", gate_mode},
    {"gate.max_age", kDuration, max_age},
    {"gate.always_ask", kGlobs, added_globs<&Policy::always_ask>},
    {"gate.auto_approve", kGlobs, auto_approve},
    {"gate.dangers", "a list of codes of risks such as \"package-script\"",
     raised_risks},
    {"gate.ignored", "\"hold\" or \"commit\"", gate_ignored},
    {"gate.undo_size", kSize, undo_size},
    {"history.max_age", kDuration, history_age},
    {"history.max_size", kSize, history_size},
};

}  // namespace

std::span<const KeySpec> policy_keys() { return kKeys; }

}  // namespace stoplog::draft
