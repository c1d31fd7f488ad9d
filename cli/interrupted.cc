// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupted.h"

#include <fcntl.h>

#include "base/sys_file.h"
#include "cli/opened.h"
#include "draft/layout.h"
#include "gate/gate.h"

namespace stoplog::cli {

Result<Fd> find_commits(Context& context) {
  auto commits = sys::openat(AT_FDCWD, TRY(context.layout())->commits(),
                             O_RDONLY | O_DIRECTORY);
  if (!commits && draft::is_nothing(commits.error())) return Fd();
  if (!commits) return commits;
  return gate::find_state(commits->get(), TRY(context.workspace())->path);
}

Status finish_interrupted(Context& context) {
  Fd state = TRY(find_commits(context));
  if (!state) return {};
  Fd root = TRY(sys::openat(AT_FDCWD, TRY(context.workspace())->path,
                            O_RDONLY | O_DIRECTORY));
  if (!TRY(gate::is_interrupted(state.get(), root.get()))) return {};
  auto at_rest = gate::lock_root({.root = root.get(),
                                  .state = state.get(),
                                  .lock_wait = std::chrono::milliseconds(0)});
  if (!at_rest && at_rest.error().err() == EWOULDBLOCK) return {};
  TRY(std::move(at_rest));
  Doorstep door = TRY(open_doorstep(context));
  if (door.recovered.what == gate::RecoverReport::What::kNothing) return {};
  // Whose it was has it on record then, too.
  auto draft = TRY(context.store())->load(door.recovered.draft);
  if (draft) TRY(open_draft(context, *draft, {.only_marks = true}));
  return {};
}

}  // namespace stoplog::cli
