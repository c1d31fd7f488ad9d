// SPDX-License-Identifier: Apache-2.0
#include "cli/shown_views.h"

#include "draft/client.h"

namespace stoplog::cli {

Result<std::vector<ShownView>> shown_views(Context& context, Where where) {
  draft::Store& store = *TRY(context.store());
  std::vector<draft::Draft> drafts =
      where == Where::kEverywhere ? TRY(store.list())
                                  : TRY(store.list(*TRY(context.workspace())));
  std::vector<ShownView> views;
  for (draft::Draft& d : drafts) {
    auto client = context.daemon(d, draft::OtherVersion::kAsked);
    if (!client || !*client || (**client).daemon().mount.empty()) continue;
    views.push_back({std::move(d), (**client).daemon().mount});
  }
  return views;
}

}  // namespace stoplog::cli
