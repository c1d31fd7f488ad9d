// SPDX-License-Identifier: Apache-2.0
#include "gate/plan.h"

#include <algorithm>

#include "base/clock.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/parallel.h"
#include "base/strings.h"
#include "base/sys_file.h"
#include "base/temp_file.h"

namespace stoplog::gate {
namespace {

constexpr int64_t kVersion = 1;
constexpr uint64_t kMaxPlan = 256u << 20;

std::string digest_text(const Sha256Digest& digest) {
  return "sha256:" + hex(digest);
}
Status parse_digest(std::string_view text, Sha256Digest& digest) {
  if (!text.starts_with("sha256:"))
    return fail(Code::kCorrupt, "not a digest: {}", text);
  TRY(unhex(text.substr(7), digest));
  return {};
}

// Paths are bytes; git's quoting is pure ASCII and exact.
Json path_json(const RelPath& path) { return Json(quote_name(path.str())); }
Result<RelPath> parse_path(const Json& json) {
  return RelPath::parse(TRY(unquote_name(json.string())));
}

std::string_view verdict_text(Verdict verdict) {
  return verdict == Verdict::kApproved ? "approved" : "rejected";
}
Result<Verdict> parse_verdict(std::string_view text) {
  if (text == "approved") return Verdict::kApproved;
  if (text == "rejected") return Verdict::kRejected;
  return fail(Code::kCorrupt, "not a verdict: {}", text);
}

Json to_json(const Decision& decision) {
  Json json = Json::object();
  json.set("path", path_json(decision.path))
      .set("verdict", verdict_text(decision.verdict))
      .set("change", digest_text(decision.change));
  if (decision.base) json.set("base", digest_text(*decision.base));
  if (decision.fresh) json.set("new", digest_text(*decision.fresh));
  if (!decision.edits.empty()) {
    Json edits = Json::array();
    for (const EditDecision& edit : decision.edits)
      edits.push(std::move(Json::object()
                               .set("edit", digest_text(edit.edit))
                               .set("verdict", verdict_text(edit.verdict))));
    json.set("edits", std::move(edits));
  }
  json.set("confirmed", decision.confirmed)
      .set("standing", decision.standing)
      .set("reason", base64(decision.reason))
      .set("user", decision.by.user)
      .set("tty", decision.by.tty)
      .set("time", rfc3339(decision.by.time))
      .set("set", decision.by.set_digest);
  return json;
}

Result<std::string> from_base64(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int have = 0;
  for (char c : text) {
    if (c == '=') break;
    static constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos)
      return fail(Code::kCorrupt, "not base64");
    bits = (bits << 6) | static_cast<uint32_t>(value);
    have += 6;
    if (have >= 8) {
      have -= 8;
      out += static_cast<char>((bits >> have) & 0xff);
    }
  }
  return out;
}

Result<Decision> decision_from(const Json& json) {
  Decision decision;
  decision.path = TRY(parse_path(json["path"]));
  decision.verdict = TRY(parse_verdict(json.text("verdict")));
  TRY(parse_digest(json.text("change"), decision.change));
  auto maybe = [&](const char* key,
                   std::optional<Sha256Digest>& out) -> Status {
    if (json.find(key) == nullptr) return {};
    TRY(parse_digest(json.text(key), out.emplace()));
    return {};
  };
  TRY(maybe("base", decision.base));
  TRY(maybe("new", decision.fresh));
  for (const Json& item : json["edits"].items()) {
    EditDecision edit;
    TRY(parse_digest(item.text("edit"), edit.edit));
    edit.verdict = TRY(parse_verdict(item.text("verdict")));
    decision.edits.push_back(edit);
  }
  decision.confirmed = json.boolean("confirmed");
  decision.standing = json.boolean("standing");
  decision.reason = TRY(from_base64(json.text("reason")));
  decision.by.user = json.text("user");
  decision.by.tty = json.text("tty");
  decision.by.time = TRY(parse_rfc3339(json.text("time")));
  decision.by.set_digest = json.text("set");
  return decision;
}

}  // namespace

const Decision* Plan::find(const RelPath& path) const {
  auto at = std::lower_bound(
      decisions.begin(), decisions.end(), path,
      [](const Decision& d, const RelPath& p) { return d.path < p; });
  return at != decisions.end() && at->path == path ? &*at : nullptr;
}

