// SPDX-License-Identifier: Apache-2.0
#include "cli/rejection_notes.h"

#include "draft/layout.h"
#include "gate/gate.h"

namespace stoplog::cli {

Status tell_rejections(Context&, Opened& opened) {
  if (!opened.daemon) return {};
  gate::Plan plan =
      TRY(gate::load_plan(opened.draft_dir.get(), draft::kPlanFile));
  return opened.daemon->note(draft::kRejectionsNote,
                             gate::rejections_text(plan));
}

}  // namespace stoplog::cli
