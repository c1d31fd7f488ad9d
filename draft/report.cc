// SPDX-License-Identifier: Apache-2.0
#include "draft/report.h"

#include <signal.h>

#include <algorithm>

#include "base/json_path.h"

namespace stoplog::draft {
namespace {

Json limits_json(const Limits& limits) {
  Json json = Json::object();
  auto put = [&](const char* name, const Limit& limit) {
    if (limit.value) json.set(name, *limit.value);
  };
  put("time_ms", limits.time_ms);
  put("cpu_ms", limits.cpu_ms);
  put("cpus_milli", limits.cpus_milli);
  put("memory", limits.memory);
  put("pids", limits.pids);
  put("files", limits.files);
  put("output", limits.output);
  put("disk", limits.disk);
  put("inodes", limits.inodes);
  return json;
}

Json network_json(const std::vector<NetAttempt>& attempts) {
  Json json = Json::array();
  for (const NetAttempt& a : attempts)
    json.push(Json::object()
                  .set("host", a.host)
                  .set("port", a.port)
                  .set("verdict", a.allowed ? "allowed" : "denied"));
  return json;
}

// RLIMIT_NPROC refuses without counting: once, when the limit was seen reached.
uint64_t refused_pids(const RunRequest& request, const Outcome& outcome) {
  for (const auto& [limit, by] : outcome.held)
    if (limit == "pids" && by == "rlimit")
      return request.limits.pids.value &&
                     outcome.pids_peak >= *request.limits.pids.value
                 ? 1
                 : 0;
  return outcome.refused_pids;
}

void add(Json& to, const Json& from) {
  for (const auto& [key, value] : from.members()) to.set(key, value);
}

}  // namespace

Json outcome_fields(uint32_t command, const RunRequest& request,
                    const std::string& workspace, const Outcome& outcome) {
  std::string cwd = workspace;
  if (!request.cwd.empty()) cwd += "/" + request.cwd;
  const bool killed = !outcome.killed_by.empty();
  // A limit that ended it names its value; being told to stop has none.
  const bool by_limit = killed && outcome.killed_by != "supervisor";
  Json held = Json::object();
  for (const auto& [limit, by] : outcome.held) held.set(limit, by);
  Json json = Json::object();
  json.set("command", command);
  set_words(json, "argv", request.argv);
  set_path(json, "cwd", cwd);
  json.set("exit", outcome.exit)
      .set("signal", outcome.signal != 0 ? Json(outcome.signal) : Json())
      .set("killed_by", killed ? Json(outcome.killed_by) : Json())
      .set("limit", by_limit ? Json(outcome.limit) : Json())
      .set("measured", by_limit ? Json(outcome.measured) : Json());
  if (outcome.lost.empty())
    json.set("lost", Json());
  else
    set_path(json, "lost", outcome.lost);
  json.set("refused", Json::object()
                          .set("disk", outcome.refused_disk)
                          .set("inodes", outcome.refused_inodes)
                          .set("pids", refused_pids(request, outcome)))
      .set("wall_ms", outcome.wall_ms)
      .set("cpu_ms", outcome.cpu_ms)
      .set("cpu_user_ms", outcome.cpu_user_ms)
      .set("cpu_system_ms", outcome.cpu_system_ms)
      .set("memory_peak", outcome.memory_peak)
      .set("pids_peak", outcome.pids_peak)
      .set("read_bytes", outcome.read_bytes)
      .set("written_bytes", outcome.written_bytes)
      .set("held", held)
      .set("network", network_json(outcome.network));
  return json;
}

Json run_entry(uint32_t command, const RunRequest& request,
               const std::string& workspace, const Outcome& outcome) {
  Json json = outcome_fields(command, request, workspace, outcome);
  std::vector<std::string> names;
  for (const auto* list : {&request.env, &request.env_extra})
    for (const std::string& variable : *list) {
      std::string name = variable.substr(0, variable.find('='));
      // Passed by default and by the policy: the latter value counts.
      if (std::ranges::find(names, name) == names.end())
        names.push_back(std::move(name));
    }
  json.set("env", Json::strings(names))
      .set("limits", limits_json(request.limits))
      .set("policy", request.policy_digest)
      .set("failure", outcome.failure.empty() ? Json() : Json(outcome.failure))
      .set("mark_before", fmt::format("@{}", command))
      .set("mark_after", fmt::format("@{}.", command))
      .set("position", outcome.position_after);
  return json;
}

Json begun_entry(uint32_t command, const RunRequest& request,
                 const std::string& workspace, const std::string& started) {
  return run_entry(command, request, workspace, {}).set("started", started);
}

Json lost_entry(const Json& begun) {
  Json json = begun;
  // The jail goes with its daemon.
  json.set("exit", 128 + SIGKILL)
      .set("signal", SIGKILL)
      .set("killed_by", "supervisor")
      .set("failure", "the draft's daemon was killed while it ran");
  for (const char* key : {"wall_ms", "cpu_ms", "cpu_user_ms", "cpu_system_ms",
                          "memory_peak", "pids_peak", "read_bytes",
                          "written_bytes", "changed", "mark_after", "position"})
    json.set(key, Json());
  return json;
}

Json cut_entry(uint32_t command, const Outcome& outcome) {
  return Json::object()
      .set("command", command)
      .set("exit", outcome.exit)
      .set("killed_by", outcome.killed_by)
      .set("limit", outcome.limit)
      .set("measured", outcome.measured);
}

void amend(Json& run, const Json& cut) {
  for (const char* key : {"exit", "killed_by", "limit", "measured"})
    run.set(key, cut[key]);
}

Result<std::map<int64_t, Json>> cut_outputs(const Ledger& ledger,
                                            std::optional<uint64_t> last) {
  std::map<int64_t, Json> cuts;
  TRY(ledger.for_each_of(
      "cut", [&](const Json& e) { cuts[e.integer("command")] = e; }, last));
  return cuts;
}

Json run_report(const std::string& draft, uint32_t command,
                const RunRequest& request, const std::string& workspace,
                const Outcome& outcome, Json changed) {
  Json json = Json::object();
  json.set("version", 1).set("draft", draft);
  add(json, outcome_fields(command, request, workspace, outcome));
  json.set("changed", std::move(changed))
      .set("mark_before", fmt::format("@{}", command))
      .set("mark_after", fmt::format("@{}.", command));
  return json;
}

}  // namespace stoplog::draft
