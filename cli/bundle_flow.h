// SPDX-License-Identifier: Apache-2.0
// A whole draft as a bundle, and back: what the trees (snapshot/bundle.h) do
// not know of: the draft's name and record, its HOME, its change set's digest.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/context.h"
#include "cli/opened.h"

namespace stoplog::cli {

struct BundleWritten {
  uint64_t bytes = 0;  // of the file
  std::string digest;  // of the change set
  std::vector<std::string> notes;
};
// `opened` for its marks only: the view is made beside the reading.
Result<BundleWritten> write_bundle(Context& context, const Opened& opened,
                                   int fd);

struct BundleRead {
  draft::Draft draft;
  std::string digest;       // of the change set here
  std::string made_digest;  // as it was where it was made
};
// `name`: of the new draft; absent: the one it had.
Result<BundleRead> read_bundle(Context& context, int fd,
                               std::optional<std::string> name);

}  // namespace stoplog::cli
