// SPDX-License-Identifier: Apache-2.0
#include "draft/draft_file.h"

#include "base/log.h"
#include "base/sys_file.h"
#include "draft/layout.h"

namespace stoplog::draft {
namespace {

constexpr uint64_t kMaxDraftFile = 1u << 20;

Result<Draft> parse_draft(int dir, const char* file) {
  std::string text = TRY(sys::read_file(dir, file, kMaxDraftFile));
  auto json = Json::parse(text);
  if (!json) return fail(Code::kCorrupt, "{}: {}", file, json.error().text());
  return Draft::from_json(*json);
}

}  // namespace

Result<Draft> read_draft(int draft_dir) {
  auto now = parse_draft(draft_dir, kDraftFile);
  if (now || now.error().code() != Code::kCorrupt) return now;
  auto before = parse_draft(draft_dir, kSyncedFile);
  return before ? std::move(before) : std::move(now);
}

Status write_draft(int draft_dir, const Draft& draft, Sync sync) {
  TRY_CTX(
      write_file(draft_dir, kDraftFile, draft.to_json().pretty(), 0600, sync),
      "cannot write draft.json");
  if (sync != Sync::kYes) return {};
  // It is written, whatever comes of its second name, which is for a loss of
  // power later on.
  if (Status kept = keep_synced(draft_dir); !kept)
    log::error("cannot keep {}: {}", kSyncedFile, kept.error().text());
  return {};
}

// One more name of the same file: nothing is written twice.
Status keep_synced(int draft_dir) {
  const std::string fresh = std::string(kSyncedFile) + ".new";
  Status gone = sys::unlinkat(draft_dir, fresh);
  if (!gone && gone.error().err() != ENOENT) return gone;
  TRY(sys::linkat(draft_dir, kDraftFile, draft_dir, fresh));
  return sys::renameat2(draft_dir, fresh, draft_dir, kSyncedFile, 0);
}

}  // namespace stoplog::draft
