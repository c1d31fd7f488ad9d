// SPDX-License-Identifier: Apache-2.0
#include "cli/rejection_notes.h"

#include "draft/layout.h"
#include "gate/gate.h"

namespace stoplog::cli {

Status tell_rejections(Context& context, const Opened& opened) {
  constexpr int kTries = 3;
  for (int tries = 1;; ++tries) {
    // Not the one that the draft was opened with: a review may be open for
    // hours, and daemons come and go.
    auto daemon =
        TRY(draft::Client::connect(*TRY(context.layout()), opened.draft.id));
    if (!daemon) return {};
    gate::Plan plan =
        TRY(gate::load_plan(opened.draft_dir.get(), draft::kPlanFile));
    Status told =
        daemon->note(draft::kRejectionsNote, gate::rejections_text(plan));
    if (told || !draft::went_away(told.error()) || tries == kTries) return told;
  }
}

}  // namespace stoplog::cli
