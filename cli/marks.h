// SPDX-License-Identifier: Apache-2.0
// Moments of a draft by name, and what only its tree can do.
//
//   fs::Mark mark = TRY(find_mark(opened.view->marks(), "@4"));
//   auto then = TRY(view_at(opened, mark.position));
//   TRY(with_tree(context, opened, [&](fs::Tree& tree) { ... }));
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/context.h"
#include "cli/opened.h"
#include "fs/draft_view.h"
#include "fs/tree.h"

namespace stoplog::cli {

// `@4` before command 4, `@4.` after it, or a snapshot's name; kUsage with the
// nearest one as hint.
Result<fs::Mark> find_mark(const std::vector<fs::Mark>& marks,
                           const std::string& name);
// The name that find_mark() takes: "" for marks that have none.
std::string mark_name(const fs::Mark& mark);

// A name that is not taken: `stem` and a number.
std::string free_name(const std::vector<fs::Mark>& marks,
                      std::string_view stem);
// Names the present state, in the ledger as well.
Result<fs::Mark> take_mark(Context& context, Opened& opened,
                           const std::string& name);

// Another moment of the same draft.
Result<std::unique_ptr<fs::DraftView>> view_at(const Opened& opened,
                                               fs::Position position);

}  // namespace stoplog::cli
