// SPDX-License-Identifier: Apache-2.0
#include "draft/session.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/sys_file.h"
#include "base/sys_mount.h"
#include "draft/jail_setup.h"
#include "draft/layout.h"
#include "draft/policy.h"
#include "draft/sweep.h"
#include "fs/gc.h"
#include "snapshot/objects.h"

namespace stoplog::draft {
namespace {

Result<Fd> make_dir(const std::string& path) {
  TRY(make_private_dir(path));
  return sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
}

// A mount point of ours: an empty directory, with whatever a dead daemon left
// mounted there cleared away first.
Status prepare_mount_point(const std::string& path) {
  int cleared = TRY_CTX(fs::clear_dead_mount(path),
                        fmt::format("cannot clear the dead mount '{}'", path));
  if (cleared > 0) log::info("cleared a dead mount at {}", path);
  return make_private_dir(path);
}

// What commits replaced. Opened when it is asked for: rolling back past a
// commit is rare, and the store may not exist yet.
fs::ObjectSource objects_of(const Layout& layout) {
  return [path = layout.objects()](const Sha256Digest& id)
             -> Result<std::shared_ptr<const fs::Content>> {
    Fd dir = TRY(sys::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
    auto store = TRY(snapshot::ObjectStore::open(dir.get()));
    return store.content(id);
  };
}

void warn(std::string_view line) { log::warn("{}", line); }

// A machine that cannot mount cannot hold anything: exit 5, not a failure of
// ours.
template <class T>
Result<T> mounted(Result<T> made) {
  if (made) return made;
  return std::unexpected(
      std::move(made.error())
          .as(Code::kUnsupported)
          .with_hint("`stoplog doctor` says what is missing and what to do"));
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const CoreContext& context,
                                               const Observers& observers) {
  auto session = std::unique_ptr<Session>(new Session());
  TRY(session->open_trees(context));
  TRY(session->mount_trees(context, observers));
  if (session->home_server_) TRY(session->start_jail(context));
  TRY(session->serve());
  // Who is shown the view may never run a command in it.
  if (session->has_jail() && context.shape.mount.empty())
    session->zygote_->prepare_first();
  // To open what a rule denies would be told as an attempt.
  session->warmer_.start(
      session->mount_path_, context.shape.deny.empty(),
      [server = session->server_.get()](pid_t p) { server->set_warmer(p); });
  return session;
}

Status Session::serve() {
  TRY(server_->start());
  if (!has_jail()) return {};
  return home_server_->start();
}

Status Session::wait_for_jail() {
  Status built = zygote_->wait_ready();
  const bool is_known =
      std::exchange(jail_, built ? Jail::kBuilt : Jail::kBroken) !=
      Jail::kUnknown;
  if (!built || is_known) return built;
  for (const std::string& line : zygote_->left_out())
    notes_text_.push_back(line);
  return {};
}

Status Session::open_trees(const CoreContext& context) {
  const Draft& draft = context.draft;
  std::string dir = context.layout.draft(draft.id);
  workspace_ = draft.workspace;
  draft_dir_ = TRY(sys::openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY));
  base_ = TRY_CTX(sys::openat(AT_FDCWD, workspace_, O_RDONLY | O_DIRECTORY),
                  fmt::format("cannot open the workspace '{}'", workspace_));
  Workspace here = TRY(find_workspace({.given = workspace_, .cwd = "/"}));
  if (!draft.stands_over(here))
    return std::unexpected(
        Error(Code::kDrift,
              fmt::format("'{}' is no longer the directory that draft '{}' "
                          "stands over",
                          workspace_, draft.name))
            .with_hint("its changes can still be read with `stoplog diff` and "
                       "`stoplog export --patch`; `stoplog rm` removes it"));
  const Shape& shape = context.shape;
  fs::RulesSpec rules{.hide = shape.hide,
                      .mask = shape.mask,
                      .read_only = shape.read_only,
                      .deny = shape.deny,
                      .default_masks = shape.default_masks,
                      .tracked = tracked_by_git(workspace_, base_.get())};
  if (shape.read_only_workspace) rules.read_only.push_back("**");
  rules_ = TRY(fs::RuleSet::create(std::move(rules)));
  tree_ = TRY_CTX(fs::Tree::open({.draft_dir = draft_dir_.get(),
                                  .base = base_.get(),
                                  .rules = rules_.get(),
                                  .objects = objects_of(context.layout)}),
                  "cannot open the draft's journal");
  home_ = TRY(open_home(draft_dir_.get(), shape.home));
  home_tree_ = TRY_CTX(fs::Tree::open(home_.options()),
                       "cannot open the journal of the draft's HOME");
  // A policy that cannot be read stops runs elsewhere; history is then kept.
  if (auto files = read_policy_files(context.layout, nullptr))
    if (auto policy = make_policy(*files, "")) {
      fs::GcPolicy history{.max_bytes = policy->history_size.value};
      if (policy->history_age.value)
        history.max_age = *policy->history_age.value / 1000;
      for (fs::Tree* tree : {tree_.get(), home_tree_.get()})
        tree->set_history(history);
    }
  // Readers that found no daemon look at what is there without a lock: from
  // here on none of it is written in place.
  for (fs::Tree* tree : {tree_.get(), home_tree_.get()})
    TRY(tree->mark(fs::MarkKind::kBarrier, 0, ""));
  for (const std::string& note : tree_->recovery_notes())
    notes_text_.push_back(note);
  return {};
}

Status Session::mount_trees(const CoreContext& context,
                            const Observers& observers) {
  const std::string run = context.layout.run(context.draft.id);
  const bool root = ::geteuid() == 0;
  const std::string& shown = context.shape.mount;
  shown_ = !shown.empty();
  mount_path_ = shown.empty() ? run + "/" + kMountDir : shown;
  home_mount_path_ = run + "/" + kHomeDir;
  notes_path_ = run + "/notes";
  notes_ = TRY(make_dir(notes_path_));
  sweep_dead_mounts(context.layout, context.draft.id);
  if (shown.empty()) TRY(prepare_mount_point(mount_path_));
  // Root's mounts are nobody else's business.
  if (root && shown.empty()) TRY(mounted(sys::own_mount_namespace()));

  fs::MountSpec spec{.path = mount_path_,
                     .way = root ? fs::Way::kPrivileged : fs::Way::kFusermount,
                     .uid = ::geteuid(),
                     .gid = ::getegid(),
                     .allow_other = root};
  sys::Stat owner = TRY(sys::fstat(base_.get()));
  const jail::Identity who = jail_identity(context.draft.id, owner);
  fs::IdMap ids = fs::IdMap::identity();
  // What people look at has its true owners: git refuses to work in a
  // repository that is not its user's. Root's jail has another user, who
  // stands for the owner, and so no command in a view that is shown.
  if (root && shown.empty())
    ids = fs::IdMap::swap({owner.uid, owner.gid}, {who.host_uid, who.host_gid});
  server_ =
      TRY(mounted(fs::MountServer::create(*tree_, spec,
                                          {.base = base_.get(),
                                           .ids = ids,
                                           .observer = observers.workspace,
                                           .log = warn})));
  if (root && !shown.empty()) return {};
  return mount_home(std::move(spec), who, observers.home);
}

Status Session::mount_home(fs::MountSpec spec, const jail::Identity& who,
                           fs::Observer* observer) {
  TRY(prepare_mount_point(home_mount_path_));
  spec.path = home_mount_path_;
  fs::IdMap ids = fs::IdMap::identity();
  if (spec.way == fs::Way::kPrivileged)
    ids = fs::IdMap::swap({0, 0}, {who.host_uid, who.host_gid});
  home_server_ = TRY(mounted(fs::MountServer::create(*home_tree_, spec,
                                                     {.base = home_.base.get(),
                                                      .ids = ids,
                                                      .observer = observer,
                                                      .log = warn})));
  return {};
}

Status Session::start_jail(const CoreContext& context) {
  sys::Stat owner = TRY(sys::fstat(base_.get()));
  JailPlan plan = TRY(make_jail_spec({
      .shape = context.shape,
      .identity = jail_identity(context.draft.id, owner),
      .workspace = workspace_,
      .mount = mount_path_,
      .home_mount = home_mount_path_,
      .notes = notes_path_,
      .state = context.layout.state,
  }));
  spec_ = std::move(plan.spec);
  path_ = std::move(plan.path);
  for (const std::string& entry : plan.left_out)
    notes_text_.push_back(
        fmt::format("'{}' of PATH is not there inside", entry));
  if (!plan.git_refused.empty())
    notes_text_.push_back(
        fmt::format("git does not work inside: the directory that '.git' names "
                    "is not shown, for {}",
                    plan.git_refused));
  zygote_ = std::make_unique<jail::Zygote>(TRY(jail::Zygote::start(spec_)));
  return {};
}

// Who left because it died before a command was there to hear why would be
// started again, and again.
int Session::jail_life_fd() const {
  const bool tells =
      jail_ == Jail::kBuilt || (jail_ == Jail::kBroken && !shown_);
  return tells ? zygote_->pidfd() : -1;
}

std::vector<std::string> Session::notes() const {
  std::vector<std::string> out = notes_text_;
  for (const RelPath& path : tree_->unpinned())
    out.push_back(fmt::format(
        "'{}' still stands on the real file; it is copied as soon as there is "
        "room",
        path.str()));
  return out;
}

Status Session::sync() {
  TRY(tree_->fsync());
  return home_tree_->fsync();
}

void Session::close() {
  warmer_.stop();
  zygote_.reset();
  if (home_server_) home_server_->stop();
  if (server_) server_->stop();
  if (tree_ && home_tree_) {
    if (Status synced = sync(); !synced)
      log::error("cannot sync the draft: {}", synced.error().text());
  }
  home_server_.reset();
  server_.reset();
  home_tree_.reset();
  tree_.reset();
}

Session::~Session() { close(); }

fs::Stats Session::workspace_stats() const {
  fs::Stats stats = tree_->stats();
  stats.read_bytes -= std::min(stats.read_bytes, server_->warmed_bytes());
  return stats;
}

bool Session::is_stale() const {
  auto opened = sys::fstat(base_.get());
  auto now = sys::statat(AT_FDCWD, workspace_);
  return !opened || !now || opened->dev != now->dev || opened->ino != now->ino;
}

}  // namespace stoplog::draft
