// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/clock.h"
#include "base/json_path.h"
#include "base/shown_path.h"
#include "cli/commit_flow.h"
#include "cli/words.h"
#include "gate/commit_plan.h"

namespace stoplog::cli {
namespace {

Json side(const std::optional<gate::Node>& node) {
  if (!node) return Json();
  Json j = Json::object();
  j.set("type", fs::name_of(node->type));
  j.set("mode", fmt::format("{:04o}", node->mode)).set("size", node->size);
  j.set("sha256", node->sha256 ? Json("sha256:" + hex(*node->sha256)) : Json());
  return j;
}

}  // namespace

std::string describe_commit(const gate::CommitResult& result) {
  return gate::to_text(result.plan);
}

std::string left_text(const CommitEnd& end) {
  std::string text;
  if (end.left > 0) text = plural(end.left, "change");
  if (end.left_ignored > 0)
    text += fmt::format("{}{} that git ignores", text.empty() ? "" : " and ",
                        plural(end.left_ignored, "file"));
  return text.empty() ? "" : "still held: " + text;
}

Json commit_fields(const gate::CommitRecord& record) {
  const gate::CommitMeta& meta = record.meta;
  Json fields = Json::object();
  fields.set("user", meta.user);
  fields.set("tty", meta.tty.empty() ? Json() : Json(meta.tty));
  fields.set("commit", meta.number);
  if (meta.undoes != 0)
    fields.set("undoes", meta.undoes);
  else
    fields.set("digest", meta.change_digest)
        .set("plan", meta.plan_digest)
        .set("policy", meta.policy_digest);
  std::vector<RelPath> paths;
  for (const gate::Item& item : record.items)
    if (!item.stays()) paths.push_back(item.path);
  return set_paths(fields, "paths", paths);
}

Json commit_json(const gate::CommitRecord& record,
                 const std::string& workspace) {
  const gate::CommitMeta& m = record.meta;
  auto text = [](const std::string& s) { return s.empty() ? Json() : Json(s); };
  Json j = Json::object();
  j.set("version", 1).set("commit", m.number).set("id", m.id);
  j.set("kind", m.kind).set("undoes", m.undoes != 0 ? Json(m.undoes) : Json());
  j.set("time", rfc3339(m.time)).set("workspace", workspace);
  j.set("draft", text(m.draft)).set("digest", text(m.change_digest));
  j.set("plan", text(m.plan_digest)).set("policy", text(m.policy_digest));
  j.set("user", text(m.user)).set("tty", text(m.tty));
  Json changes = Json::array();
  for (const gate::Item& item : record.items) {
    if (item.stays()) continue;
    Json c = Json::object();
    set_path(c, "path", shown_path(item.path)).set("from", Json());
    if (item.from) set_path(c, "from", item.from->str());
    c.set("old", side(item.old)).set("new", side(item.fresh));
    changes.push(std::move(c));
  }
  Json left = Json::array();
  for (const gate::Left& l : record.left) {
    Json c = Json::object();
    set_path(c, "path", shown_path(l.path));
    left.push(c.set("why", l.why));
  }
  return j.set("changes", changes).set("left", left);
}

}  // namespace stoplog::cli
