// SPDX-License-Identifier: Apache-2.0
// A draft at one position of its journal as an fs::View: no mount, no daemon,
// nothing written. The journal is replayed up to the position; with a live
// daemon ask it for a barrier mark first and give that mark's position, so
// that no extent the view stands on is written again.
//
//   auto view = TRY(open_view({.draft_dir = dfd, .base = bfd,
//                              .at = mark.position}));
//   for (const RawChange& change : TRY(view->changes())) ...
//
// A view from before a commit is what a rollback would give: over the real tree
// of today, with what the commit replaced as held. That is read from `objects`;
// without it such content is Code::kDrift.
#pragma once

#include <memory>

#include "fs/replay.h"
#include "fs/tree_types.h"
#include "fs/view.h"

namespace stoplog::fs {

struct ViewOptions {
  int draft_dir = -1;  // borrowed for the call, as is `base`
  int base = -1;
  Position at = kEnd;
  ObjectSource objects{};
};

// Also what a report needs beside the changes themselves.
class DraftView : public View {
 public:
  virtual Position position() const = 0;
  virtual const std::vector<Mark>& marks() const = 0;
  // What a replay found wrong, for people; empty when all is well.
  virtual const std::vector<std::string>& notes() const = 0;
  virtual bool damaged() const = 0;
  // Bytes held, and how many nodes.
  virtual uint64_t held_bytes() const = 0;
  virtual uint64_t held_nodes() const = 0;
  // The last command of the timeline that touched what stands at a path; 0:
  // none, or the draft did not touch it.
  virtual uint32_t command_at(const RelPath& path) const = 0;
  // Large files that still stand on the real file's bytes.
  virtual std::vector<RelPath> unpinned() const = 0;
};

Result<std::unique_ptr<DraftView>> open_view(const ViewOptions& options);

// The marks of a draft, oldest first, and its end, without the cost of a view:
// nothing is applied.
struct Timeline {
  std::vector<Mark> marks;
  Position end = 0;
  bool damaged = false;
  // Perhaps something was changed since the last mark that has a name.
  bool unmarked = false;
};
Result<Timeline> read_timeline(int draft_dir);
Result<std::vector<Mark>> list_marks(int draft_dir);

}  // namespace stoplog::fs
