// SPDX-License-Identifier: Apache-2.0
// How a command ended, as JSON: the ledger's `run` entry and `run --report`
// (schema in man stoplog-run). Pure, but for
// cut_outputs().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "draft/ledger.h"
#include "draft/protocol.h"

namespace stoplog::draft {

// The fields that entry and report share. Times in ms, sizes in bytes.
Json outcome_fields(uint32_t command, const RunRequest& request,
                    const std::string& workspace, const Outcome& outcome);
// The ledger's: with limits and names of variables, never their values.
Json run_entry(uint32_t command, const RunRequest& request,
               const std::string& workspace, const Outcome& outcome);
// What is known before it starts, of run_entry()'s; and the entry of one whose
// daemon was killed under it, made of that: nothing was measured.
Json begun_entry(uint32_t command, const RunRequest& request,
                 const std::string& workspace, const std::string& started);
Json lost_entry(const Json& begun);
// Of a command that was done, and on record, before it was known that its
// output was cut: what that changes of its entry (kind "cut", and a key for
// each).
Json cut_entry(uint32_t command, const Outcome& outcome);
// `run` as it ended after all. `cut` is such an entry of the same command.
void amend(Json& run, const Json& cut);
// All such entries of a record, by their command; they stand behind its own, so
// the `last` entries have all that is to be known of the runs among them.
Result<std::map<int64_t, Json>> cut_outputs(const Ledger& ledger,
                                            std::optional<uint64_t> last = {});
// The report's: version and draft first. `changed` is null when unknown.
Json run_report(const std::string& draft, uint32_t command,
                const RunRequest& request, const std::string& workspace,
                const Outcome& outcome, Json changed);

}  // namespace stoplog::draft
