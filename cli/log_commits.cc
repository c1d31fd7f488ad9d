// SPDX-License-Identifier: Apache-2.0
#include "cli/log_commits.h"

#include <map>

#include "base/clock.h"
#include "base/escape.h"
#include "cli/commit_flow.h"
#include "cli/interrupted.h"

namespace stoplog::cli {

Result<std::vector<Json>> commit_entries(Context& context) {
  std::vector<Json> entries;
  Fd state = TRY(find_commits(context));
  if (!state) return entries;
  std::map<std::string, std::string> names;
  for (const draft::Draft& d : TRY(TRY(context.store())->list()))
    names[d.id] = d.name;
  for (uint64_t number : TRY(gate::list_commits(state.get()))) {
    auto record = gate::read_commit(state.get(), number);
    if (!record) {
      context.out.note(fmt::format("the record of commit {}: {}", number,
                                   escape(record.error().text())));
      continue;
    }
    const gate::CommitMeta& meta = record->meta;
    Json entry = Json::object();
    entry.set("n", entries.size() + 1)
        .set("kind", meta.kind)
        .set("time", rfc3339(meta.time));
    auto name = names.find(meta.draft);
    entry.set("draft", name != names.end() ? name->second : meta.draft);
    const Json fields = commit_fields(*record);
    for (const auto& [key, value] : fields.members()) entry.set(key, value);
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<uint64_t> commits_of_others(Context& context,
                                   const draft::Draft& draft) {
  Fd state = TRY(find_commits(context));
  if (!state) return uint64_t{0};
  uint64_t count = 0;
  for (uint64_t number : TRY(gate::list_commits(state.get()))) {
    auto meta = gate::read_commit_meta(state.get(), number);
    if (!meta) continue;
    // An undo is in the record of the draft whose commit it took back.
    if (meta->undoes != 0) {
      auto undone = gate::read_commit_meta(state.get(), meta->undoes);
      if (undone) meta = std::move(undone);
    }
    if (meta->draft != draft.id) ++count;
  }
  return count;
}

}  // namespace stoplog::cli