void Plan::set(Decision decision) {
  // Changes come in order, and are mostly decided on in that.
  if (decisions.empty() || decisions.back().path < decision.path) {
    decisions.push_back(std::move(decision));
    return;
  }
  auto at = std::lower_bound(
      decisions.begin(), decisions.end(), decision.path,
      [](const Decision& d, const RelPath& p) { return d.path < p; });
  if (at != decisions.end() && at->path == decision.path)
    *at = std::move(decision);
  else
    decisions.insert(at, std::move(decision));
}

bool Plan::erase(const RelPath& path) {
  const Decision* found = find(path);
  if (found == nullptr) return false;
  decisions.erase(decisions.begin() + (found - decisions.data()));
  return true;
}

void Plan::erase(std::vector<RelPath> paths) {
  std::sort(paths.begin(), paths.end());
  std::erase_if(decisions, [&](const Decision& d) {
    return std::binary_search(paths.begin(), paths.end(), d.path);
  });
}

bool Plan::approves(const Decision& decision) {
  if (decision.edits.empty()) return decision.verdict == Verdict::kApproved;
  return std::any_of(decision.edits.begin(), decision.edits.end(),
                     [](const EditDecision& edit) {
                       return edit.verdict == Verdict::kApproved;
                     });
}

// Each by itself and on a few threads: of 10,000 as one tree this was a tenth
// of what a commit takes before it writes.
std::string to_json(const Plan& plan) {
  constexpr size_t kRun = 256;
  std::vector<std::string> runs((plan.decisions.size() + kRun - 1) / kRun);
  (void)parallel_for(runs.size(), 0, [&](size_t run) -> Status {
    size_t end = std::min(plan.decisions.size(), (run + 1) * kRun);
    for (size_t i = run * kRun; i < end; ++i) {
      if (i > 0) runs[run] += ',';
      runs[run] += to_json(plan.decisions[i]).dump();
    }
    return {};
  });
  std::string text = fmt::format("{{\"version\":{},\"decisions\":[", kVersion);
  for (const std::string& run : runs) text += run;
  text += "],\"rejected\":[";
  for (const RejectedEdit& edit : plan.rejected) {
    if (&edit != plan.rejected.data()) text += ',';
    text += Json::object()
                .set("path", path_json(edit.path))
                .set("text", digest_text(edit.text))
                .set("reason", base64(edit.reason))
                .dump();
  }
  return text + "]}\n";
}

Result<Plan> plan_from_json(std::string_view text) {
  Json json = TRY(Json::parse(text));
  if (json.integer("version") != kVersion)
    return fail(Code::kCorrupt, "plan of an unknown version");
  Plan plan;
  for (const Json& item : json["decisions"].items())
    plan.decisions.push_back(TRY(decision_from(item)));
  std::sort(
      plan.decisions.begin(), plan.decisions.end(),
      [](const Decision& a, const Decision& b) { return a.path < b.path; });
  for (const Json& item : json["rejected"].items()) {
    RejectedEdit edit;
    edit.path = TRY(parse_path(item["path"]));
    TRY(parse_digest(item.text("text"), edit.text));
    edit.reason = TRY(from_base64(item.text("reason")));
    plan.rejected.push_back(std::move(edit));
  }
  return plan;
}

Result<Plan> load_plan(int dir, const std::string& name) {
  auto text = sys::read_file(dir, name, kMaxPlan);
  if (!text && text.error().err() == ENOENT) return Plan{};
  if (!text) return std::unexpected(std::move(text.error()).context(name));
  return TRY_CTX(plan_from_json(*text), name);
}

Status save_plan(int dir, const Plan& plan, const std::string& name) {
  return write_file(dir, name, to_json(plan));
}

Sha256Digest plan_digest(const Plan& plan) {
  Sha256 hash;
  hash.update("stoplog plan 1\n");
  for (const Decision& decision : plan.decisions) {
    bool parts = !decision.edits.empty();
    if (!parts && decision.verdict != Verdict::kApproved) continue;
    hash.update(quote_name(decision.path.str()) + "\n" + hex(decision.change) +
                "\n");
    for (const EditDecision& edit : decision.edits)
      if (edit.verdict == Verdict::kApproved)
        hash.update("edit " + hex(edit.edit) + "\n");
    if (decision.confirmed) hash.update("confirmed\n");
  }
  return hash.finish();
}

}  // namespace stoplog::gate
