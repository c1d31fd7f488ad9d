// SPDX-License-Identifier: Apache-2.0
#include "draft/jail_setup.h"

#include <pwd.h>
#include <unistd.h>

#include <memory>
#include <mutex>

#include "base/hash.h"
#include "diff/content_hash.h"
#include "diff/git_facts.h"
#include "draft/git_link.h"
#include "draft/jail_ids.h"
#include "fs/view.h"
#include "jail/home.h"
#include "jail/toolchains.h"

namespace stoplog::draft {
namespace {

constexpr uint64_t kSecretLimit = 16ull << 20;  // hashed at each lookup

// What is made to be copied and filled in.
bool is_template(std::string_view name) {
  for (std::string_view end :
       {".example", ".sample", ".template", ".dist", ".defaults"})
    if (name.ends_with(end)) return true;
  return false;
}

constexpr uid_t kInsideId = 1000;

// For a map without such a number any will do: the jail cannot be made, and
// says why.
uint32_t host_id(const char* map, std::string_view draft_id) {
  constexpr uint32_t kNone = 1'900'000'000;
  auto text = sys::read_file(AT_FDCWD, map, 1u << 16);
  const uint64_t hash = xxh3_64(std::as_bytes(std::span(draft_id)));
  return text ? jail_id(*text, hash).value_or(kNone) : kNone;
}

std::string user_name() {
  // getpwuid would load NSS modules into the daemon; a name is not worth it
  // when /etc/passwd has it.
  auto text = sys::read_file(AT_FDCWD, "/etc/passwd", 16u << 20);
  if (!text) return "user";
  std::string want = fmt::format(":{}:", ::geteuid());
  for (size_t at = 0; at < text->size();) {
    size_t end = std::min(text->find('\n', at), text->size());
    std::string_view line(text->data() + at, end - at);
    at = end + 1;
    size_t name = line.find(':');
    if (name == line.npos || name == 0) continue;
    size_t id = line.find(':', name + 1);
    if (id != line.npos && line.substr(id).starts_with(want))
      return std::string(line.substr(0, name));
  }
  return "user";
}

std::string safe_directory(const std::string& workspace) {
  std::string quoted;
  for (char c : workspace) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n')
      quoted += "\\n";
    else
      quoted += c;
  }
  return fmt::format("[safe]\n\tdirectory = \"{}\"\n", quoted);
}

}  // namespace

jail::Identity jail_identity(std::string_view draft_id, const sys::Stat&) {
  jail::Identity who;
  if (::geteuid() != 0) {
    who.host_uid = who.uid = ::geteuid();
    who.host_gid = who.gid = ::getegid();
    who.user = who.group = user_name();
    return who;
  }
  who.host_uid = host_id("/proc/self/uid_map", draft_id);
  who.host_gid = host_id("/proc/self/gid_map", draft_id);
  who.uid = who.gid = kInsideId;
  who.user = who.group = "user";
  return who;
}

Result<JailPlan> make_jail_spec(const JailSetup& setup) {
  jail::JailSpec spec;
  const Shape& shape = setup.shape;
  spec.identity = setup.identity;
  spec.workspace = setup.workspace;
  spec.workspace_tree.path = setup.mount;
  spec.home = jail::choose_home(
      shape.home.empty() ? "/home/" + setup.identity.user : shape.home,
      setup.workspace);
  auto git = sys::read_file(AT_FDCWD, shape.home + "/.gitconfig", 1u << 20);
  if (git)
    spec.home_files.push_back(
        {.path = ".gitconfig", .content = jail::filter_git_config(*git)});
  spec.home_tree.path = setup.home_mount;
  spec.notes_dir = setup.notes;
  spec.hidden = {setup.workspace, setup.state};
  spec.net = shape.host_network ? jail::Net::kHost : jail::Net::kNone;
  spec.time_zone = shape.time_zone;
  for (const std::string& path : shape.bind_ro)
    spec.binds.push_back({.source = path, .target = path, .required = true});
  jail::ToolchainPlan tools =
      jail::plan_toolchains({.path = shape.path,
                             .home = shape.home,
                             .workspace = setup.workspace,
                             .hidden = spec.hidden},
                            jail::probe_path);
  for (jail::Bind& bind : tools.binds) spec.binds.push_back(std::move(bind));
  GitLink git_link = find_git_link(setup.workspace, spec.hidden);
  if (!git_link.path.empty()) {
    spec.binds.push_back(
        {.source = git_link.path, .target = git_link.path, .required = false});
    // Root's is nobody's inside, and git would not trust it.
    spec.git_config = safe_directory(setup.workspace);
  }
  return JailPlan{.spec = std::move(spec),
                  .path = std::move(tools.path),
                  .left_out = std::move(tools.left_out),
                  .git_refused = std::move(git_link.refused)};
}

std::function<bool(std::string_view)> tracked_by_git(
    const std::string& workspace, int base) {
  // Asked for secret-looking names only: most drafts never load libgit2 here.
  auto facts = std::make_shared<diff::GitFacts>(workspace);
  return [facts, base](std::string_view path) {
    auto parsed = RelPath::parse(path);
    if (!parsed || !facts->is_tracked(*parsed)) return false;
    if (is_template(parsed->name())) return true;
    auto state = fs::state_beneath(base, *parsed);
    if (!state || !*state) return true;  // nothing there to be masked
    if ((*state)->type == fs::Type::kSymlink)
      return facts->is_restorable(*parsed, diff::git_blob_id((*state)->target));
    if (!(*state)->content || (*state)->size > kSecretLimit) return false;
    auto id = diff::git_blob_id(*(*state)->content);
    return id && facts->is_restorable(*parsed, *id);
  };
}

}  // namespace stoplog::draft
