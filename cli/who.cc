// SPDX-License-Identifier: Apache-2.0
#include "cli/who.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/strings.h"
#include "base/sys_file.h"

namespace stoplog::cli {

std::string user_name() {
  // Read directly: getpwuid loads the name service's libraries, which takes
  // longer than everything else in most commands.
  std::string id = std::to_string(::getuid());
  auto passwd = sys::read_file(AT_FDCWD, "/etc/passwd", 4u << 20);
  if (!passwd) return id;
  for (std::string_view line : split(*passwd, '\n')) {
    auto fields = split(line, ':');
    if (fields.size() > 2 && fields[2] == id) return std::string(fields[0]);
  }
  return id;
}

std::string terminal_name() {
  char name[256];
  return ::ttyname_r(0, name, sizeof name) == 0 ? name : "";
}

std::string digest_text(const diff::ChangeSet& set) {
  return set.digest ? "sha256:" + hex(*set.digest) : "";
}

gate::Signature signature(const diff::ChangeSet& set) {
  return {.user = user_name(),
          .tty = terminal_name(),
          .time = Clock::real().now(),
          .set_digest = digest_text(set)};
}

Json who_fields() {
  std::string tty = terminal_name();
  Json fields = Json::object();
  fields.set("user", user_name()).set("tty", tty.empty() ? Json() : Json(tty));
  return fields;
}

}  // namespace stoplog::cli
