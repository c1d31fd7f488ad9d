// SPDX-License-Identifier: Apache-2.0
// What every command starts from: the global options, and what they mean here.
//
//   const Workspace& ws = TRY(context.workspace());
//   std::optional<Draft> d = TRY(context.find_draft());   // none is fine
//   Draft d = TRY(context.need_draft());                  // none is an error
//
// Nothing is looked at before it is asked for: `version` touches no disk.
// References stay valid as long as the context.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/relpath.h"
#include "base/result.h"
#include "cli/output.h"
#include "draft/client.h"
#include "draft/layout.h"
#include "draft/store.h"
#include "draft/workspace.h"

namespace stoplog::cli {

struct Globals {
  std::optional<std::string> workspace;
  std::optional<std::string> draft;
  ColorMode color = ColorMode::kAuto;
};

class Context {
 public:
  Context(Globals globals, Output& output)
      : out(output), globals_(std::move(globals)) {}

  Output& out;

  const Globals& globals() const { return globals_; }
  Result<const draft::Layout*> layout();
  Result<const draft::Workspace*> workspace();
  // Opened without creating anything.
  Result<draft::Store*> store();

  // -d, else $STOPLOG_DRAFT, else the workspace's current one. A name that is
  // given and unknown is kUsage.
  Result<std::optional<draft::Draft>> find_draft();
  Result<draft::Draft> need_draft();
  // Where there is none, how to come to one: it may be that of a directory
  // above or beneath, or we are inside of a jail.
  std::string no_draft_hint();
  // As find_draft; makes one when there is none, or none of the given name.
  struct Made {
    draft::Draft draft;
    bool created = false;
  };
  Result<Made> find_or_make_draft(bool force, bool always_new);
  // The name asked for by -d or $STOPLOG_DRAFT.
  std::optional<std::string> wanted_draft() const;

  // PATH arguments as paths of the workspace.
  Result<std::vector<RelPath>> paths(const std::vector<std::string>& arguments);

  // The draft's daemon; nullopt when none lives.
  Result<std::optional<draft::Client>> daemon(
      const draft::Draft& draft,
      draft::OtherVersion other = draft::OtherVersion::kStays);

 private:
  Globals globals_;
  std::optional<draft::Layout> layout_;
  std::optional<draft::Workspace> workspace_;
  std::optional<draft::Store> store_;
};

}  // namespace stoplog::cli
