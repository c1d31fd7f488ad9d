// SPDX-License-Identifier: Apache-2.0
// The change set for people and programs: the list (`status`), the patch in
// colour, --stat, --name-status, --json, and the summary after a command.
//
// Dangers and deletions come first and are never folded or cut. On a terminal
// every byte of a tree is escaped (base/escape.h); to a pipe, names are quoted
// as git does. Nothing here reads the environment: width, colour and whether
// it is a terminal are the caller's to say.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "diff/change_set.h"

namespace stoplog::diff {

struct RenderOptions {
  bool terminal = false;  // escape; otherwise git's quoting
  bool color = false;
  unsigned width = 80;
  unsigned context = 3;
  unsigned tab = 8;
  std::vector<RelPath> paths;  // these and what lies beneath; empty: all
  bool ignored = false;        // list ignored files too
  // A word beside each change ("approved"), or empty; the gate's to know.
  std::function<std::string(const Change&)> decision;
  // Columns beyond which a line of content is cut, with a mark that says how
  // much is missing; 0: no bound. Never applies to names.
  unsigned max_columns = 2000;
  Progress progress;  // of render_terminal()
};

// `status`: one line a change, then groups, then what to look at.
void render_list(const ChangeSet& set, const RenderOptions& options,
                 const Sink& sink);
// `status -z`: the same changes in the same order, letter and name (a moved
// one's old name first), each ended by NUL. Raw but on a terminal.
void render_list_names(const ChangeSet& set, const RenderOptions& options,
                       const Sink& sink);
// How many changes those are.
uint64_t count_listed(const ChangeSet& set, const RenderOptions& options);
// `diff --stat`, `diff --name-status` (with -z: NUL-ended, raw names but on a
// terminal).
void render_stat(const ChangeSet& set, const RenderOptions& options,
                 const Sink& sink);
// git's own format: a directory that moved is told file by file.
Status render_name_status(const fs::View& view, const ChangeSet& set,
                          const RenderOptions& options, bool nul,
                          const Sink& sink);
// `diff` on a terminal: the patch, coloured and escaped, dangers and deletions
// first, each with its risks above it. Still git's format, so that a pager such
// as delta understands it; binaries are named, not printed.
Status render_terminal(const fs::View& view, const ChangeSet& set,
                       const RenderOptions& options, const Sink& sink);
// After `run`: counts and the names of dangers and deletions.
void render_summary(const ChangeSet& set, const RenderOptions& options,
                    const Sink& sink);

struct JsonOptions {
  std::string draft;
  std::string workspace;
  bool stale = false;
  std::vector<RelPath> paths;
  bool ignored = false;
  bool terminal = false;  // ASCII alone: JSON escapes what a terminal may obey
  std::function<std::string(const Change&)> decision;  // "none" when unset
};
// The schema of `status --json` and `diff --json`, version 1; one line.
void render_json(const ChangeSet& set, const JsonOptions& options,
                 const Sink& sink);

}  // namespace stoplog::diff
