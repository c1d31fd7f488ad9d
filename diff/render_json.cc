// SPDX-License-Identifier: Apache-2.0
// `status --json` and `diff --json`, version 1. Written change by change, so
// that memory does not grow with their number.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/json.h"
#include "base/strings.h"
#include "diff/git_meta.h"
#include "diff/paint.h"
#include "diff/render.h"

namespace stoplog::diff {
namespace {

using Json = nlohmann::ordered_json;

// Valid JSON with what would obey, hide or reorder escaped: to a pipe too,
// since a reader prints it. Outside of strings there is no such character.
std::string dump(const Json& json, const JsonOptions& options) {
  std::string text =
      json.dump(-1, ' ', options.terminal, Json::error_handler_t::replace);
  if (std::ranges::none_of(
          text, [](char c) { return static_cast<unsigned char>(c) >= 0x7f; }))
    return text;
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view here = rest;
    bool plain = kind_of(take_utf8(rest).c) == CharKind::kPlain;
    here.remove_suffix(rest.size());
    if (plain) {
      out += here;
    } else {
      std::string quoted;
      json_quote(quoted, here);
      out += std::string_view(quoted).substr(1, quoted.size() - 2);
    }
  }
  return out;
}

std::string valid(std::string_view text) {
  return is_utf8(text) ? std::string(text) : escape(text);
}

// The exact path; what is not UTF-8 is escaped, with the bytes beside it.
void put_path(Json& json, const char* key, const char* bytes_key,
              std::string_view path) {
  json[key] = valid(path);
  if (!is_utf8(path)) json[bytes_key] = base64(path);
}

std::string_view type_name(const Change& change) {
  switch ((change.after ? change.after : change.before)->type) {
    case fs::Type::kFile:
      return "file";
    case fs::Type::kDir:
      return "dir";
    case fs::Type::kSymlink:
      return "symlink";
    default:
      return "special";
  }
}

Json hash_json(const std::optional<Hash128>& hash) {
  return hash ? Json("xxh3:" + hash->hex()) : Json(nullptr);
}

Json mode_json(const std::optional<fs::NodeState>& state) {
  return state ? Json(mode_text(*state)) : Json(nullptr);
}

Json number_json(const std::optional<uint64_t>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json git_json(const GitChange& git) {
  Json refs = Json::array();
  for (const RefMove& ref : git.refs) {
    Json one;
    one["name"] = valid(ref.name);
    one["from"] = ref.from ? Json(valid(*ref.from)) : Json(nullptr);
    one["to"] = ref.to ? Json(valid(*ref.to)) : Json(nullptr);
    Json subjects = Json::array();
    for (const std::string& subject : ref.subjects)
      subjects.push_back(valid(subject));
    one["subjects"] = std::move(subjects);
    refs.push_back(std::move(one));
  }
  Json json;
  json["summary"] = valid(git.summary());
  json["refs"] = std::move(refs);
  json["index"] = {{"added", git.index_added},
                   {"modified", git.index_modified},
                   {"removed", git.index_removed}};
  json["objects_added"] = git.objects_added;
  json["objects_removed"] = git.objects_removed;
  json["packs_added"] = git.packs_added;
  json["packs_removed"] = git.packs_removed;
  return json;
}

Json change_json(const Change& change, const JsonOptions& options) {
  Json json;
  put_path(json, "path", "path_bytes", change.shown_path());
  json["kind"] = name_of(change.kind);
  json["from"] = nullptr;
  if (change.from) put_path(json, "from", "from_bytes", change.from->str());
  json["type"] = type_name(change);
  json["old_mode"] = mode_json(change.before);
  json["new_mode"] = mode_json(change.after);
  json["old_hash"] = hash_json(change.old_hash);
  json["new_hash"] = hash_json(change.new_hash);
  json["size"] = change.size();
  json["binary"] = change.binary;
  json["lines_added"] = number_json(change.lines_added);
  json["lines_deleted"] = number_json(change.lines_deleted);
  json["command"] = change.command > 0 ? Json(change.command) : Json(nullptr);
  json["ignored"] = change.ignored;
  json["drift"] = change.drift ? Json(valid(*change.drift)) : Json(nullptr);
  std::string decision = options.decision ? options.decision(change) : "";
  json["decision"] = decision.empty() ? "none" : decision;
  Json risks = Json::array();
  for (const Risk& risk : change.risks)
    risks.push_back(
        {{"level", name_of(risk.level)},
         {"code", valid(risk.code)},
         {"message", valid(risk.message)},
         {"line", risk.line > 0 ? Json(risk.line) : Json(nullptr)}});
  json["risks"] = std::move(risks);
  if (change.after && change.after->type == fs::Type::kSymlink)
    put_path(json, "target", "target_bytes", change.after->target);
  if (change.link_to)
    put_path(json, "link", "link_bytes", change.link_to->str());
  if (change.git) json["git"] = git_json(*change.git);
  return json;
}

}  // namespace

void render_json(const ChangeSet& set, const JsonOptions& options,
                 const Sink& sink) {
  Json head;
  head["version"] = 1;
  head["draft"] = valid(options.draft);
  head["workspace"] = valid(options.workspace);
  head["digest"] =
      set.digest ? Json("sha256:" + hex(*set.digest)) : Json(nullptr);
  head["stale"] = options.stale;
  std::string text = dump(head, options);
  text.back() = ',';
  sink(text + "\"changes\":[");
  bool first = true;
  for (size_t i : display_order(set)) {
    const Change& change = set.changes[i];
    if (!is_listed(change, options.ignored, options.paths)) continue;
    sink((first ? "" : ",") + dump(change_json(change, options), options));
    first = false;
  }
  Json groups = Json::array();
  for (const Group& group : set.groups) {
    Json json;
    put_path(json, "path", "path_bytes", group.path);
    json["reason"] = group.reason;
    json["files"] = group.files;
    json["bytes"] = group.bytes;
    json["deleted"] = group.deleted;
    groups.push_back(std::move(json));
  }
  sink("],\"groups\":" + dump(groups, options) + "}\n");
}

}  // namespace stoplog::diff
