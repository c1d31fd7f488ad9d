// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_judge.h"

#include <cerrno>

#include "base/escape.h"
#include "base/units.h"
#include "cli/words.h"
#include "fs/watch.h"
#include "gate/fs_kind.h"

namespace stoplog::cli {

using jail::Check;
using jail::Verdict;

namespace {

Check well(const char* name, std::string detail) {
  return {.name = name, .detail = std::move(detail), .hint = {}};
}
Check bad(const char* name, Verdict verdict, std::string detail,
          std::string hint) {
  return {.name = name,
          .verdict = verdict,
          .detail = std::move(detail),
          .hint = std::move(hint)};
}

// What does not work in a workspace there; "" when all does. Of FUSE and what
// is not known it cannot be told whether it exchanges names; a commit tries.
std::string follows_from(const WorkspaceFacts& facts) {
  if (fs::reports_changes(facts.magic)) return {};
  gate::FsKind kind = gate::kind_of_type(static_cast<long>(facts.magic));
  std::string text =
      fmt::format("'{}' is on {}: edits of the real files show after a second",
                  escape(facts.path), kind.name);
  if (kind.network)
    text +=
        ", and `commit` refuses where the file system cannot exchange two "
        "names";
  return text;
}

constexpr const char* kElsewhere =
    "work in a clone on a local disk, or take the result out with `stoplog "
    "export --patch`";

}  // namespace

Check judge_kernel(const sys::KernelVersion& version) {
  std::string name = fmt::format("Linux {}.{}", version.major, version.minor);
  auto new_enough = sys::need_kernel(version);
  if (new_enough) return well("kernel", name);
  return bad("kernel", Verdict::kFail,
             name + ": too old, it lacks what the jail is made of",
             new_enough.error().hint());
}

Check judge_fuse(const FuseFacts& facts) {
  if (facts.error == 0) return well("fuse", "/dev/fuse opens");
  return bad("fuse", Verdict::kFail,
             fmt::format("cannot open /dev/fuse: {}; without it a draft cannot "
                         "be shown",
                         Error(facts.error).text()),
             facts.error == EACCES || facts.error == EPERM
                 ? "sudo chmod 666 /dev/fuse; in a container, allow the device"
                 : "sudo modprobe fuse; in a container, give it --device "
                   "/dev/fuse");
}

Check judge_fusermount(const FusermountFacts& facts) {
  if (facts.root && facts.root_error != 0)
    return bad("fusermount3", Verdict::kFail,
               fmt::format("not needed, but root cannot mount here: {}",
                           Error(facts.root_error).text()),
               "a container must be given CAP_SYS_ADMIN and the device (docker "
               "run --cap-add SYS_ADMIN --device /dev/fuse; with AppArmor, "
               "--security-opt apparmor=unconfined)");
  if (facts.root) return well("fusermount3", "not needed: root mounts itself");
  if (!facts.there)
    return bad("fusermount3", Verdict::kFail,
               "not installed; without it an ordinary user cannot mount",
               "install the fuse3 package");
  if (!facts.setuid)
    return bad("fusermount3", Verdict::kFail,
               "not setuid root, so it cannot mount for an ordinary user",
               "sudo chmod u+s \"$(command -v fusermount3)\", or install the "
               "fuse3 package again");
  return well("fusermount3", "mounts for ordinary users");
}

Check judge_watches(const WatchFacts& facts) {
  std::string detail = fmt::format(
      "{} watches a user, a quarter of them for a draft", facts.watches);
  if (facts.watches < 65536)
    return bad("inotify", Verdict::kWarn,
               detail +
                   "; in larger trees, edits of the real files show after a "
                   "second",
               "sudo sysctl fs.inotify.max_user_watches=524288");
  if (facts.instances < 64)
    return bad("inotify", Verdict::kWarn,
               fmt::format("{} instances a user, one for each draft at work; "
                           "without one, edits of the real files show after a "
                           "second",
                           facts.instances),
               "sudo sysctl fs.inotify.max_user_instances=512");
  return well("inotify", detail);
}

Check judge_reflink(bool clones) {
  if (clones) return well("reflink", "large files are pinned without copying");
  // Slower at most, and so on every ext4: nothing to be warned of.
  return bad("reflink", Verdict::kOk,
             "not here: a large file that an agent changes is copied in the "
             "background",
             "Btrfs, or XFS with reflink, can do without: the workspace and "
             "the state on the same one");
}

// Slower at most, and off wherever nobody turned it on: no warning either.
Check judge_rings(const RingFacts& facts) {
  constexpr const char* kSlower = ": first looks and removals take longer";
  if (!facts.there)
    return well(
        "io_uring",
        std::string("not in this kernel for FUSE (Linux 6.14)") + kSlower);
  if (!facts.on)
    return bad("io_uring", Verdict::kOk, std::string("off for FUSE") + kSlower,
               "as root: echo Y >/sys/module/fuse/parameters/enable_uring");
  if (!facts.can_abort)
    return bad("io_uring", Verdict::kOk,
               std::string("not used: a mount whose daemon died could not be "
                           "ended") +
                   kSlower,
               "as root: mount -t fusectl none /sys/fs/fuse/connections");
  return well("io_uring", "file operations stay on their processor");
}

Check judge_space(const SpaceFacts& facts) {
  constexpr uint64_t kMega = 1 << 20;
  if (facts.error != 0)
    return bad("space", Verdict::kWarn,
               fmt::format("cannot tell the room at '{}': {}; a draft that "
                           "finds none stops with ENOSPC",
                           escape(facts.place), Error(facts.error).text()),
               "set XDG_STATE_HOME to a directory that can be read");
  std::string detail = fmt::format("{} free at '{}'", print_size(facts.bytes),
                                   escape(facts.place));
  constexpr const char* kFree =
      "`stoplog gc` frees what no draft needs, `stoplog rm` a draft";
  if (facts.bytes < kMega || facts.files == 0u)
    return bad("space", Verdict::kFail,
               facts.files == 0u
                   ? fmt::format("no file can be made any more at '{}': a "
                                 "draft cannot be written",
                                 escape(facts.place))
                   : detail + ": a draft cannot be written",
               kFree);
  if (facts.bytes < 1024 * kMega)
    return bad("space", Verdict::kWarn,
               detail + "; a command that writes more gets ENOSPC", kFree);
  if (facts.files && *facts.files < 10000)
    return bad("space", Verdict::kWarn,
               fmt::format("{} can still be made at '{}'; a draft that needs "
                           "more gets ENOSPC",
                           plural(*facts.files, "file"), escape(facts.place)),
               kFree);
  return well("space", detail);
}

Check judge_state(const StateFacts& facts) {
  if (!facts.error.empty())
    return bad("state", Verdict::kFail, facts.error + "; no draft can be used",
               facts.hint.empty()
                   ? "set XDG_STATE_HOME to a directory of your own"
                   : facts.hint);
  std::string detail = fmt::format("{} in '{}'", plural(facts.drafts, "draft"),
                                   escape(facts.place));
  if (!facts.damaged.empty())
    return bad("state", Verdict::kWarn,
               fmt::format("{}; {} without a readable draft.json, which no "
                           "command finds: {}",
                           detail, facts.damaged.size(),
                           escape(facts.damaged.front())),
               fmt::format("what was held lies in '{}/drafts/{}': move it away "
                           "when it is not needed",
                           escape(facts.place), escape(facts.damaged.front())));
  if (!facts.dead_mounts.empty())
    return bad("state", Verdict::kWarn,
               fmt::format("{}; {} of a daemon that was killed: {} answers "
                           "nobody",
                           detail, plural(facts.dead_mounts.size(), "mount"),
                           escape(facts.dead_mounts.front())),
               "the next `stoplog run` clears it");
  if (facts.unfinished != 0)
    return bad("state", Verdict::kWarn,
               fmt::format("{}; {} that was being made when stoplog was killed "
                           "takes room",
                           detail, plural(facts.unfinished, "draft")),
               "`stoplog gc` removes it");
  return well("state", detail);
}

Check judge_workspace(const WorkspaceFacts& facts) {
  if (facts.error != 0)
    return bad("workspace", Verdict::kFail,
               fmt::format("cannot open '{}': {}; nothing can run over it",
                           escape(facts.path), Error(facts.error).text()),
               "go to a directory that you may read");
  std::string follows = follows_from(facts);
  if (follows.empty())
    return well("workspace",
                fmt::format("'{}' tells of changes", escape(facts.path)));
  return bad("workspace", Verdict::kWarn, follows, kElsewhere);
}

std::string workspace_note(const WorkspaceFacts& facts) {
  if (facts.error != 0) return {};
  std::string follows = follows_from(facts);
  if (follows.empty()) return {};
  return follows + "; " + kElsewhere;
}

}  // namespace stoplog::cli
