// SPDX-License-Identifier: Apache-2.0
// Shape: what is fixed for a draft's daemon when it starts, because the mount
// and the jail's root are made of it: the rules of the view, the network, the
// binds, the toolchains, where the view is shown to people.
//
//   StartOptions start{.arguments = {"--shape", shape.to_text()}};
//   if (client.daemon().shape != shape.digest()) ...   // needs another daemon
//
// A command that needs another shape needs another daemon: an idle one is
// replaced, a busy one refuses. Plain data; the digest names its content.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoplog::draft {

struct Shape {
  bool host_network = false;
  std::vector<std::string> hide, mask, read_only, deny;  // globs
  bool default_masks = true;
  bool read_only_workspace = false;  // policy mode "observe"
  std::vector<std::string> bind_ro;  // absolute host paths
  std::string path;                  // the caller's PATH
  std::string home;                  // the caller's HOME
  std::string time_zone;             // the caller's TZ
  // Host-visible place of the view; empty: private, or the run directory.
  std::string mount;
  template <class A>
  void visit(A& a) {
    a(host_network, hide, mask, read_only, deny, default_masks,
      read_only_workspace, bind_ro, path, home, time_zone, mount);
  }

  // One word of printable characters, exact for any bytes.
  std::string to_text() const;
  static Result<Shape> from_text(std::string_view text);
  // Without `mount`: a command runs as well in a view that people see.
  std::string digest() const;
};

}  // namespace stoplog::draft
